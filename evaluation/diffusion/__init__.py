"""Models that fill gaps in any order, compared with the exact chain rule of the truth."""
