"""Known answers: models whose every probability is known, and the numbers that an evaluation must give on them."""
