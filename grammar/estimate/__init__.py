"""Estimate grammars: from trees, by relative frequencies or split-merge training; from plain text; by pruning."""
