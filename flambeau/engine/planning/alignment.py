"""Accesses and values of a group, and how domains and strides of several dimensions meet.

Keeps     splits are in order, each numbered as dimensions are when it is made.
Touches   base.dtypes, codegen.vocabulary, statement.
Not here  the group itself (group.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from flambeau.codegen.vocabulary import Expression
from flambeau.engine.planning.symbolic.sizes import Size
from flambeau.engine.statement import Loop, Place, SizeNumber

_PART_BITS: Final = 32


class Bound:
    """A loop with the slots and numbers that its references mean in a group.

    reads, write  slots of loop.reads and loop.write
    numbers       of loop.numbers: numbers of the group, or what follows from sizes
    """

    __slots__ = ("loop", "numbers", "reads", "write")

    def __init__(
        self, loop: Loop, reads: tuple[int, ...], write: int, numbers: tuple[int | SizeNumber, ...]
    ) -> None:
        self.loop = loop
        self.reads = reads
        self.write = write
        self.numbers = numbers


class GroupAccess:
    """A place aligned with the group's dimensions (strides per dimension, 0 where it is constant).

    slot    number of the view slot or temporary; storage what it belongs to
    """

    __slots__ = (
        "dtype", "index", "index_bound", "index_stride", "offset", "part", "slot", "strides",
    )  # fmt: skip

    def __init__(
        self, slot: int, place: Place, strides: list[int], index: Expression | None
    ) -> None:
        self.slot = slot
        self.strides = strides
        self.offset = place.offset
        self.dtype = place.dtype
        self.index = index
        self.index_stride = place.index_stride
        self.index_bound = place.index_bound
        self.part = place.part

    def same(self, slot: int, offset: int, strides: list[int], index: Expression | None) -> bool:
        """Whether this is the access with these parts."""
        return (
            self.slot == slot
            and self.offset == offset
            and self.strides == strides
            and self.index is index
        )


class GroupValue:
    """What a statement of the group computed, and where it would be stored.

    level     "element" (one per iteration) or "row" (one per row)
    phase     first phase in which it is known
    tainted   something it loads has been overwritten since: it must be kept, not computed again
    early     a row value known before the first loop
    superseded  a later statement of the group writes the same elements
    """

    __slots__ = (
        "access", "early", "expression", "kept", "level", "loads", "operations", "phase",
        "reduction", "reduction_kind", "storage", "superseded", "tainted",
    )  # fmt: skip

    def __init__(
        self,
        storage: int,
        access: GroupAccess,
        value: Expression,
        phase: int,
        level: str,
        loads: frozenset[int],
        operations: int,
    ) -> None:
        self.storage = storage
        self.access = access
        self.expression = value
        self.phase = phase
        self.level = level
        self.loads = loads
        self.kept: int | None = None
        self.early = False
        self.tainted = False
        self.superseded = False
        self.reduction: Expression | None = None
        self.reduction_kind = ""
        self.operations = operations


def key_of(storage: int, part: int) -> int:
    """Key of `Group.latest`: the storage, or for one of its parts a negative number."""
    return -(storage << _PART_BITS) - part if part else storage


def aligned(
    group_dims: list[int], domain: tuple[int, ...]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]] | None:
    """Splits that make two domains equal: (dimension, inner size) lists for each, or None.

    Splits are in order and refer to dimensions numbered as they are when the split is made.
    """
    if len(group_dims) == len(domain) and all(
        a == b for a, b in zip(group_dims, domain, strict=True)
    ):
        return [], []
    left, right = list(group_dims), list(domain)
    left_splits: list[tuple[int, int]] = []
    right_splits: list[tuple[int, int]] = []
    position = 0
    while position < len(left) and position < len(right):
        a, b = left[position], right[position]
        if a > b:
            if b == 0 or a % b:
                return None
            left_splits.append((position, a // b))
            left[position : position + 1] = [b, a // b]
        elif b > a:
            if a == 0 or b % a:
                return None
            right_splits.append((position, b // a))
            right[position : position + 1] = [a, b // a]
        position += 1
    return (left_splits, right_splits) if len(left) == len(right) else None


def named(domain: Sequence[Any]) -> str:
    """A domain for people; Sizes of a plan for many sizes stay unnamed.

    >>> named([2, 3])
    '(2, 3)'
    """
    return f"({', '.join(['?' if isinstance(size, Size) else str(size) for size in domain])})"


def split_strides(strides: Sequence[int], splits: list[tuple[int, int]]) -> list[int]:
    """Strides after dimensions were split: i = i1 * inner + i2."""
    result = list(strides)
    for position, inner in splits:
        stride = result[position]
        result[position : position + 1] = [stride * inner, stride]
    return result


def collapses(sizes: list[int], strides: list[int]) -> bool:
    """Whether dimensions can be walked as one, with the last one's stride."""
    if 0 in sizes:
        return True  # nothing is walked
    expected: int | None = None
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if expected is not None and stride != expected:
            return False
        expected = stride * size
    return True


def refined_marks(
    domain: tuple[int, ...], splits: list[tuple[int, int]], marks: tuple[int, int]
) -> tuple[int, int]:
    """Where dimension numbers of a domain lie after its splits."""
    start, end = marks
    for position, _ in splits:
        if position < start:
            start += 1
        if position < end:
            end += 1
    return start, end


def kept_splits(splits: list[tuple[int, int]], marks: tuple[int, int]) -> list[tuple[int, int]]:
    """Splits of the kept dimensions, numbered among the kept ones; marks are refined already.

    Splits refer to dimensions as numbered when made, left to right, so a split before the reduced
    ones keeps its number and one behind them moves left by the number of reduced dimensions.
    """
    start, end = marks
    kept = []
    for position, inner in splits:
        if position < start:
            kept.append((position, inner))
        elif position >= end:
            kept.append((position - (end - start), inner))
    return kept
