"""Languages of pieces of words: exact next-piece, next-character and next-byte distributions."""
