"""What every language model offers, which models and evaluators share: protocols, frames, scores, their checks."""
