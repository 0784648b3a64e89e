"""What a model has memorised of its training sentences."""
