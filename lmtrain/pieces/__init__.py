"""Models of subword pieces as models of words: cutting sentences, exact word scores, any local checkpoint."""
