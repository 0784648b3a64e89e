"""Estimate grammars: from trees, by relative frequencies or split-merge; from plain text; coarser or pruned ones."""
