"""Largest and smallest elements over dims, and where they are.

Keeps     NaN wins; the first of equal elements is the one found.
Touches   ops.define, base.shapes.
Not here  the larger of two tensors (elementwise/comparison.py), sorting (indexing/scans.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Inferred, Operator, Reduction, not_implemented, operator
from flambeau.ops.reduction.sums import kept, spread


def comparable(b: Any, value: Any) -> Any:
    """The value in a dtype that max and min take, order unchanged."""
    return b.convert(value, dtypes.uint8 if value.dtype is dtypes.bool_ else value.dtype.compute)


def reduce_extreme(b: Any, kind: str, value: Any, dim: Any, keepdim: bool) -> Any:
    """The extreme, in the value's own dtype."""
    return b.convert(b.reduce(kind, comparable(b, value), dim, keepdim), value.dtype)


def shared_gradient(
    t: Any, grad: Any, input: Any, out: Any, dim: tuple[int, ...], keepdim: bool,
    with_nan: bool = False,
) -> Any:  # fmt: skip
    """The gradient shared out evenly among all elements equal to the extreme; where it is NaN,
    among the NaNs (`with_nan`), or NaN for all, as torch has it."""
    extreme = kept(out, dim, keepdim, input.shape)
    is_extreme = input == extreme
    if with_nan:
        is_extreme = is_extreme | ((input != input) & (extreme != extreme))
    shares = kept(grad, dim, keepdim, input.shape) / is_extreme.sum(dim, True)
    return t.where(is_extreme, shares, 0) if with_nan else shares * is_extreme


class Extreme(Reduction):
    """amax and amin: several dims, the gradient shared among equals."""

    out_refusal = (
        "Expected the dtype for input and out to match, but got {result} for input's dtype and "
        "{given} for out's dtype."
    )
    kernel = "values_cpu"

    def infer(self, input: Layout, dim: Any = (), keepdim: bool = False) -> Inferred:
        if input.dtype.is_complex:
            raise not_implemented(f"{self.kind}_{self.kernel}", input.dtype)
        inferred = super().infer(input, dim, keepdim)
        for each in inferred.attributes["dim"]:
            if input.shape[each] == 0:
                if dim in ((), None):
                    raise RuntimeError(
                        f"{self.name}(): Expected reduction dim to be specified for input.numel() "
                        "== 0. Specify the reduction dim with the 'dim' argument."
                    )
                raise IndexError(
                    f"{self.name}(): Expected reduction dim {each} to have non-zero size."
                )
        return inferred

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        return reduce_extreme(b, self.kind, input, dim, keepdim)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
        return shared_gradient(t, grad, input, out, dim, keepdim)

    def samples(self, s: Any) -> list[Any]:
        return s.reductions()


@operator("amax")
class AMax(Extreme):
    """Largest element over dims."""

    kind = "max"


@operator("amin")
class AMin(Extreme):
    """Smallest element over dims."""

    kind = "min"


class WholeExtreme(Extreme):
    """max and min of all elements."""

    kernel = "all"

    def infer(self, input: Layout) -> Inferred:
        return super().infer(input)

    def vjp(self, t: Any, grad: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
        return shared_gradient(t, grad, input, out, dim, keepdim, with_nan=True)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real()), s(s.real(3, 4).t())]


@operator("max", methods=())
class Max(WholeExtreme):
    """Largest of all elements; torch.max's other forms are max_dim and maximum."""

    kind = "max"


@operator("min", methods=())
class Min(WholeExtreme):
    """Smallest of all elements; torch.min's other forms are min_dim and minimum."""

    kind = "min"


class ExtremeAlong(Operator):
    """(values, indices) along one dim."""

    returns = ("values", "indices")
    kind = ""

    def infer(self, input: Layout, dim: int, keepdim: bool = False) -> Inferred:
        if input.dtype.is_complex:
            raise RuntimeError(f"{self.kind}(): does not support complex input")
        at = shapes.wrap_dim(dim, input.ndim)
        if input.ndim and input.shape[at] == 0:
            raise IndexError(f"{self.kind}(): Expected reduction dim {at} to have non-zero size.")
        dims = (at,) if input.ndim else ()
        shape = shapes.reduced_shape(input.shape, dims, keepdim)
        return Inferred(
            (
                contiguous(shape, input.dtype, input.device),
                contiguous(shape, dtypes.int64, input.device),
            ),
            {"dim": at, "keepdim": keepdim},
        )

    def lower(self, b: Any, input: Any, dim: int, keepdim: bool) -> Any:
        if not input.shape:
            return input, b.full((), 0, dtypes.int64)
        return (
            reduce_extreme(b, self.kind, input, (dim,), keepdim),
            b.reduce(f"arg{self.kind}", comparable(b, input), (dim,), keepdim),
        )

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, indices: Any, dim: int, keepdim: bool
    ) -> Any:
        return t.value_selecting_backward(grad, indices, dim, keepdim, input_layout.shape)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), 1), s(s.real(2, 3, 4), 1, True), s(s.real(), 0)]


