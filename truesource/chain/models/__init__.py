"""The language models, trained on the corpus."""
