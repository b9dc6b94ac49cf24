"""From a recorded signature to statements: the builder `b` that Operator.lower speaks to.

Keeps     lowering runs once per signature; nothing in it depends on values or addresses. Every map
          is a statement of its own: the fuser, not the operator, decides what shares a kernel.
Touches   maps.py, codegen.vocabulary, statement.
Not here  maps (maps.py), fusing (fuse.py), native kernels' makers (devices.cpu)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.vocabulary import BUILDER, expression
from flambeau.engine.planning.lowering.maps import Maps, broadcast, pick, place_of
from flambeau.engine.planning.lowering.values import Value, collapses, halves, reduction_order
from flambeau.engine.statement import Loop, Memory, Native, Place, Statement


class Lowering(Maps):
    """The builder `b`. Made for one signature; see the methods (and those of Maps and Views) for
    what an operator may say. A complex value is mapped, moved and summed by halves, each a real
    value."""

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
        shape = broadcast([value.shape for value in values])
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
        reads = tuple([place_of(v, tuple(row)) for v, row in zip(viewed, strides, strict=True)])
        loads = [
            BUILDER.convert(expression("load", (), each.dtype, n), each.dtype.compute)
            for n, each in enumerate(viewed)
        ]
        write = place_of(out, tuple(write_strides))
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
            Place(index.reference, pick(index_strides, kept), index.offset, index.dtype),
            Place(
                value.reference, pick(base_strides, kept), value.offset, value.dtype,
                position, value.strides[dim], value.shape[dim], value.part,
            ),
        )  # fmt: skip
        body = expression("load", (), value.dtype, 1)
        write = place_of(out, pick(out.strides, kept))
        self.statements.append(Loop(pick(shape, kept), reads, (), body, write))

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
        batch = broadcast([left.shape[:-2], right.shape[:-2]])
        left = self.expand(left, batch + left.shape[-2:])
        right = self.expand(right, batch + right.shape[-2:])
        out = self.temporary((*batch, left.shape[-2], right.shape[-1]), left.dtype)
        self.kernel("products.product", (left, right), (out,))
        return out

    def kernel(
        self,
        maker: str,
        reads: Sequence[Value],
        writes: Sequence[Value],
        **attributes: Any,
    ) -> None:
        """A native kernel that reads and writes strided memory; "file.function" names a maker in
        devices.cpu."""
        file, _, function = maker.partition(".")
        self.statements.append(
            Native(
                getattr(import_module(f"flambeau.devices.cpu.{file}"), function),
                tuple(_memory(self.memory(value)) for value in reads),
                tuple(_memory(value) for value in writes),
                attributes,
            )
        )


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
