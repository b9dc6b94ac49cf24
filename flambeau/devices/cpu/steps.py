"""What a native kernel's maker returns: steps of a runner's program, before addresses are known.

Keeps     a step depends on sizes and strides alone, never on addresses; its kernel depends on
          neither.
Touches   jit (what a text is).
Not here  makers (products.py and the other families), programs (engine/planning/plan.py)."""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.devices.cpu.jit import Text


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
