"""BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019)."""
