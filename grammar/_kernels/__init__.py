"""Parts that the kernels of all packages share: the compiler, and named tuples that hold the rules of a grammar."""
