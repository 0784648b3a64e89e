"""Models trained on the treebank itself, compared with models trained on samples of the grammar."""
