"""Words that native flushes and Python share: of a known plan, of the table of them, of a block.

Keeps     numbers alone: the text and what fills the words agree through this file.
Touches   tables.
Not here  what fills them (known.py), the text (text.py)."""

from __future__ import annotations

from typing import Final

from flambeau.tensor.native.tables import GOLDEN, words

# What is known of a plan. keys: per record its length and words, the signature's address first;
# touched: as Segment.touched; stored: 1 for each fresh storage the plan leaves in memory; rows: of
# blocks; numbers: of the records' numbers, in order; held: what keeps all of it alive.
PLAN: Final = words(
    "count inputs fresh n_touched threads keys touched stored rows n_stored n_rows arena scratch "
    "numbers n_numbers program plan held"
)
# A block that a run needs: bytes, the list of free ones (0: Python gives it), fresh storage.
ROW: Final = words("n_bytes free fresh")
ROW_BYTES: Final = 24
# A number of a record: which record, which of its numbers, whether it is a double.
NUMBER: Final = words("record place is_double")
NUMBER_BYTES: Final = 24
# A place of the table: what is quick to compare, a known plan's address.
PLACE_BYTES: Final = 16
PLAN_BITS: Final = 10
PLAN_PROBES: Final = 8
# A block: memory that goes back to its list of free ones by itself.
BLOCK: Final = words("address n_bytes free counts", 16)
BLOCK_BYTES: Final = 48

_WORD: Final = (1 << 64) - 1
# Odd factors of what tells plans apart at a glance.
FACTORS: Final = {
    "first": 1, "last": 3, "count": 0x9E3779B1, "inputs": 0x85EBCA77, "fresh": 0xC2B2AE3D,
    "n_touched": 0x27D4EB2F, "threads": 0x165667B1,
}  # fmt: skip


def mixed(**given: int) -> int:
    """The word that is compared first; @find_plan makes the same one."""
    return sum(FACTORS[name] * value for name, value in given.items()) & _WORD


def place_of(mix: int) -> int:
    """Where the table is looked at first."""
    return (mix * GOLDEN & _WORD) >> (64 - PLAN_BITS)
