"""Split-merge training: substates of treebank labels, found by EM on observed trees (Petrov et al. 2006)."""
