"""What no switch may change: results, bit for bit.

Keeps     the switches are those that change how a program is run: threads, vectors, fusion.
Touches   flambeau.debug.
Not here  random programs under every switch (engine/test_same_bits.py)."""

from __future__ import annotations

from collections.abc import Callable

from flambeau import debug


def same_under_every_switch(results: Callable[[], object]) -> None:
    """results() is the same on 1, 3 and 7 threads, with narrow vectors, and fused or not."""
    first = results()
    switches = [debug.threads(count) for count in (1, 3, 7)]
    for switch in (*switches, debug.vector_bits(256), debug.fuse(False)):
        with switch:
            assert results() == first
