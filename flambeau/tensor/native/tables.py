"""Words that native code and Python share: of a callable, of the one table, of a cache's entry.

Keeps     an operator's callable is an object with the words of `CALLABLE` behind its head; `TABLE`
          is one for all; the way from operands to signature is an `ENTRY` of a callable's cache.
Touches   writer.
Not here  what fills them (library.py, callables.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flambeau.tensor.native.text.writer import Writer

Offsets = Mapping[str, int]


def words(names: str, start: int = 0) -> dict[str, int]:
    """Offsets of words that follow one another."""
    return {name: start + 8 * n for n, name in enumerate(names.split())}


CALLABLE: Final = words(
    "vectorcall dict weak table cache python specials plan saves extra attach mark rest", 16
)
TABLE: Final = words(
    "tensor storage place node local zero empty stream touch versions rebased version "
    "learn late thread current codes sites special sequence dtype creation dim index "
    "nothing own unplaced conformed output leaf as_edges one no_grad "
    "flush segment observers timed denormals config cores acquire release plans block own_block "
    "large_block outside_block allocate limit run_counts runner_counts memory_counts runner team "
    "error slice raise_index external three array_type new_array set_base weighed "
    "plain parameter taker disabled"
)
ENTRY: Final = words("left right value signature layout attributes layouts flags")
ENTRY_BYTES: Final = 64
CACHE_BITS: Final = 6  # ways a callable keeps
PROBES: Final = 4
CODE_BITS: Final = 8
SITE_BITS: Final = 9
GOLDEN: Final = -7046029254386353131  # 2^64 over the golden ratio: spreads addresses
# Flags of an entry: the number is given at run time; results can carry gradients.
RUN_TIME: Final = 1
GRADIENT: Final = 2
NO_VALUE: Final = 0
MAXIMUM_PARAMETERS: Final = 16
VALUE_MASK: Final = 0x5A5A5A5A5A5A5A5A  # keeps the bits of 0.0 apart from NO_VALUE

# How an operator's parameters are laid out: counts, then a row of words a parameter.
SHAPE: Final = words("count positional packs rows")
ROW: Final = words("kind default name specials optional")
ROW_BYTES: Final = 40
IS_ATTRIBUTE, IS_TENSOR, IS_NUMBER, IS_SEQUENCE = range(4)
# What a key leads to: a way of an operator with any parameters, of a view.
WAY: Final = words("signature layout attributes layouts check flags several named")
VIEW_WAY: Final = words("layout offset attributes layouts several")
# A plan's program: what vjp gets after `t`, as (kind, key) pairs behind these words.
PROGRAM: Final = words("count positions vjp functions pairs")  # positions 0: a sequence's
MAXIMUM_ARGUMENTS: Final = 12
GRAD, SAVED, ATTRIBUTE, LAYOUT, NEEDS, LAYOUTS, SEQUENCE_NEEDS = range(7)


def hashed(w: Writer, value: str, bits: int) -> str:
    """The upper bits of a multiplied word."""
    spread = w.new(f"mul i64 {value}, {GOLDEN}")
    return w.new(f"lshr i64 {spread}, {64 - bits}")


def new_object(w: Writer, kind: str) -> str:
    """An object of a class without __init__; its slots are empty."""
    return w.call("PyType_GenericAlloc", w.load("%table", TABLE[kind]), "0")
