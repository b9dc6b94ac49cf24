"""Operators that multiply and sum over shared dims."""

from flambeau.ops.contraction import added_products, einsum, matmul

__all__ = ["added_products", "einsum", "matmul"]
