"""The stages of an experiment, one module each.

Every stage has ``inputs(run)``, the JSON value its result depends on (settings and the outputs of earlier
stages), and ``make(run)``, which does the work and returns the digest of what it made.
"""
