"""Operators over rows, recorded as one: softmax, normalisation, losses, attention."""
