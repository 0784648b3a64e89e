"""The seed of random numbers that nobody chose."""

#: default of every seed: of corpora, models, samples, permutations and intervals, so that one number has one interval
DEFAULT_SEED = 1
