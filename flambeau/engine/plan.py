"""Plans: what a segment's run needs, and what planning may know of a segment.

Keeps     a plan depends on signatures, view slots and liveness, never on values, addresses,
          offsets or scalars.
Touches   nothing of flambeau: a plan kept on disk takes none of what made it.
Not here  making plans (planning/plan.py), keeping them on disk (plan_store.py)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    Words = array[int]


# Words of a program before its steps, of a step before its arguments, and of a patch.
HEAD_WORDS: Final = 4
STEP_WORDS: Final = 6
PATCH_WORDS: Final = 5
# ((kernel, records, units) per step, (record, why it did not join the kernel before it))
Explained = tuple[list[tuple[str, set[int], int]], list[tuple[int, str]]]


def _nothing() -> Explained:
    return [], []


class Plan:
    """A segment ready to run.

    stored, stored_numbers   fresh storages that the program leaves in memory of their own: byte n
                  of the mask is 1 for number n
    program       words of the runner's program
    arena_bytes   memory for values that live within the segment
    n_touched     view offsets that come first among the numbers
    number_format of the records' numbers, struct's letters
    pack_numbers  packs view offsets, then the records' numbers
    is_apart      records are planned apart: planned as a whole when the segment comes again
    explained     gives, for debug.explain, the kernels and what did not fuse and why
    """

    __slots__ = (
        "arena_bytes", "explained", "is_apart", "n_kernels", "n_touched", "number_format",
        "pack_numbers", "program", "runs", "statements", "stored", "stored_numbers",
    )  # fmt: skip

    def __init__(self) -> None:
        self.stored = 0
        self.stored_numbers: tuple[int, ...] = ()
        self.program: Words = array("q")
        self.arena_bytes = 0
        self.n_touched = 0
        self.number_format = ""
        self.pack_numbers: Any = None
        self.n_kernels = 0
        self.statements = 0
        self.runs = 0
        self.is_apart = False
        self.explained: Callable[[], Explained] = _nothing


class SegmentFacts:
    """What planning may know of a segment.

    keys         per record: (signature, slots of operands ..., slots of fresh outputs ...)
    touched      as Segment.touched
    input_bytes, fresh_bytes   per storage
    kept         fresh storages visible after the segment
    """

    __slots__ = ("fresh_bytes", "input_bytes", "kept", "keys", "touched")

    def __init__(
        self,
        keys: Sequence[tuple[Any, ...]],
        touched: Sequence[int],
        input_bytes: Sequence[int],
        fresh_bytes: Sequence[int],
        kept: set[int],
    ) -> None:
        self.keys = keys
        self.touched = touched
        self.input_bytes = input_bytes
        self.fresh_bytes = fresh_bytes
        self.kept = kept


def number_packer(n_touched: int, number_format: str) -> Callable[..., bytes]:
    """Packs view offsets, then the records' numbers."""
    return struct.Struct("=" + "q" * n_touched + number_format).pack


def step_starts(program: Sequence[int]) -> list[int]:
    """Where the steps of a program begin: the word that is the kernel's address."""
    starts = []
    position = HEAD_WORDS
    for _ in range(program[0]):
        starts.append(position)
        n_arguments, n_patches = program[position + 3], program[position + 4]
        position += STEP_WORDS + n_arguments + PATCH_WORDS * n_patches
    if position != len(program):
        raise ValueError("the program of a plan has another length than its steps")
    return starts
