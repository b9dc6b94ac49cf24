"""group_norm: a row is a group of an image's channels, weight and bias are one a channel.

Keeps     moments, formulas and the gradient are layer_norm's (normalization.py).
Touches   ops.define, rows.normalization.
Not here  torch's checks of sizes (nn/functions/normalization.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import shapes
from flambeau.base.layout import contiguous
from flambeau.ops.define import (
    Inferred,
    Operator,
    OptionalTensor,
    Tensor,
    operator,
    where_needed,
)
from flambeau.ops.rows.batch_normalization import by_channel, channel_dims
from flambeau.ops.rows.normalization import (
    affine,
    check_parameters,
    normalised,
    normalised_gradient,
    standardised,
    standardised_gradient,
    statistics,
)


def groups_of(shape: Any, n_groups: int) -> tuple[int, int, int]:
    """(images, groups, elements of a group)."""
    n_images, n_channels, *rest = shape
    return n_images, n_groups, prod((n_channels // n_groups, *rest))


@operator("group_norm_rows", function=False, returns=("output", "centre", "rest", "scale"))
class GroupNorm(Operator):
    """Mean 0 and variance 1 over groups of channels, then weight and bias a channel (Wu and He,
    2018); for the gradient the mean in two parts and 1 / sqrt(var + eps)."""

    def infer(
        self, input: Tensor, n_groups: int, weight: OptionalTensor, bias: OptionalTensor,
        eps: float,
    ) -> Inferred:  # fmt: skip
        check_parameters("GroupNormKernelImpl", input, weight, bias)
        given = [each for each in (input, weight, bias) if each is not None]
        out = contiguous(input.shape, input.dtype, shapes.common_device(given))
        kept = contiguous((input.shape[0], n_groups, 1), input.dtype.compute, input.device)
        return Inferred((out, kept, kept, kept), {"n_groups": n_groups, "eps": float(eps)})

    def lower(self, b: Any, input: Any, weight: Any, bias: Any, n_groups: int, eps: float) -> Any:
        element = input.dtype.compute
        if 0 in input.shape:
            number = b.full((input.shape[0], n_groups, 1), 0.0, element)
            return b.convert(input, element), number, number, number
        rows = b.reshape(input, groups_of(input.shape, n_groups))
        numbers = statistics(b, rows, (2,), eps)
        hat = b.reshape(normalised(b, rows, *numbers), tuple(input.shape))
        ndim = len(input.shape)
        output = affine(b, hat, by_channel(b, weight, ndim), by_channel(b, bias, ndim))
        return output, *numbers

    def vjp(
        self, t: Any, grad_output: Any, input: Any, weight: Any, centre: Any, rest: Any,
        scale: Any, n_groups: int, eps: float, needs: Any,
    ) -> Any:  # fmt: skip
        grad = grad_output
        if grad is None:
            return None, None, None
        if not t.is_grad_enabled():
            parts = t.group_norm_backward(grad, input, weight, centre, rest, scale, n_groups)
            return where_needed(parts, needs)
        rows = input.reshape(groups_of(input.shape, n_groups))
        hat, scale = standardised(rows, 2, eps)
        inner = grad
        if weight is not None:
            inner = inner * weight.view([-1] + [1] * (input.dim() - 2))
        inner = inner.reshape(rows.shape)
        into_input = standardised_gradient(inner, hat, scale, 2)
        dims = channel_dims(input.dim())
        return (
            into_input.reshape(input.shape) if needs[0] else None,
            (grad * hat.reshape(input.shape)).sum(dims) if needs[1] else None,
            grad.sum(dims) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 4), 2, s.real(4), s.real(4), 1e-5),
            s(s.real(2, 6, 3), 3, None, None, 1e-5),
            s(s.real(2, 4, 3, 2), 1, s.real(4), None, 1e-5),
        ]


@operator("group_norm_backward", function=False, returns=("grad_input", "grad_weight", "grad_bias"))
class GroupNormBackward(Operator):
    """Gradients of group_norm; those nobody reads are not computed."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, input: Tensor, weight: OptionalTensor, centre: Tensor,
        rest: Tensor, scale: Tensor, n_groups: int,
    ) -> Any:  # fmt: skip
        element = input.dtype if weight is None else weight.dtype
        parameter = contiguous((input.shape[1],), element, input.device)
        return contiguous(input.shape, input.dtype, input.device), parameter, parameter

    def lower(
        self, b: Any, grad_output: Any, input: Any, weight: Any, centre: Any, rest: Any,
        scale: Any, n_groups: int,
    ) -> Any:  # fmt: skip
        shape, ndim = tuple(input.shape), len(input.shape)
        grad = b.convert(grad_output, grad_output.dtype.compute)
        if 0 in shape:
            zero = b.full((shape[1],), 0.0, grad.dtype)
            return grad, zero, zero
        groups = groups_of(shape, n_groups)
        rows = normalised(b, b.reshape(input, groups), centre, rest, scale)
        hat = b.reshape(rows, shape)
        inner = b.reshape(affine(b, grad, by_channel(b, weight, ndim), None), groups)
        product = b.map(lambda k, g, h: k.mul(g, h), inner, rows)
        into_input = normalised_gradient(b, inner, product, None, rows, scale, (2,))
        dims = channel_dims(ndim)
        into_weight = b.reduce("sum", b.map(lambda k, g, h: k.mul(g, h), grad, hat), dims)
        return b.reshape(into_input, shape), into_weight, b.reduce("sum", grad, dims)

    def samples(self, s: Any) -> list[Any]:
        numbers = [s.real(3, 2, 1) for _ in range(3)]
        return [s(s.real(3, 4), s.real(3, 4), s.real(4), *numbers, 2)]
