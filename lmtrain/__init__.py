"""Language models trained on a corpus: tokenisers, architectures, training, scoring."""
