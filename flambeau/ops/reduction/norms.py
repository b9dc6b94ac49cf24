"""Vector norms over dims.

Keeps     one formula an order: 0 counts, 1 sums, 2 is a root of squares, the infinities are
          extremes, any other is a power.
Touches   ops.define, reduction.
Not here  matrix norms (linalg)."""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Inferred, Operator, operator, type_name
from flambeau.ops.elementwise.signs import direction
from flambeau.ops.reduction.extremes import reduce_extreme
from flambeau.ops.reduction.moments import squared
from flambeau.ops.reduction.sums import kept

INFINITY: Final = float("inf")


def wider(name: str, given: dtype, wanted: dtype) -> dtype:
    """The dtype asked for, which has to hold what is given."""
    if not (wanted.is_floating_point or wanted.is_complex):
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got {type_name(wanted)}"
        )
    if given.is_complex != wanted.is_complex:
        kind = "complex" if given.is_complex else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got {type_name(wanted)}"
        )
    if promotion.promote_types(given, wanted) is not wanted:
        raise RuntimeError(
            f"{name}: the dtype of the input ({type_name(given)}) should be convertible without "
            f"narrowing to the specified dtype ({type_name(wanted)})"
        )
    return wanted


class VectorNorm(Operator):
    """(sum |x|^ord)^(1 / ord)."""

    def inferred(
        self, input: Layout, order: float, dim: Any, keepdim: bool, wanted: dtype | None
    ) -> Inferred:
        """Layout and attributes; raises torch's errors."""
        name = "linalg.vector_norm"
        if input.dtype.category < 2:
            raise RuntimeError(
                f"{name}: Expected a floating point or complex tensor as input. Got "
                f"{type_name(input)}"
            )
        result = input.dtype if wanted is None else wider(name, input.dtype, wanted)
        if isinstance(order, complex):
            raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
        dims = shapes.reduced_dims(input, dim)
        if order < 0 or order == INFINITY:
            refuse_empty(input, order, dims, dim is None or dim == ())
        shape = shapes.reduced_shape(input.shape, dims, keepdim)
        out = contiguous(shape, result.to_real(), input.device)
        attributes = {"ord": float(order), "dim": dims, "keepdim": keepdim, "dtype": result}
        return Inferred((out,), attributes)

    def lower(self, b: Any, input: Any, ord: float, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        elements = b.convert(b.convert(input, dtype), dtype.compute)
        if ord in (INFINITY, -INFINITY):
            sizes = b.map(lambda k, x: k.abs(x), elements)
            return reduce_extreme(b, "max" if ord > 0 else "min", sizes, dim, keepdim)
        if dtype.is_complex and ord != 2:
            elements = b.map(lambda k, x: k.abs(x), elements)
        total = b.reduce("sum", b.map(_term(ord), elements), dim, keepdim)
        return b.map(_root(ord), total)

    def vjp(
        self, t: Any, grad: Any, input: Any, out: Any, ord: float, dim: Any, keepdim: bool
    ) -> Any:
        grad, norm = (kept(each, dim, keepdim, input.shape) for each in (grad, out))
        if ord == 0:
            return t.zeros_like(input)
        if ord == 1:
            return direction(input) * grad
        if ord == 2:
            return grad * t.masked_fill(input / norm, norm == 0, 0)
        if ord in (INFINITY, -INFINITY):
            is_extreme = input.abs() == norm
            shares = grad / is_extreme.sum(dim, True)
            return t.where(is_extreme, direction(input) * shares, 0)
        if ord < 2:
            slope = direction(input) * t.masked_fill(input.abs().pow(ord - 1), input == 0, 0)
        else:
            slope = input * input.abs().pow(ord - 2)
        return slope * t.masked_fill(grad / norm.pow(ord - 1), norm == 0, 0)


def refuse_empty(input: Layout, order: float, dims: tuple[int, ...], is_whole: bool) -> None:
    """torch's error where there is nothing to take the norm of."""
    for each in dims:
        if not input.shape[each]:
            where = "an empty tensor" if is_whole else f"the dimension {each}"
            blank = " " if is_whole else ""  # torch has none here
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {order:g} norm on {where}{blank}because "
                f"{'the' if is_whole else 'this dimension is empty and the'} operation does not "
                "have an identity"
            )


def _term(order: float) -> Any:
    """What a norm sums."""
    if order == 0:
        return lambda k, x: k.select(k.ne(x, 0.0), k.constant(1.0, k.dtype_of(x)), 0.0)
    if order == 1:
        return lambda k, x: k.abs(x)
    if order == 2:
        return squared
    return lambda k, x: k.pow(k.abs(x), order)


def _root(order: float) -> Any:
    """What a norm does with the sum."""
    if order in (0, 1):
        return lambda k, total: total
    if order == 2:
        return lambda k, total: k.sqrt(total)
    return lambda k, total: k.pow(total, 1 / order)


@operator("vector_norm", function=False, aliases=("linalg.vector_norm",))
class LinalgVectorNorm(VectorNorm):
    """Norm of order `ord` over dims, all of them by default."""

    def infer(
        self,
        input: Layout,
        ord: float = 2,
        dim: Any = None,
        keepdim: bool = False,
        *,
        dtype: dtype | None = None,
    ) -> Inferred:
        return self.inferred(input, ord, dim, keepdim, dtype)

    def samples(self, s: Any) -> list[Any]:
        orders = (2, 1, 0, INFINITY, -INFINITY, 3, 1.5)
        return [s(s.real(3, 4), order, 1) for order in orders] + [s(s.real(3, 4))]


@operator("norm")
class Norm(VectorNorm):
    """torch.norm: the vector norm of order p ("fro" is 2)."""

    def infer(
        self,
        input: Layout,
        p: Any = "fro",
        dim: Any = None,
        keepdim: bool = False,
        dtype: dtype | None = None,
    ) -> Inferred:
        return self.inferred(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 1, 0), s(s.real(2, 3, 4), 2, (0, 1), True)]
