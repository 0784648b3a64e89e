"""The evaluator `treebank_baseline`."""
