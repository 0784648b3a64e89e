"""Models of subword pieces as models of words: segmenting sentences, exact word scores, any local checkpoint."""
