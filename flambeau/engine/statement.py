"""Statements: what a recorded operator means, as loops over affine accesses.

Keeps     a statement reads all its operands at an iteration before it writes there; accesses are
          base + sum(stride * index), never a division; sizes and strides are in elements.
Touches   base, codegen.vocabulary.
Not here  making statements from operators (lower.py), choosing which share a kernel (fuse.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base.dtypes import dtype
from flambeau.codegen.vocabulary import Expression, expression


class Place:
    """An access: which memory, and where in it for each iteration of the domain.

    reference  number of the memory: within a signature's lowering an operand, output or temporary;
               within a segment the number of a view slot (`views` of the segment, then temporaries)
    strides    elements per step of each dimension of the statement's domain
    offset     elements, on top of the view's own run-time offset
    index      for a gather: int64 expression over the statement's other reads, else None;
               the address moves by index_stride elements a unit, index in [0, index_bound)
    part       0, or of complex memory the real parts alone (1) or the imaginary ones (2), or from
               FIRST_PIECE on one of the pieces that an operator writes its result in
    """

    __slots__ = (
        "dtype", "index", "index_bound", "index_stride", "offset", "part", "reference", "strides",
    )  # fmt: skip

    def __init__(
        self,
        reference: int,
        strides: tuple[int, ...],
        offset: int,
        element: dtype,
        index: Expression | None = None,
        index_stride: int = 0,
        index_bound: int = 0,
        part: int = 0,
    ) -> None:
        self.reference = reference
        self.strides = strides
        self.offset = offset
        self.dtype = element
        self.index = index
        self.index_stride = index_stride
        self.index_bound = index_bound
        self.part = part

    def at(self, reference: int) -> Place:
        """The same access to another memory."""
        return Place(
            reference, self.strides, self.offset, self.dtype,
            self.index, self.index_stride, self.index_bound, self.part,
        )  # fmt: skip

    def __repr__(self) -> str:
        tail = f"[{self.index}*{self.index_stride}]" if self.index is not None else ""
        return f"@{self.reference}+{self.offset}{self.strides}{tail}:{self.dtype.short_name}"


FIRST_PIECE: Final = 3


def never_meet(left: Any, right: Any) -> bool:
    """Whether two accesses of one storage never meet: its real and its imaginary parts, or two
    pieces of one result."""
    return parts_never_meet(left.part, right.part)


def parts_never_meet(left: int, right: int) -> bool:
    """The same of the parts alone; a piece may hold some of the real parts and of the others."""
    if not left or not right or left == right:
        return False
    return (left < FIRST_PIECE) == (right < FIRST_PIECE)


class SizeNumber:
    """A scalar that follows from sizes alone (a count): bound with the plan, not in the kernel.
    Immutable and compared by value, which is an int, a float or a Size."""

    __slots__ = ("is_float", "value")

    def __init__(self, value: Any, is_float: bool) -> None:
        self.value = value
        self.is_float = is_float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SizeNumber):
            return NotImplemented
        return (self.value, self.is_float) == (other.value, other.is_float)

    def __hash__(self) -> int:
        return hash((self.value, self.is_float))

    def __repr__(self) -> str:
        return f"SizeNumber({self.value!r}, {self.is_float})"


class Loop:
    """One map or reduction over a domain.

    domain      sizes, no 1 among them (inner_kept of a reduction excepted)
    reads       leaf load(i) of the expression reads through reads[i]
    numbers     leaf number(i) is the record's run-time number numbers[i], or a SizeNumber
    expression  the value at an iteration
    write       strides over the kept dimensions (all of them for a map)
    reduction   None, or a kind of codegen.loops.REDUCTIONS
    n_outer, n_reduced   for a reduction: the domain is kept, reduced, kept (inner) dimensions;
               no inner kept dimension means the sum is over last axes
    sources, results     references read and written
    size       iterations
    uses_index the value, or where it is read, depends on the iteration's position
    kept       sizes of the dimensions that are written
    is_empty   writes no element
    parts      the same loop in two, by the number of the memory between them
    """

    __slots__ = (
        "domain", "expression", "is_columns", "is_empty", "kept", "n_outer", "n_reduced", "numbers",
        "parts", "reads", "reduction", "results", "size", "sources",
        "uses_index", "write",
    )  # fmt: skip

    def __init__(
        self,
        domain: tuple[int, ...],
        reads: tuple[Place, ...],
        numbers: tuple[int | SizeNumber, ...],
        expression: Expression,
        write: Place,
        reduction: str | None = None,
        n_outer: int = 0,
        n_reduced: int = 0,
        is_columns: bool = False,
    ) -> None:
        self.domain = domain
        self.reads = reads
        self.numbers = numbers
        self.expression = expression
        self.write = write
        self.reduction = reduction
        self.n_outer = n_outer
        self.n_reduced = n_reduced
        self.is_columns = is_columns
        self.sources = tuple([place.reference for place in reads])
        self.results = (write.reference,)
        self.size = 1
        for size in domain:
            self.size *= size
        kept = domain[:n_outer] + domain[n_outer + n_reduced :]
        self.kept = domain if reduction is None else kept
        self.uses_index = expression.uses_index or any(
            place.index is not None and place.index.uses_index for place in reads
        )
        self.is_empty = 0 in self.kept
        self.parts: dict[int, tuple[Loop, Loop]] = {}

    def overlaps(self, references: list[int], storage_of: Sequence[int]) -> bool:
        """Whether it reads what it writes through another access: another iteration's element."""
        target = self.write
        slot = references[target.reference]
        storage = storage_of[slot]
        for place in self.reads:
            if storage_of[references[place.reference]] == storage and not never_meet(place, target):
                same = references[place.reference] == slot and place.index is None
                if not same or place.offset != target.offset or place.strides != target.strides:
                    return True
        return False

    def apart(self, temporary: int) -> tuple[Loop, Loop]:
        """The same in two: into memory of its own, named `temporary`, and from there."""
        found = self.parts.get(temporary)
        if found is None:
            found = self.parts[temporary] = self._apart(temporary)
        return found

    def _apart(self, temporary: int) -> tuple[Loop, Loop]:
        target = self.write
        strides: list[int] = []
        step = 1
        for size in reversed(self.kept):
            strides.insert(0, step)
            step *= size
        first = Loop(
            self.domain, self.reads, self.numbers, self.expression,
            Place(temporary, tuple(strides), 0, target.dtype), self.reduction,
            self.n_outer, self.n_reduced, self.is_columns,
        )  # fmt: skip
        wide = [n for n, size in enumerate(self.kept) if size != 1]
        packed = Place(temporary, tuple([strides[n] for n in wide]), 0, target.dtype)
        written = tuple([target.strides[n] for n in wide])
        second = Loop(
            tuple([self.kept[n] for n in wide]), (packed,), (),
            expression("load", (), target.dtype, 0),
            Place(target.reference, written, target.offset, target.dtype, part=target.part),
        )  # fmt: skip
        return first, second

    def __repr__(self) -> str:
        kind = self.reduction or "map"
        return f"{kind} {self.domain} {self.write} = {self.expression} of {list(self.reads)}"


