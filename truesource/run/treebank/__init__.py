"""The treebank that the grammar is learned from."""
