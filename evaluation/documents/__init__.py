"""Documents: what a model infers, while it reads, about what the strings of a document share."""
