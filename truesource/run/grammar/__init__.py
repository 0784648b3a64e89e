"""The grammar, induced or read from a file."""
