"""Joins and rearrangements: cat, stack, repeat, flip, roll, pad.

Keeps     every element of the result is written once, by parts; the parts' gradients are views.
Touches   ops.define, base.shapes.
Not here  joins by index (gathers.py, scatters.py)."""

from __future__ import annotations

from itertools import product as every
from math import prod
from typing import Any, Final

from flambeau.base import promotion, shapes
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous, layout
from flambeau.ops.define import (
    Inferred,
    Number,
    Operator,
    Sizes,
    Tensors,
    operator,
    where_needed,
)


def _is_skipped(layout: Layout) -> bool:
    """torch skips tensors of shape (0,), whatever the others' dims."""
    return layout.shape == (0,)


# Parts from which a join is one copying kernel instead of a loop a part.
MANY: Final = 32


def are_many(parts: Any, output: Any) -> bool:
    """Whether parts are copied by one kernel: a long list, row-major, nothing to convert."""
    return len(parts) > MANY and all(
        part.dtype is output.dtype
        and part.kind == "memory"
        and contiguous(tuple(part.shape), part.dtype).strides == tuple(part.strides)
        for part in parts
    )


@operator("cat", methods=(), aliases=("concat", "concatenate"))
class Cat(Operator):
    """Tensors after each other along a dim."""

    out_refusal = None

    def infer(self, tensors: Tensors, dim: int = 0) -> Inferred:
        if not tensors:
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        for position, each in enumerate(tensors):
            if each.ndim == 0:
                raise RuntimeError(
                    helped(
                        f"zero-dimensional tensor (at position {position}) cannot be concatenated",
                        fix="torch.stack takes tensors without dims",
                    )
                )
        kept = [each for each in tensors if not _is_skipped(each)]
        first = kept[0] if kept else tensors[0]
        at = shapes.wrap_dim(dim, first.ndim) if kept else 0  # no dim of what is skipped is wrong
        for position, each in enumerate(tensors):
            if not _is_skipped(each):
                _check_part(first, each, at, position)
        total = sum(each.shape[at] for each in kept)
        shape = (*first.shape[:at], total, *first.shape[at + 1 :])
        element = promotion.result_type(tensors)
        return Inferred((contiguous(shape, element, shapes.common_device(tensors)),), {"dim": at})

    def lower(self, b: Any, tensors: Any, dim: int) -> None:
        parts = [each for each in tensors if each.shape != (0,) and 0 not in each.shape]
        if are_many(parts, b.output()):
            b.kernel("joining.join", parts, (b.output(),), dim=dim)
            return
        start = 0
        for piece, each in enumerate(parts):
            b.write(b.narrow(b.output(), dim, start, each.shape[dim]), each, piece)
            start += each.shape[dim]

    def vjp(self, t: Any, grad: Any, tensors_layout: Any, dim: int, needs: Any) -> Any:
        parts = []
        start = 0
        for given, needed in zip(tensors_layout, needs[0], strict=True):
            if _is_skipped(given):
                parts.append(t.zeros((0,), dtype=grad.dtype) if needed else None)
                continue
            length = given.shape[dim]
            parts.append(grad.narrow(dim, start, length) if needed else None)
            start += length
        return (parts,)

    def samples(self, s: Any) -> list[Any]:
        return [s([s.real(2, 3), s.real(4, 3)]), s([s.real(2, 3), s.real(0), s.real(2, 1)], -1)]


def _check_part(first: Layout, each: Layout, dim: int, position: int) -> None:
    if each.ndim != first.ndim:
        raise RuntimeError(
            f"Tensors must have same number of dimensions: got {first.ndim} and {each.ndim}"
        )
    for place, (wanted, size) in enumerate(zip(first.shape, each.shape, strict=True)):
        if place != dim and wanted != size:
            raise RuntimeError(
                helped(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size "
                    f"{wanted} but got size {size} for tensor number {position} in the list.",
                    given=f"{first.shape} and {each.shape}",
                )
            )


@operator("stack", methods=())
class Stack(Operator):
    """Tensors of equal shape along a new dim."""

    out_refusal = None

    def infer(self, tensors: Tensors, dim: int = 0) -> Inferred:
        if not tensors:
            raise RuntimeError("stack expects a non-empty TensorList")
        first = tensors[0]
        at = shapes.wrap_dim(dim, first.ndim + 1)
        for position, each in enumerate(tensors):
            if each.shape != first.shape:
                raise RuntimeError(
                    f"stack expects each tensor to be equal size, but got {list(first.shape)} at "
                    f"entry 0 and {list(each.shape)} at entry {position}"
                )
        shape = (*first.shape[:at], len(tensors), *first.shape[at:])
        element = promotion.result_type(tensors)
        return Inferred((contiguous(shape, element, shapes.common_device(tensors)),), {"dim": at})

    def lower(self, b: Any, tensors: Any, dim: int) -> None:
        if are_many(tensors, b.output()) and 0 not in tensors[0].shape:
            parts = [b.unsqueeze(each, dim) for each in tensors]
            b.kernel("joining.join", parts, (b.output(),), dim=dim)
            return
        for place, each in enumerate(tensors):
            b.write(b.select(b.output(), dim, place), each, place)

    def vjp(self, t: Any, grad: Any, dim: int, needs: Any) -> Any:
        parts = grad.unbind(dim)
        return (list(where_needed(parts, needs[0])),)

    def samples(self, s: Any) -> list[Any]:
        return [s([s.real(2, 3), s.real(2, 3)], 1), s([s.real(), s.real(), s.real()])]


