"""What a native kernel's maker returns: steps of a runner's program, before addresses are known.

Keeps     a step depends on sizes and strides alone, never on addresses; its kernel depends on
          neither.
Touches   jit (what a text is).
Not here  makers (products.py and the other families), programs (engine/planning/plan.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flambeau.devices.cpu.jit import Text

LINE_BYTES: Final = 64
# Bytes behind the last row of scratch that whole vectors may touch.
SLACK_BYTES: Final = 512


def aligned(n_bytes: int) -> int:
    """Bytes of whole cache lines: how far on the next area of scratch or workspace begins."""
    return -(-n_bytes // LINE_BYTES) * LINE_BYTES


def row_bytes(n_bytes: int) -> int:
    """Bytes from row to row of scratch: room behind a row, and an odd number of lines, so that
    rows do not meet in the same sets of the cache."""
    return LINE_BYTES * ((-(-n_bytes // LINE_BYTES) + 1) | 1)


@dataclass(frozen=True, slots=True)
class At:
    """An argument that is an address: of a read or written operand, workspace or error word.

    what    "read" or "write" (number: which operand), "workspace", "error"
    n_bytes on top of the operand's own address
    """

    what: str
    number: int = 0
    n_bytes: int = 0


@dataclass(frozen=True, slots=True)
class NativeStep:
    """One kernel with the kernel ABI, its units and its argument words in order."""

    name: str
    text: Text
    n_units: int
    chunk_units: int
    arguments: tuple[int | At, ...]
    scratch_bytes: int = 0


@dataclass(frozen=True, slots=True)
class NativePlan:
    """Steps in order, and bytes of 64-byte aligned workspace they share."""

    steps: tuple[NativeStep, ...]
    workspace_bytes: int = 0
