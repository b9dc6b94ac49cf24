"""Pools: the largest, or the mean, of windows."""
