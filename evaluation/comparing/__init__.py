"""Many models against one truth: seeds as replicates, and paired differences to a baseline."""
