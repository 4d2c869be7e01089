"""A soak: a night of a watch with everything that can go wrong in it."""
