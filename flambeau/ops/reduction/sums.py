"""Sums, products and counts over dims.

Keeps     integers and bool sum to int64; float16 and bfloat16 accumulate in float32; the order of a
          sum follows from the logical positions alone (codegen/loops.py).
Touches   ops.define, base.shapes.
Not here  running sums (indexing/scans.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Inferred, Reduction, operator


def spread(grad: Any, dim: tuple[int, ...], keepdim: bool, shape: tuple[int, ...]) -> Any:
    """The gradient (or another reduced value) seen at every place that was reduced."""
    return kept(grad, dim, keepdim, shape).expand(shape)


def kept(value: Any, dim: tuple[int, ...], keepdim: bool, shape: tuple[int, ...]) -> Any:
    """A reduced value with its reduced dims as 1, as keepdim=True would give it."""
    if keepdim or len(dim) == len(shape):
        return value
    return value.view([1 if each in dim else size for each, size in enumerate(shape)])


def n_reduced(shape: tuple[int, ...], dim: tuple[int, ...]) -> int:
    """Number of elements that fold into one."""
    return prod([shape[each] for each in dim])


class SumLike(Reduction):
    """A reduction that makes integers and bool int64."""

    out_refusal = None
    follows_out = True

    def result_dtype(self, given: dtype, wanted: dtype | None) -> dtype:
        if wanted is not None:
            return wanted
        return dtypes.int64 if given.category < 2 else given

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        if dtype is dtypes.bool_:  # of truths a sum is whether any holds, a product whether all do
            kind = "any" if self.kind == "sum" else "all"
            return b.reduce(kind, b.convert(input, dtype), dim, keepdim)
        elements = b.convert(b.convert(input, dtype), dtype.compute)
        return b.reduce(self.kind, elements, dim, keepdim)


@operator("sum")
class Sum(SumLike):
    """Sum over dims, all of them by default."""

    kind = "sum"

    def vjp(self, t: Any, grad: Any, input_layout: Any, dim: Any, keepdim: bool) -> Any:
        return spread(grad, dim, keepdim, input_layout.shape)

    def samples(self, s: Any) -> list[Any]:
        return s.reductions()


@operator("nansum", aliases=())
class NanSum(SumLike):
    """Sum over dims, NaN counted as 0."""

    kind = "sum"

    def result_dtype(self, given: dtype, wanted: dtype | None) -> dtype:
        if given.is_complex:
            raise RuntimeError("nansum on CPU does not support complex inputs")
        return super().result_dtype(given, wanted)

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        if input.dtype.is_floating_point:
            input = b.map(lambda k, x: k.select(k.isnan(x), 0.0, x), input, dtype=input.dtype)
        return super().lower(b, input, dim, keepdim, dtype)

    def vjp(self, t: Any, grad: Any, input: Any, dim: Any, keepdim: bool) -> Any:
        whole = spread(grad, dim, keepdim, input.shape)
        return t.masked_fill(whole, t.isnan(input), 0)

    def samples(self, s: Any) -> list[Any]:
        return s.reductions()


@operator("prod")
class Product(SumLike):
    """Product over a dim, or of all elements."""

    kind = "prod"
    holomorphic = True

    def vjp(self, t: Any, grad: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
        # A product with one zero still moves with that zero: by the product of the others.
        grad, out = (kept(each, dim, keepdim, input.shape) for each in (grad, out))
        zeros = input == 0
        n_zeros = zeros.sum(dim, True)
        others = t.prod_dims(t.masked_fill(input, zeros, 1), dim, True)
        at_zero = t.logical_and(zeros, n_zeros == 1)
        # Beside zeros nothing moves, whatever the others' product would overflow to.
        beside = t.where(t.isnan(others), others, 0)
        slope = t.where(n_zeros == 0, out / t.masked_fill(input, zeros, 1), beside)
        slope = t.where(at_zero, others, slope)
        if t.is_grad_enabled():
            # Beside one zero, and at each of two, 0 by the product of the rest: it depends on that
            # zero.
            only_zeros = t.where(zeros, input, 0)
            other_zero = only_zeros.sum(dim, True) - only_zeros
            rest = others / t.masked_fill(input, zeros, 1)
            depends = n_zeros == t.where(zeros, 2, 1)
            slope = t.where(depends, rest * other_zero, slope)
        return grad * slope

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 1), s(s.real(2, 3, 4), 0, True)]


@operator("prod_dims", function=False)
class ProductDims(Product):
    """Product over several dims at once, for gradients."""


def part_by_part(k: Any, total: Any, count: Any) -> Any:
    """A sum divided by a real number: of a complex one each part."""
    if not k.dtype_of(total).is_complex:
        return k.div(total, count)
    count = k.real(count)
    return k.pair(k.div(k.real(total), count), k.div(k.imag(total), count))


@operator("mean")
class Mean(Reduction):
    """Sum over dims divided by the number of elements."""

    out_refusal = None

    def result_dtype(self, given: dtype, wanted: dtype | None) -> dtype:
        result = wanted or given
        if result.category < 2:
            name = promotion.SCALAR_TYPE_NAMES[result.name]
            kind = "Input" if wanted is None else "Optional"
            raise RuntimeError(
                helped(
                    "mean(): could not infer output dtype. Input dtype must be either a floating "
                    f"point or complex dtype. Got: {name}"
                    if kind == "Input"
                    else "mean(): could not infer output dtype. Optional dtype must be either a "
                    f"floating point or complex dtype. Got: {name}",
                    fix="mean(dtype=torch.float32), or x.float() first",
                )
            )
        return result

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        elements = b.convert(b.convert(input, dtype), dtype.compute)
        count = b.size_number(n_reduced(input.shape, dim), dtype.compute)
        total = b.reduce("sum", elements, dim, keepdim)
        return b.map(part_by_part, total, count)

    def vjp(self, t: Any, grad: Any, input_layout: Any, dim: Any, keepdim: bool) -> Any:
        count = n_reduced(input_layout.shape, dim) or 1  # of no elements nothing is divided
        return spread(grad / count, dim, keepdim, input_layout.shape)

    def samples(self, s: Any) -> list[Any]:
        return s.reductions()


@operator("count_nonzero", out=False, differentiable=False)
class CountNonzero(Reduction):
    """Number of elements that are not 0."""

    def infer(self, input: Layout, dim: Any = None) -> Inferred:
        return super().infer(input, dim, False, dtype=dtypes.int64)

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        nonzero = b.map(lambda k, x: k.convert(k.ne(x, 0), dtypes.int64), byte(b, input))
        return b.reduce("sum", nonzero, dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.integer(3, 4)), s(s.integer(3, 4), 1), s(s.boolean(3, 4))]


def byte(b: Any, value: Any) -> Any:
    """bool as uint8, others as they are: arithmetic words take no bool."""
    return b.convert(value, dtypes.uint8) if value.dtype is dtypes.bool_ else value


class Quantifier(Reduction):
    """any and all: bool, or uint8 for uint8."""

    out_refusal = "{name} only supports bool tensor for result, got: {given}"

    def takes_out(self, result: dtype, given: dtype) -> bool:
        return given is dtypes.bool_ or given is dtypes.uint8

    differentiable = False

    def infer(self, input: Layout, dim: Any = None, keepdim: bool = False) -> Inferred:
        wanted = dtypes.uint8 if input.dtype is dtypes.uint8 else dtypes.bool_
        if dim == ():  # unlike a sum's, these mean no dims at all
            out = contiguous(input.shape, wanted, input.device)
            return Inferred((out,), {"dim": (), "keepdim": keepdim, "dtype": wanted})
        return super().infer(input, dim, keepdim, dtype=wanted)

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        truth = b.convert(input, dtypes.bool_)
        if not dim and input.shape:
            return b.convert(truth, dtype)
        return b.convert(b.reduce(self.kind, truth, dim, keepdim), dtype)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.boolean(3, 4)), s(s.integer(3, 4), 1), s(s.boolean(2, 3, 4), (0, 2), True)]


@operator("any")
class AnyTrue(Quantifier):
    """Whether at least one element is not 0."""

    kind = "any"


@operator("all")
class AllTrue(Quantifier):
    """Whether no element is 0."""

    kind = "all"
