"""RoBERTa: BERT without sentence pairs, positions counted from the words that are not padding (Liu et al. 2019)."""
