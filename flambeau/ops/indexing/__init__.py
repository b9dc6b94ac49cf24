"""Operators that move elements: joins, reading and writing by index, scans and sorting."""

from flambeau.ops.indexing import gathers, joins, scans, scatters

__all__ = ["gathers", "joins", "scans", "scatters"]