@operator("max_dim", function=False)
class MaxAlong(ExtremeAlong):
    """torch.max(input, dim)."""

    kind = "max"


@operator("min_dim", function=False)
class MinAlong(ExtremeAlong):
    """torch.min(input, dim)."""

    kind = "min"


@operator("value_selecting_backward", function=False)
class ValueSelectingBackward(Operator):
    """The gradient at the index that was selected along a dim, 0 elsewhere."""

    def infer(
        self, grad_output: Layout, indices: Layout, dim: int, keepdim: bool, shape: tuple[int, ...]
    ) -> Layout:
        return contiguous(tuple(shape), grad_output.dtype, grad_output.device)

    def lower(
        self, b: Any, grad_output: Any, indices: Any, dim: int, keepdim: bool, shape: Any
    ) -> Any:
        if not shape:
            return grad_output
        if not keepdim:
            grad_output, indices = (b.unsqueeze(each, dim) for each in (grad_output, indices))
        return b.map(
            lambda k, place, index, value: k.select(k.eq(place, index), value, 0),
            b.iota(tuple(shape), dim),
            indices,
            grad_output,
        )

    def vjp(self, t: Any, grad: Any, indices: Any, dim: int, keepdim: bool) -> Any:
        if grad.dim() == 0:
            return grad, None
        if keepdim:
            return grad.gather(dim, indices), None
        return grad.gather(dim, indices.unsqueeze(dim)).squeeze(dim), None

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3), s.index(3, below=4), 1, False, (3, 4)),
            s(s.real(1, 4), s.index(1, 4, below=3), 0, True, (3, 4)),
        ]


class ArgExtreme(Reduction):
    """Position of the extreme along a dim, or among all elements in row-major order."""

    differentiable = False

    def infer(self, input: Layout, dim: int | None = None, keepdim: bool = False) -> Inferred:
        if input.dtype is dtypes.bool_:
            raise RuntimeError(f"{self.name}(): does not support bool input")
        if input.dtype.is_complex:
            raise RuntimeError(f"{self.name}(): does not support complex input")
        if dim is None and input.n_elements == 0:
            raise IndexError(
                f"{self.name}(): Expected reduction dim to be specified for input.numel() == 0."
            )
        inferred = super().infer(input, dim, keepdim, dtype=dtypes.int64)
        for each in inferred.attributes["dim"]:
            if input.shape[each] == 0:
                raise IndexError(
                    f"{self.name}(): Expected reduction dim {each} to have non-zero size."
                )
        return inferred

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        if not dim:
            return b.full(tuple(input.shape), 0, dtypes.int64)
        return b.reduce(self.kind, comparable(b, input), dim, keepdim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), 0), s(s.real(2, 3, 4), -1, True), s(s.real())]


@operator("argmax")
class ArgMax(ArgExtreme):
    """Position of the largest element."""

    kind = "argmax"


@operator("argmin")
class ArgMin(ArgExtreme):
    """Position of the smallest element."""

    kind = "argmin"


@operator("aminmax", returns=("min", "max"))
class AMinMax(Operator):
    """Smallest and largest element along a dim, or of all."""

    def infer(self, input: Layout, *, dim: int | None = None, keepdim: bool = False) -> Inferred:
        if input.dtype.is_complex:
            raise not_implemented("aminmax_cpu", input.dtype)
        if input.n_elements == 0 and dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                "no identity."
            )
        dims = shapes.reduced_dims(input, dim)
        for each in dims:
            if input.shape[each] == 0:
                raise IndexError(f"aminmax: Expected reduction dim {each} to have non-zero size.")
        shape = shapes.reduced_shape(input.shape, dims, keepdim)
        out = contiguous(shape, input.dtype, input.device)
        return Inferred((out, out), {"dim": dims, "keepdim": keepdim})

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool) -> Any:
        return tuple(reduce_extreme(b, kind, input, dim, keepdim) for kind in ("min", "max"))

    def vjp(
        self, t: Any, grad_min: Any, grad_max: Any, input: Any, min: Any, max: Any, dim: Any,
        keepdim: bool,
    ) -> Any:  # fmt: skip
        parts = [
            shared_gradient(t, grad, input, out, dim, keepdim)
            for grad, out in ((grad_min, min), (grad_max, max))
            if grad is not None
        ]
        return parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4)), s(s.real(3, 4), dim=1), s(s.real(3, 4), dim=0, keepdim=True)]


__all__ = ["comparable", "reduce_extreme", "spread"]
