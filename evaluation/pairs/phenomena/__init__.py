"""The phenomena of minimal pairs, one module each."""
