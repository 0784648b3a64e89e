"""Loss against corpus size, model size and compute, with an exactly known irreducible part."""
