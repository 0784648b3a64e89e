"""Hidden states of trained networks word by word, and linear probes trained on them."""
