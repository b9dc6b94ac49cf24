"""Convolutions, plain and transposed, of one to three spatial dims."""
