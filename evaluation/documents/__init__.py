"""Documents: inference in context about the language that the strings of a document share."""
