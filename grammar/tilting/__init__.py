"""Tilted truths: p(x) exp(r(x) / beta) / Z for a grammar p and a regular reward r, which is again a grammar."""
