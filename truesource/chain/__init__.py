"""From a treebank to scores: what every run does, one folder for each step."""
