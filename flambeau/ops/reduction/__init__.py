"""Operators that fold dims away."""
