"""Models trained on the treebank itself, compared with those trained on samples of the grammar."""