class Stacking(Cat):
    """cat of tensors that get dims where they have too few."""

    def raised(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape with enough dims."""
        raise NotImplementedError

    def join_dim(self, ndim: int) -> int:
        """The dim of the join."""
        raise NotImplementedError

    def infer(self, tensors: Tensors) -> Inferred:
        if not tensors:
            raise RuntimeError(f"{self.name} expects a non-empty TensorList")
        raised = tuple(
            contiguous(self.raised(each.shape), each.dtype, each.device) for each in tensors
        )
        return super().infer(raised, self.join_dim(raised[0].ndim))

    def lower(self, b: Any, tensors: Any, dim: int) -> None:
        super().lower(b, [b.reshape(each, self.raised(each.shape)) for each in tensors], dim)

    def vjp(self, t: Any, grad: Any, tensors_layout: Any, dim: int, needs: Any) -> Any:
        raised = [contiguous(self.raised(each.shape), each.dtype) for each in tensors_layout]
        (parts,) = super().vjp(t, grad, raised, dim, needs)
        pairs = zip(parts, tensors_layout, strict=True)
        return ([part if part is None else part.reshape(each.shape) for part, each in pairs],)


@operator("hstack", methods=())
class HStack(Stacking):
    """Tensors side by side: along dim 1, vectors along dim 0."""

    def raised(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape or (1,)

    def join_dim(self, ndim: int) -> int:
        return 0 if ndim == 1 else 1

    def samples(self, s: Any) -> list[Any]:
        return [s([s.real(2, 3), s.real(2, 1)]), s([s.real(3), s.real()])]


@operator("vstack", methods=(), aliases=("row_stack",))
class VStack(Stacking):
    """Tensors below each other: along dim 0, vectors as rows."""

    def raised(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (2 - len(shape)) + shape

    def join_dim(self, ndim: int) -> int:
        return 0

    def samples(self, s: Any) -> list[Any]:
        return [s([s.real(2, 3), s.real(3)]), s([s.real(), s.real()])]


@operator("repeat", function=False, methods=("repeat",))
class Repeat(Operator):
    """The whole tensor repeated along each dim; new dims in front."""

    out = False

    def checked(self, input: Layout, repeats: Any) -> Inferred:
        """Layout of the result."""
        if len(repeats) < input.ndim:
            raise RuntimeError(
                "Number of dimensions of repeat dims can not be smaller than number of "
                "dimensions of tensor"
            )
        own = (1,) * (len(repeats) - input.ndim) + input.shape
        shape = tuple(size * times for size, times in zip(own, repeats, strict=True))
        negative = next((size for size in shape if size < 0), None)
        if negative is not None:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {negative}: {list(shape)}"
            )
        out = contiguous(shape, input.dtype, input.device)
        return Inferred((out,), {"repeats": tuple(repeats)})

    def infer(self, input: Layout, repeats: Sizes) -> Inferred:
        return self.checked(input, repeats)

    def lower(self, b: Any, input: Any, repeats: Any) -> None:
        out = b.output()
        if 0 in out.shape:
            return
        own = (1,) * (len(repeats) - len(input.shape)) + tuple(input.shape)
        apart = [size for pair in zip(repeats, own, strict=True) for size in pair]
        ones = [size for each in own for size in (1, each)]
        b.write(b.reshape(out, apart), b.expand(b.reshape(input, ones), tuple(apart)))

    def vjp(self, t: Any, grad: Any, input_layout: Any, repeats: Any) -> Any:
        own = (1,) * (len(repeats) - input_layout.ndim) + input_layout.shape
        if 0 in repeats:
            return t.zeros(input_layout.shape, dtype=grad.dtype, device=grad.device)
        apart = [size for pair in zip(repeats, own, strict=True) for size in pair]
        folded = grad.reshape(apart).sum(tuple(range(0, len(apart), 2))) if apart else grad
        return folded.reshape(input_layout.shape)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3), (2, 3)), s(s.real(3), (2, 1, 2)), s(s.real(2), (3,))]


@operator("tile")
class Tile(Repeat):
    """repeat, with 1 for dims that are not named."""

    def infer(self, input: Layout, dims: Sizes) -> Inferred:
        return self.checked(input, (1,) * (input.ndim - len(dims)) + tuple(dims))

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3), (2,)), s(s.real(3), (2, 2))]


@operator("flip")
class Flip(Operator):
    """Elements of some dims in reverse order."""

    out = False

    def infer(self, input: Layout, dims: Sizes) -> Inferred:
        wrapped = shapes.wrap_dims(dims, input.ndim)
        out = layout(input.shape, shapes.like_strides(input), input.dtype, input.device)
        return Inferred((out,), {"dims": wrapped if input.ndim else ()})

    def lower(self, b: Any, input: Any, dims: Any) -> Any:
        return b.flip(input, dims)

    def vjp(self, t: Any, grad: Any, dims: Any) -> Any:
        return grad.flip(dims)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), (0,)), s(s.real(2, 3, 4), (0, -1))]


@operator("roll")
class Roll(Operator):
    """Elements moved along dims, those that fall off coming back at the start."""

    out = False

    def infer(self, input: Layout, shifts: Sizes, dims: Sizes = ()) -> Inferred:
        out = contiguous(input.shape, input.dtype, input.device)
        shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        if not shifts:
            raise RuntimeError("`shifts` required")
        dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
        if not dims and len(shifts) == 1:
            return Inferred((out,), {"shifts": shifts, "dims": dims})
        if len(shifts) != len(dims):
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
            )
        if input.ndim == 0:
            raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
        wrapped = shapes.wrap_dims(dims, input.ndim)
        return Inferred((out,), {"shifts": shifts, "dims": wrapped})

    def lower(self, b: Any, input: Any, shifts: Any, dims: Any) -> None:
        out = b.output()
        if 0 in out.shape:
            return
        if not dims:
            size = prod(input.shape)
            input, out, dims = b.reshape(input, (size,)), b.reshape(out, (size,)), (0,)
        for parts in every(
            *[_rolled(input.shape[dim], by) for dim, by in zip(dims, shifts, strict=True)]
        ):
            source, target = input, out
            for dim, (start, length, place) in zip(dims, parts, strict=True):
                source = b.narrow(source, dim, start, length)
                target = b.narrow(target, dim, place, length)
            b.write(target, source)

    def vjp(self, t: Any, grad: Any, shifts: Any, dims: Any) -> Any:
        return grad.roll(tuple(-each for each in shifts), dims)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 1), s(s.real(3, 4), (1, -2), (0, 1)), s(s.real(5), -7, 0)]


def _rolled(size: int, shift: int) -> list[tuple[int, int, int]]:
    """(start, length, place it goes to) of the one or two parts of a rolled dim."""
    shift %= size
    head = (0, size - shift, shift)
    return [head, (size - shift, shift, 0)] if shift else [head]


@operator("constant_pad_nd", methods=())
class ConstantPad(Operator):
    """`value` around the tensor; pad counts from the last dim, negative numbers cut away."""

    out = False

    def infer(self, input: Layout, pad: Sizes, value: Number = 0) -> Inferred:
        if len(pad) % 2:
            raise RuntimeError("Length of pad must be even but instead it equals "
                               f"{len(pad)}")  # fmt: skip
        if len(pad) // 2 > input.ndim:
            raise RuntimeError(
                "Length of pad should be no more than twice the number of dimensions of the "
                f"input. Pad length is {len(pad)} while the input has {input.ndim} dimensions."
            )
        shape = list(input.shape)
        for position in range(len(pad) // 2):
            dim = input.ndim - 1 - position
            before, after = pad[2 * position], pad[2 * position + 1]
            shape[dim] += before + after
            if shape[dim] < 0:
                raise RuntimeError(
                    f"The input size {input.shape[dim]}, plus negative padding {before} and "
                    f"{after} resulted in a negative output size, which is invalid. Check "
                    f"dimension {dim} of your input."
                )
        out = contiguous(tuple(shape), input.dtype, input.device)
        return Inferred((out,), {"pad": tuple(pad)})

    def lower(self, b: Any, input: Any, pad: Any, value: Any) -> None:
        # The middle shrinks dim by dim; each dim's borders are written around what is left.
        middle = b.output()
        for position in range(len(pad) // 2):
            dim = len(input.shape) - 1 - position
            before, after = pad[2 * position], pad[2 * position + 1]
            cut_before, cut_after = max(-before, 0), max(-after, 0)
            length = max(input.shape[dim] - cut_before - cut_after, 0)
            input = b.narrow(input, dim, cut_before, length)
            start = max(before, 0)
            size = middle.shape[dim]
            for begin, count in ((0, start), (start + length, size - start - length)):
                if count > 0:
                    border = b.narrow(middle, dim, begin, count)
                    b.write(border, b.expand(value, border.shape) if _is_value(value) else value)
            middle = b.narrow(middle, dim, start, length)
        if 0 not in middle.shape:
            b.write(middle, input)

    def vjp(self, t: Any, grad: Any, pad: Any) -> Any:
        return t.constant_pad_nd(grad, tuple(-each for each in pad), 0)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3), (1, 2)), s(s.real(3, 4), (1, -1, -1, 2), 0.5)]


def _is_value(value: Any) -> bool:
    return hasattr(value, "shape")
