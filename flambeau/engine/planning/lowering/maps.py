"""Values an operator speaks of and statements element by element: half of the builder `b`.

Keeps     every map is a statement of its own; a complex value is mapped by halves, each real.
Touches   base, codegen (vocabulary, complex_words), statement, values.
Not here  reductions, gathers, products and native kernels (lower.py), views (values.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous_strides
from flambeau.codegen.complex_words import COMPLEX, Pair
from flambeau.codegen.vocabulary import BUILDER, Expression, expression
from flambeau.engine.planning.lowering.values import Value, Views, expanded_strides, halves
from flambeau.engine.planning.symbolic.sizes import Size
from flambeau.engine.statement import Loop, Place, SizeNumber, Statement, trimmed_loop

_NUMBERS: Final = ("number", "constant")


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all broadcast to; inference has seen to it that they do."""
    rank = max((len(shape) for shape in shapes), default=0)
    sizes = [1] * rank
    for shape in shapes:
        for position, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                sizes[position] = size
    return tuple(sizes)


class Maps(Views):
    """Values, and statements that go over them element by element."""

    def __init__(
        self,
        layouts: tuple[Layout, ...],
        outputs: tuple[Layout, ...],
        targets: tuple[int, ...] = (),
    ) -> None:
        n_operands = len(layouts)
        self.layouts = layouts
        self.targets = targets
        # Results that are written by parts before they are stored into their targets.
        self.results: dict[int, Value] = {}
        self.statements: list[Statement] = []
        self.n_operands = n_operands
        self.outputs = outputs
        self.temporaries: list[tuple[int, dtype]] = []  # (elements, dtype)
        self.written_outputs: set[int] = set()

    # Values ------------------------------------------------------------------

    def operand(self, number: int, layout: Layout) -> Value:
        """Operand `number` as memory."""
        return Value("memory", layout.shape, layout.dtype, number, layout.strides, 0)

    def number(self, index: int, element: dtype) -> Value:
        """Run-time number `index` of the record, int64 or float64."""
        return Value("number", (), element, payload=index)

    def size_number(self, value: Any, element: dtype) -> Value:
        """A number that follows from sizes: part of the plan, never of the kernel."""
        is_size = isinstance(value, Size)
        is_float = element.category >= 2 or (value.is_float if is_size else type(value) is float)
        if is_size:
            made = value.as_float() if is_float else value
        else:
            made = float(value) if is_float else int(value)
        kept = dtypes.float64 if is_float else dtypes.int64
        return Value("number", (), kept, payload=SizeNumber(made, is_float))

    def full(self, shape: tuple[int, ...], value: Any, element: dtype) -> Value:
        """The same constant everywhere."""
        if isinstance(value, Size):
            value = float(value) if value.is_float else int(value)
        return Value("constant", shape, element, payload=value)

    def iota(self, shape: tuple[int, ...], dim: int) -> Value:
        """int64 position along `dim` at every place of `shape`."""
        return Value("iota", shape, dtypes.int64, payload=dim)

    def output(self, number: int = 0) -> Value:
        """Memory of output `number`, to be written by parts with `write`. Where the output goes
        into an operand, which may be read meanwhile, memory of its own."""
        if self.targets:
            if number not in self.results:
                given = self.layouts[self.targets[number]]
                self.results[number] = self.temporary(given.shape, given.dtype)
            return self.results[number]
        layout = self.outputs[number]
        reference = self.n_operands + number
        return Value("memory", layout.shape, layout.dtype, reference, layout.strides, 0)

    def updated(self, value: Value) -> Value:
        """Memory that holds `value`, to be written to in part: an operand that is written in
        place as it is, else a copy."""
        if value.kind == "memory" and value.reference in self.targets:
            return value
        return self.copied(value)

    def copied(self, value: Value) -> Value:
        """The value in fresh contiguous memory."""
        return self._stored(lambda k, x: x, (value,), value.dtype, value.dtype)

    def temporary(self, shape: tuple[int, ...], element: dtype) -> Value:
        """Fresh contiguous memory that lives within the segment."""
        count = 1
        for size in shape:
            count *= size
        reference = self.n_operands + len(self.outputs) + len(self.temporaries)
        self.temporaries.append((count, element))
        return Value("memory", shape, element, reference, contiguous_strides(shape), 0)

    def memory(self, value: Value) -> Value:
        """The value as memory; numbers, constants and positions are written out."""
        return value if value.kind == "memory" else self.map(lambda k, x: x, value)

    def parts(self, value: Value) -> tuple[Value, Value]:
        """Real and imaginary part of a complex value."""
        return halves(self.memory(value))

    # Statements --------------------------------------------------------------

    def map(
        self,
        formula: Callable[..., Any],
        *values: Any,
        compute: dtype | None = None,
        dtype: dtype | None = None,
    ) -> Value:
        """Element by element over the broadcast shape; see Operator.lower."""
        return self._stored(formula, values, compute, dtype)

    def convert(self, value: Value, element: dtype) -> Value:
        """Converted element by element, as torch's `.to`."""
        if value.dtype is element:
            return value
        return self._stored(lambda k, x: k.convert(x, element), (value,), value.dtype, element)

    def write(self, target: Value, value: Any, piece: int | None = None) -> None:
        """Store `value`, broadcast and converted, into the memory `target` names. Pieces of an
        output that do not overlap share kernels where each is given a number."""
        target = target if piece is None else target.as_piece(piece)
        if target.reference >= self.n_operands:
            self.written_outputs.add(target.reference - self.n_operands)
        element = target.dtype
        source = value.dtype if isinstance(value, Value) else element
        self._stored(lambda k, x: k.convert(x, element), (value,), source, element, target)

    def _stored(
        self,
        formula: Callable[..., Any],
        values: Sequence[Any],
        compute: dtype | None,
        result: dtype | None,
        target: Value | None = None,
    ) -> Value:
        shape = target.shape if target is not None else None
        tensors = [value for value in values if isinstance(value, Value)]
        if shape is None:
            shape = broadcast([value.shape for value in tensors])
        kept = [d for d, size in enumerate(shape) if size != 1]
        reads: list[Place] = []
        numbers: list[int | SizeNumber] = []
        operands: list[Any] = []
        kinds = [compute, result, *[v.dtype for v in tensors]]
        is_complex = any(kind is not None and kind.is_complex for kind in kinds)
        words = COMPLEX if is_complex else BUILDER
        # Numbers take the dtype of the values beside them.
        beside = next((v.dtype.compute for v in tensors if v.kind not in _NUMBERS), None)
        for value in values:
            leaf = self._leaf(value, shape, kept, reads, numbers)
            wanted = compute
            if wanted is None and isinstance(value, Value):
                wanted = beside if value.kind in _NUMBERS and beside else value.dtype.compute
            operands.append(words.convert(leaf, wanted) if wanted is not None else leaf)
        body = formula(words, *operands)
        if not isinstance(body, (Expression, Pair)):
            body = words.constant(body, result or compute or dtypes.float32)
        element = result or body.dtype
        body = words.convert(body, element)
        out = target if target is not None else self.temporary(shape, element)
        domain = pick(shape, kept)
        bodies = [(body, out)]
        if isinstance(body, Pair):
            bodies = list(zip((body.real, body.imag), halves(out), strict=True))
        for each, part in bodies:
            write = place_of(part, pick(tuple(expanded_strides(part, shape)), kept))
            if is_complex:
                self.statements.append(trimmed_loop(domain, reads, numbers, each, write))
            else:
                self.statements.append(Loop(domain, tuple(reads), tuple(numbers), each, write))
        return out

    def _leaf(
        self,
        value: Any,
        shape: tuple[int, ...],
        kept: list[int],
        reads: list[Place],
        numbers: list[int | SizeNumber],
    ) -> Any:
        if not isinstance(value, Value):
            if isinstance(value, Size):
                value = float(value) if value.is_float else int(value)
            return COMPLEX.constant(value, _constant_dtype(value))
        if value.kind == "constant":
            return COMPLEX.constant(value.payload, value.dtype)
        if value.dtype.is_complex:
            parts = halves(value)
            real, imag = (self._leaf(each, shape, kept, reads, numbers) for each in parts)
            return Pair(real, imag, value.dtype)
        if value.kind == "number":
            numbers.append(value.payload)
            return expression("number", (), value.dtype, len(numbers) - 1)
        if value.kind == "iota":
            dim = value.payload + len(shape) - len(value.shape)
            if dim not in kept:
                return BUILDER.constant(0, dtypes.int64)
            return expression("index", (), dtypes.int64, kept.index(dim))
        strides = pick(tuple(expanded_strides(value, shape)), kept)
        reads.append(place_of(value, strides))
        return expression("load", (), value.dtype, len(reads) - 1)


def place_of(value: Value, strides: tuple[int, ...]) -> Place:
    """Where a statement reads or writes the value, by strides of its own dims."""
    return Place(value.reference, strides, value.offset, value.dtype, part=value.part)


def _constant_dtype(value: Any) -> dtype:
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, complex):
        return dtypes.complex128
    return dtypes.int64 if isinstance(value, int) else dtypes.float64


def pick(items: tuple[int, ...], positions: list[int]) -> tuple[int, ...]:
    """The items at these positions."""
    return tuple([items[p] for p in positions])
