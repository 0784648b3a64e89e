"""The treebank for induction of the grammar."""
