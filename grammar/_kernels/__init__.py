"""Parts that the kernels of all packages share: the compiler, and the tuples in which the rules of a grammar travel."""
