"""The languages and models of tests and experiments start here: corpora drawn from a grammar, and what scores them."""
