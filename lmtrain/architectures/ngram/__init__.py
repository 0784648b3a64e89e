"""n-gram language models of any order: counts, unsmoothed and Kneser-Ney estimates, scores, samples."""
