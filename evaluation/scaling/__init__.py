"""Loss against corpus size, model size and compute, where the irreducible part of the loss is known exactly."""
