"""From a recorded signature to statements: the builder `b` that Operator.lower speaks to.

Keeps     lowering runs once per signature; nothing in it depends on values or addresses. Every map
          is a statement of its own: the fuser, not the operator, decides what shares a kernel.
Touches   base, codegen.vocabulary, statement.
Not here  fusing (fuse.py), native kernels' makers (devices.cpu)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous_strides
from flambeau.codegen.complex_words import COMPLEX, Pair
from flambeau.codegen.vocabulary import BUILDER, Expression, expression
from flambeau.engine.planning.symbolic.sizes import Size
from flambeau.engine.planning.values import (
    Value,
    Views,
    collapses,
    expanded_strides,
    halves,
    reduction_order,
)
from flambeau.engine.statement import (
    Loop,
    Memory,
    Native,
    Place,
    SizeNumber,
    Statement,
    trimmed_loop,
)

_NUMBERS: Final = ("number", "constant")


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max((len(shape) for shape in shapes), default=0)
    sizes = [1] * rank
    for shape in shapes:
        for position, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                sizes[position] = size
    return tuple(sizes)


class Lowering(Views):
    """The builder `b`. Made for one signature; see the methods (and those of Views) for what an
    operator may say. A complex value is mapped, moved and summed by halves, each a real value."""

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
        return self._store(lambda k, x: x, (value,), value.dtype, value.dtype)

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
        return self._store(formula, values, compute, dtype)

    def convert(self, value: Value, element: dtype) -> Value:
        """Converted element by element, as torch's `.to`."""
        if value.dtype is element:
            return value
        return self._store(lambda k, x: k.convert(x, element), (value,), value.dtype, element)

    def reduce(
        self, kind: str, value: Value, dims: Sequence[int] | None, keepdim: bool = False
    ) -> Value:
        """Fold dimensions away; `dims` None means all of them."""
        axes = set(range(value.ndim)) if dims is None else {d % max(value.ndim, 1) for d in dims}
        kept = tuple(s for d, s in enumerate(value.shape) if d not in axes)
        result = kept
        if keepdim:
            result = tuple(1 if d in axes else s for d, s in enumerate(value.shape))
        if kind in ("argmax", "argmin"):
            element = dtypes.int64
        else:
            element = dtypes.bool_ if kind in ("any", "all") else value.dtype
        if kind == "prod" and value.dtype.is_complex:
            return self.reshape(self._folded(value, axes, kept), result)
        out = self.temporary(kept, element)
        if value.ndim == 0 or not axes:
            self._trivial_reduction(kind, value, out)
        elif value.dtype.is_complex:
            for part, target in zip(self.parts(value), halves(out), strict=True):
                self._reduce_into(kind, lambda k, x: x, [part], axes, target)
        else:
            self._reduce_into(kind, lambda k, x: x, [value], axes, out)
        return self.reshape(out, result)

    def _folded(self, value: Value, axes: set[int], kept: tuple[int, ...]) -> Value:
        """Product of complex numbers: the second half of what is left times the first, again and
        again. The parts of a product need both parts of both, so no reduction says it."""
        count = 1
        for d in axes:
            count *= value.shape[d]
        order = [d for d in range(value.ndim) if d not in axes] + sorted(axes)
        value = self.reshape(self.permute(value, order), (*kept, count))
        if not count:
            return self.memory(self.full(kept, 1, value.dtype))
        while count > 1:
            half = count // 2
            first, second = self.narrow(value, -1, 0, half), self.narrow(value, -1, half, half)
            product = self.map(lambda k, x, y: k.mul(x, y), first, second)
            if count % 2:
                longer = self.temporary((*kept, half + 1), value.dtype)
                self.write(self.narrow(longer, -1, 0, half), product)
                self.write(self.narrow(longer, -1, half, 1), self.narrow(value, -1, count - 1, 1))
                product = longer
            value, count = product, half + count % 2
        return self.select(value, -1, 0)

    def _trivial_reduction(self, kind: str, value: Value, out: Value) -> None:
        formulas: dict[str, Callable[..., Any]] = {
            "sum": lambda k, x: k.add(x, k.constant(0, k.dtype_of(x))),
            "argmax": lambda k, x: k.constant(0, dtypes.int64),
            "argmin": lambda k, x: k.constant(0, dtypes.int64),
        }
        self.write(out, self.map(formulas.get(kind, lambda k, x: x), value))

    def reduce_of(
        self, kind: str, formula: Callable[..., Any], values: Sequence[Value], dims: Sequence[int]
    ) -> Value:
        """Fold a formula of real values, made where it is folded: for what a kernel that goes over
        other dims makes too, which would write it for this one."""
        shape = _broadcast([value.shape for value in values])
        axes = set(dims)
        kept = tuple([size for d, size in enumerate(shape) if d not in axes])
        out = self.temporary(kept, values[0].dtype.compute)
        self._reduce_into(kind, formula, [self.expand(each, shape) for each in values], axes, out)
        return out

    def _reduce_into(
        self, kind: str, formula: Callable[..., Any], values: Sequence[Value], axes: set[int],
        out: Value,
    ) -> None:  # fmt: skip
        last = max(axes) == values[0].ndim - 1
        outer, reduced, inner = reduction_order(values[0].ndim, axes)
        order = outer + reduced + inner
        start, end = len(outer), len(outer) + len(reduced)
        viewed = []
        for value in values:
            each = self.permute(value, order)
            # Reduced or inner dims of several strides that do not collapse are packed first.
            if not (
                collapses(each.shape[start:end], each.strides[start:end])
                and collapses(each.shape[end:], each.strides[end:])
            ):
                each = self.copied(each)
            viewed.append(each)
        kept = [p for p, size in enumerate(viewed[0].shape) if size != 1]
        domain = [viewed[0].shape[p] for p in kept]
        strides = [[each.strides[p] for p in kept] for each in viewed]
        counts = [sum(p < start for p in kept), sum(start <= p < end for p in kept)]
        if not counts[1]:  # every reduced dim has size 1: still a reduction over one element
            domain.insert(counts[0], 1)
            for row in strides:
                row.insert(counts[0], 0)
            counts[1] = 1
        out_strides = dict(zip(sorted(outer + inner), out.strides, strict=True))
        write_strides = [out_strides[order[p]] for p in kept if not start <= p < end]
        reads = tuple([_place(v, tuple(row)) for v, row in zip(viewed, strides, strict=True)])
        loads = [
            BUILDER.convert(expression("load", (), each.dtype, n), each.dtype.compute)
            for n, each in enumerate(viewed)
        ]
        write = _place(out, tuple(write_strides))
        self.statements.append(
            Loop(
                tuple(domain), reads, (), formula(BUILDER, *loads), write,
                kind, counts[0], counts[1], is_columns=not last,
            )
        )  # fmt: skip

    def take(self, value: Value, dim: int, index: Value) -> Value:
        """value.shape[:dim] + index.shape + value.shape[dim+1:]; index int64 in [0, size)."""
        value, index = self.memory(value), self.memory(index)
        dim %= value.ndim
        shape = value.shape[:dim] + index.shape + value.shape[dim + 1 :]
        before, after = len(value.shape[:dim]), len(value.shape[dim + 1 :])
        index_strides = (0,) * before + index.strides + (0,) * after
        base_strides = value.strides[:dim] + (0,) * index.ndim + value.strides[dim + 1 :]
        return self._gather(value, dim, index, shape, index_strides, base_strides)

    def gather(self, value: Value, dim: int, index: Value) -> Value:
        """torch.gather: same rank; result has index's shape."""
        value, index = self.memory(value), self.memory(index)
        if index.ndim == 0:
            index, value = self.unsqueeze(index, 0), self.unsqueeze(value, 0)
            return self.select(self.gather(value, 0, index), 0, 0)
        dim %= index.ndim
        base = tuple(0 if d == dim else s for d, s in enumerate(value.strides))
        return self._gather(value, dim, index, index.shape, index.strides, base)

    def _gather(
        self,
        value: Value,
        dim: int,
        index: Value,
        shape: tuple[int, ...],
        index_strides: tuple[int, ...],
        base_strides: tuple[int, ...],
    ) -> Value:
        out = self.temporary(shape, value.dtype)
        if value.dtype.is_complex:
            for part, target in zip(halves(value), halves(out), strict=True):
                strides = tuple([2 * stride for stride in base_strides])
                self._gather_into(target, part, dim, index, index_strides, strides)
        else:
            self._gather_into(out, value, dim, index, index_strides, base_strides)
        return out

    def _gather_into(
        self,
        out: Value,
        value: Value,
        dim: int,
        index: Value,
        index_strides: tuple[int, ...],
        base_strides: tuple[int, ...],
    ) -> None:
        shape = out.shape
        kept = [d for d, size in enumerate(shape) if size != 1]
        position = BUILDER.convert(expression("load", (), index.dtype, 0), dtypes.int64)
        reads = (
            Place(index.reference, _pick(index_strides, kept), index.offset, index.dtype),
            Place(
                value.reference, _pick(base_strides, kept), value.offset, value.dtype,
                position, value.strides[dim], value.shape[dim], value.part,
            ),
        )  # fmt: skip
        body = expression("load", (), value.dtype, 1)
        write = _place(out, _pick(out.strides, kept))
        self.statements.append(Loop(_pick(shape, kept), reads, (), body, write))

    def product(self, left: Value, right: Value) -> Value:
        """(..., m, k) @ (..., k, n) with broadcast batch dims; fresh contiguous result."""
        element = left.dtype
        if element in dtypes.EIGHT_BITS:
            wide = self.product(*[self.convert(each, element.compute) for each in (left, right)])
            return self.convert(wide, element)
        left, right = self.memory(left), self.memory(right)
        if left.dtype.is_complex:
            (a, b), (c, d) = self.parts(left), self.parts(right)
            products = [self.product(x, y) for x, y in ((a, c), (b, d), (a, d), (b, c))]
            return self.map(
                lambda k, w, x, y, z: k.pair(k.sub(w, x), k.add(y, z)), *products,
                dtype=left.dtype,
            )  # fmt: skip
        batch = _broadcast([left.shape[:-2], right.shape[:-2]])
        left = self.expand(left, batch + left.shape[-2:])
        right = self.expand(right, batch + right.shape[-2:])
        out = self.temporary((*batch, left.shape[-2], right.shape[-1]), left.dtype)
        self.kernel("products.product", (left, right), (out,))
        return out

    def kernel(
        self,
        maker: Callable[..., Any] | str,
        reads: Sequence[Value],
        writes: Sequence[Value],
        **attributes: Any,
    ) -> None:
        """A native kernel that reads and writes strided memory; "file.function" names a maker in
        devices.cpu."""
        if isinstance(maker, str):
            file, _, function = maker.partition(".")
            made: Callable[..., Any] = getattr(
                import_module(f"flambeau.devices.cpu.{file}"), function
            )
        else:
            made = maker
        self.statements.append(
            Native(
                made,
                tuple(_memory(self.memory(value)) for value in reads),
                tuple(_memory(value) for value in writes),
                attributes,
            )
        )

    def write(self, target: Value, value: Any, piece: int | None = None) -> None:
        """Store `value`, broadcast and converted, into the memory `target` names. Pieces of an
        output that do not overlap share kernels where each is given a number."""
        target = target if piece is None else target.as_piece(piece)
        if target.reference >= self.n_operands:
            self.written_outputs.add(target.reference - self.n_operands)
        element = target.dtype
        source = value.dtype if isinstance(value, Value) else element
        self._store(lambda k, x: k.convert(x, element), (value,), source, element, target)

    def _store(
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
            shape = _broadcast([value.shape for value in tensors])
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
        domain = _pick(shape, kept)
        bodies = [(body, out)]
        if isinstance(body, Pair):
            bodies = list(zip((body.real, body.imag), halves(out), strict=True))
        for each, part in bodies:
            write = _place(part, _pick(tuple(expanded_strides(part, shape)), kept))
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
        strides = _pick(tuple(expanded_strides(value, shape)), kept)
        reads.append(_place(value, strides))
        return expression("load", (), value.dtype, len(reads) - 1)


def _place(value: Value, strides: tuple[int, ...]) -> Place:
    return Place(value.reference, strides, value.offset, value.dtype, part=value.part)


def _constant_dtype(value: Any) -> dtype:
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, complex):
        return dtypes.complex128
    return dtypes.int64 if isinstance(value, int) else dtypes.float64


def _pick(items: tuple[int, ...], positions: list[int]) -> tuple[int, ...]:
    return tuple([items[p] for p in positions])


def _memory(value: Value) -> Memory:
    return Memory(value.reference, value.shape, value.strides, value.offset, value.dtype)


class Lowered:
    """Statements of one signature; references are operands, then outputs, then temporaries."""

    __slots__ = ("n_operands", "n_outputs", "statements", "temporaries")

    def __init__(
        self,
        statements: list[Statement],
        n_operands: int,
        n_outputs: int,
        temporaries: list[tuple[int, dtype]],
    ) -> None:
        self.statements = statements
        self.n_operands = n_operands
        self.n_outputs = n_outputs
        self.temporaries = temporaries