def trimmed_loop(
    domain: tuple[int, ...],
    reads: Sequence[Place],
    numbers: Sequence[int | SizeNumber],
    body: Expression,
    write: Place,
) -> Loop:
    """A loop that reads what its expression names alone."""
    used: dict[str, dict[int, int]] = {"load": {}, "number": {}}
    memo: dict[Expression, Expression] = {}

    def walk(each: Expression) -> Expression:
        found = memo.get(each)
        if found is None:
            if each.word in used:
                known = used[each.word]
                number = known.setdefault(each.value, len(known))
                found = expression(each.word, (), each.dtype, number)
            elif each.arguments:
                arguments = tuple([walk(one) for one in each.arguments])
                found = expression(each.word, arguments, each.dtype, each.value)
            else:
                found = each
            memo[each] = found
        return found

    body = walk(body)
    return Loop(
        domain, tuple([reads[n] for n in used["load"]]),
        tuple([numbers[n] for n in used["number"]]), body, write,
    )  # fmt: skip


class Native:
    """One native kernel that is no loop nest: product, scatter, sort, scan.

    maker       called at planning with (reads, writes, **attributes), each a Memory; returns the
                steps to run (devices.cpu.steps.NativeStep)
    sources, results   references read and written
    made        what the maker returned under which switches
    """

    __slots__ = (
        "_alone", "attributes", "made", "maker", "reads", "results", "sources", "writes",
    )  # fmt: skip
    is_empty = False

    def __init__(
        self,
        maker: Callable[..., Any],
        reads: tuple[Memory, ...],
        writes: tuple[Memory, ...],
        attributes: dict[str, Any],
    ) -> None:
        self.maker = maker
        self.reads = reads
        self.writes = writes
        self.attributes = attributes
        self.sources = tuple([memory.reference for memory in reads])
        self.results = tuple([memory.reference for memory in writes])
        self.made: dict[tuple[int | None, ...], Any] = {}
        self._alone: dict[int, Native] = {}

    def alone(self, result: int) -> Native:
        """The statement where only this result is read. Its maker takes `wanted`: "both",
        "values" (the first result) or "indices"."""
        found = self._alone.get(result)
        if found is None:
            wanted = {**self.attributes, "wanted": ("values", "indices")[result]}
            found = self._alone[result] = Native(self.maker, self.reads, self.writes, wanted)
            found.results = (self.results[result],)
        return found

    def __repr__(self) -> str:
        return f"{self.maker.__name__} {list(self.writes)} = {list(self.reads)}"


class Memory:
    """A strided operand of a native kernel; offset in elements on top of the view's own."""

    __slots__ = ("dtype", "offset", "reference", "shape", "strides")

    def __init__(
        self,
        reference: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        element: dtype,
    ) -> None:
        self.reference = reference
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = element

    def at(self, reference: int) -> Memory:
        """The same operand in another memory."""
        return Memory(reference, self.shape, self.strides, self.offset, self.dtype)

    def __repr__(self) -> str:
        return f"@{self.reference}+{self.offset}{self.shape}{self.strides}"


Statement = Loop | Native
