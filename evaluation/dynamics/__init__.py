"""Learning dynamics: how far the checkpoints of a model are from the truth, by kinds of words and of places."""
