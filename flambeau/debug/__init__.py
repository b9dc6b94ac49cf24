"""Why flambeau did what it did: counts, explanations, and the switches as context managers."""

from flambeau.debug.counting import counts
from flambeau.debug.explaining import explain
from flambeau.debug.switches import (
    cache_dir,
    codegen_level,
    fuse,
    fuse_new,
    keep_plans,
    threads,
    vector_bits,
)

__all__ = [
    "cache_dir",
    "codegen_level",
    "counts",
    "explain",
    "fuse",
    "fuse_new",
    "keep_plans",
    "threads",
    "vector_bits",
]
