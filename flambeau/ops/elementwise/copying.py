"""Copies: to another dtype, into another tensor, of one value to every place.

Keeps     a copy that changes the dtype converts as the vocabulary's `convert` does.
Touches   ops.define.
Not here  views (views), joins (joining)."""

from __future__ import annotations

from typing import Any

from flambeau.base import shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous, layout
from flambeau.base.promotion import COMPLEX, HELD_NAMES
from flambeau.ops.define import Inferred, Operand, Operator, operator


def refuse_complex_value(input: Layout, value: Any) -> None:
    """A tensor of real numbers holds no complex one."""
    is_complex = value is COMPLEX or getattr(value, "dtype", input.dtype).is_complex
    if is_complex and not input.dtype.is_complex:
        raise RuntimeError(
            helped(
                f"value cannot be converted to type {HELD_NAMES[input.dtype.name]} without "
                "overflow",
                given=f"a complex number for {input.dtype}",
                fix="value.real, or input.to(torch.complex64) first",
            )
        )


class Copying(Operator):
    """A fresh tensor with the elements of another."""

    out = False

    def lower(self, b: Any, input: Any, **attributes: Any) -> Any:
        return b.map(lambda k, element: element, input, dtype=attributes.get("dtype"))

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4).t()), s(s.real())]


@operator("convert", function=False)
class Convert(Copying):
    """Elements in another dtype: what `to`, `float`, `long` and so on record."""

    def infer(self, input: Layout, dtype: dtype) -> Layout:
        return layout(input.shape, shapes.like_strides(input), dtype, input.device)

    def lower(self, b: Any, input: Any, dtype: dtype) -> Any:
        return b.convert(input, dtype)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.float64), s(s.real(3, 4).t(), s.float64)]


@operator("clone")
class Clone(Copying):
    """A copy with the same order of dims (preserve_format) or the one that is asked for."""

    def infer(self, input: Layout, *, memory_format: Any = None) -> Layout:
        if memory_format is None or str(memory_format).endswith("preserve_format"):
            return layout(input.shape, shapes.like_strides(input), input.dtype, input.device)
        plain = contiguous(input.shape, input.dtype, input.device)
        return shapes.in_format(plain, memory_format)


@operator("contiguous_copy", function=False)
class ContiguousCopy(Copying):
    """A row-major copy: what `contiguous` records for a tensor that is not."""

    def infer(self, input: Layout) -> Layout:
        return contiguous(input.shape, input.dtype, input.device)


@operator("copy", function=False, methods=("copy_",))
class Copy(Operator):
    """`other`, broadcast and converted: the value that `input.copy_(other)` writes."""

    out = False

    def infer(self, input: Layout, other: Operand, non_blocking: bool = False) -> Inferred:
        given = other.shape if isinstance(other, Layout) else ()
        if shapes.broadcast_shapes(input.shape, given) != input.shape:
            raise RuntimeError(
                f"output with shape {list(input.shape)} doesn't match the broadcast shape "
                f"{list(shapes.broadcast_shapes(input.shape, given))}"
            )
        strides = shapes.like_strides(input)
        out = layout(input.shape, strides, input.dtype, input.device)
        return Inferred((out,), {"shape": input.shape, "dtype": input.dtype})

    def lower(self, b: Any, input: Any, other: Any, shape: Any, dtype: dtype) -> Any:
        return b.convert(b.expand(other, shape), dtype)

    def vjp(self, t: Any, grad: Any, needs: Any) -> Any:
        return t.zeros_like(grad) if needs[0] else None, grad

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(4)), s(s.real(3, 4), s.integer(3, 1))]


@operator("fill", methods=("fill_",))
class Fill(Operator):
    """`value` everywhere: what `input.fill_(value)` writes."""

    out = False

    def infer(self, input: Layout, value: Operand) -> Inferred:
        if isinstance(value, Layout) and value.shape:
            raise RuntimeError(
                helped(
                    "fill_ only supports 0-dimension value tensor but got tensor with "
                    f"{value.ndim} dimensions.",
                    fix="copy_ takes a tensor with dims",
                )
            )
        refuse_complex_value(input, value)
        out = layout(input.shape, shapes.like_strides(input), input.dtype, input.device)
        return Inferred((out,), {"shape": input.shape, "dtype": input.dtype})

    def lower(self, b: Any, input: Any, value: Any, shape: Any, dtype: dtype) -> Any:
        def formula(k: Any, number: Any) -> Any:
            return k.convert(number, dtype.compute)

        return b.map(formula, b.expand(value, shape), dtype=dtype)

    def vjp(self, t: Any, grad: Any, needs: Any) -> Any:
        return t.zeros_like(grad) if needs[0] else None, grad if needs[1] else None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 0.5), s(s.real(3, 4), s.real())]


@operator("zero", function=False, methods=("zero_",))
class Zero(Operator):
    """0 everywhere: what `input.zero_()` writes."""

    out = False

    def infer(self, input: Layout) -> Inferred:
        out = layout(input.shape, shapes.like_strides(input), input.dtype, input.device)
        return Inferred((out,), {"shape": input.shape, "dtype": input.dtype})

    def lower(self, b: Any, input: Any, shape: Any, dtype: dtype) -> Any:
        return b.full(shape, 0, dtype)

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.zeros_like(grad)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4).t())]
