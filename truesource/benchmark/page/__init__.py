"""The page of the benchmark: where models stand, in one file."""
