"""Operators that multiply and sum over shared dims."""
