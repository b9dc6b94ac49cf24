"""Operators that move elements: joins, reading and writing by index, scans and sorting."""
