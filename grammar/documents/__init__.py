"""Documents: some strings of one language that the reader does not know, and must learn while it reads."""
