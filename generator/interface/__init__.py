"""The interface of language models, which evaluators use: protocols, frames, scores, and their checks."""
