"""Why a model is off: references between word frequencies and the truth, and what more training of each kind brings."""
