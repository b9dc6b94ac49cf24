"""Switches: each an environment variable at import and an attribute afterwards.

Keeps     a switch never changes a bit of any result; `flambeau.debug` sets them for a while.
Touches   os.environ, once.
Not here  what a switch does: the rooms that read it."""

from __future__ import annotations

import os
import time
from typing import Final

# Seconds since the epoch: what flambeau's files say is sure only where they are older.
IMPORTED_AT: Final = time.time()
VERSION: Final = "2.13.0+flambeau.0.1"


def _integer(name: str, allowed: tuple[int, ...] | None = None) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not an integer; unset it or give a number") from None
    if (allowed is not None and value not in allowed) or value < 0:
        raise ValueError(f"{name}={value} is not one of {allowed or 'the positive integers'}")
    return value


def _threads() -> int | None:
    """The switch; else what OpenMP's and MKL's variables say, as torch heeds them. A list is one
    number for each level of nesting: the first counts. What is no number is theirs to refuse."""
    count = _integer("FLAMBEAU_THREADS")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        if count is None and first.isdecimal() and int(first) > 0:
            count = int(first)
    return count


class Config:
    """Values of the switches, read where they matter, set by flambeau.debug's contexts."""

    __slots__ = (
        "cache_dir", "codegen_level", "fuse", "fuse_new", "keep_plans", "threads",
        "vector_bits",
    )  # fmt: skip

    def __init__(self) -> None:
        # False: every operator is its own segment.
        self.fuse: bool = os.environ.get("FLAMBEAU_FUSE", "1") != "0"
        # True: a segment is fused the first time it is seen, however small.
        self.fuse_new: bool = os.environ.get("FLAMBEAU_FUSE_NEW", "0") == "1"
        # None: as many as the CPU affinity and the quota allow.
        self.threads: int | None = _threads()
        # None: 512 where the CPU has AVX-512, else 256.
        self.vector_bits: int | None = _integer("FLAMBEAU_VECTOR_BITS", (256, 512))
        # Where compiled objects are kept; None: $XDG_CACHE_HOME/flambeau or ~/.cache/flambeau.
        # A relative path is one from where the process started: programs change their folder.
        folder = os.environ.get("FLAMBEAU_CACHE_DIR")
        self.cache_dir: str | None = os.path.abspath(folder) if folder else None
        # False: plans are neither read from that folder nor written to it.
        self.keep_plans: bool = os.environ.get("FLAMBEAU_KEEP_PLANS", "1") != "0"
        level = _integer("FLAMBEAU_CODEGEN_LEVEL", (0, 1, 2, 3))
        self.codegen_level: int = 1 if level is None else level


CONFIG: Final = Config()
