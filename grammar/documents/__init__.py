"""Documents: strings of one language that the reader does not know and must infer while reading."""
