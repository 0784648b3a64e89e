"""Grammars written as templates of rules with features, as the embedded English grammar is."""
