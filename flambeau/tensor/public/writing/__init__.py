"""Functions that give a copy with some of it written, and their in-place forms."""
