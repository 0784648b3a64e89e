"""Tilted truths: p(x) exp(r(x) / beta) / Z of a grammar and a regular reward, which is a grammar again."""
