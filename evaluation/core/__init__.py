"""The oracle, scores and their signatures, and exact scores: what all evaluations share."""
