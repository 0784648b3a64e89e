"""LSTM language model: stacked recurrent layers (Hochreiter and Schmidhuber 1997; Zaremba et al. 2014)."""
