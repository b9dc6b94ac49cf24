"""batch_norm: channels of a batch, by the batch's own moments or by given ones.

Keeps     moments in two corrected passes (reduction/moments.py). Where gradients of gradients are
          wanted, vjp is made of plain operators, else it is one operator.
Touches   ops.define, rows.normalization, reduction.sums.
Not here  running averages (nn/functional.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import shapes
from flambeau.base.errors import helped
from flambeau.base.layout import contiguous
from flambeau.ops.define import (
    Inferred,
    Operator,
    OptionalTensor,
    Tensor,
    operator,
    where_needed,
)
from flambeau.ops.reduction.sums import n_reduced
from flambeau.ops.rows.normalization import (
    affine,
    check_parameters,
    normalised,
    standardised,
    standardised_gradient,
)


def channel_dims(ndim: int) -> tuple[int, ...]:
    """All dims but the channels', which is dim 1."""
    return tuple(dim for dim in range(ndim) if dim != 1)


def by_channel(b: Any, value: Any, ndim: int) -> Any:
    """A vector over channels, to broadcast over (N, C, ...)."""
    return None if value is None else b.reshape(value, (value.shape[0], *(1,) * (ndim - 2)))


def channel_sum(b: Any, value: Any) -> Any:
    """Sums over all but the channels, reduced dims kept as 1: of every image's channel, then over
    the images. Rows of an image lie together; channels are far apart from image to image."""
    if len(value.shape) > 2:
        value = b.reduce("sum", value, tuple(range(2, len(value.shape))), True)
    return b.reduce("sum", value, (0,), True)


def channel_sum_of(b: Any, formula: Any, values: Any) -> Any:
    """channel_sum of a formula, made where it is summed: kernels that go over the elements again
    make it again, and read no more for it."""
    ndim = max(len(each.shape) for each in values)
    if ndim == 2:
        total = b.reduce_of("sum", formula, values, (0,))
    else:
        total = b.reduce("sum", b.reduce_of("sum", formula, values, range(2, ndim)), (0,))
    return by_channel(b, total, ndim)


def channel_count(b: Any, value: Any, less: int = 0) -> Any:
    """How many elements a channel has, less some."""
    return b.size_number(n_reduced(value.shape, channel_dims(len(value.shape))) - less, value.dtype)


def not_of_channels(name: str, channels: int, n_elements: int) -> RuntimeError:
    """torch's error for running statistics and parameters of another number of channels."""
    return RuntimeError(
        helped(
            f"{name} should contain {channels} elements not {n_elements}",
            given=f"an input of {channels} channels in dim 1",
            fix=f"num_features={channels} where the layer is made",
        )
    )


@operator(
    "batch_norm_train", function=False,
    returns=("output", "mean", "var", "centre", "rest", "scale"),
)  # fmt: skip
class BatchNormTrain(Operator):
    """Mean 0 and variance 1 per channel over the batch; also the mean and the unbiased variance,
    for the running averages (Ioffe and Szegedy, 2015), and for the gradient the mean in two parts
    and 1 / sqrt(var + eps)."""

    def infer(
        self, input: Tensor, weight: OptionalTensor, bias: OptionalTensor, eps: float
    ) -> Inferred:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        check_parameters("batch_norm", input, weight, bias)
        n_values = input.n_elements // max(input.shape[1], 1)
        if n_values <= 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"torch.Size({list(input.shape)})"
            )
        given = [each for each in (input, weight, bias) if each is not None]
        out = contiguous(input.shape, input.dtype, shapes.common_device(given))
        kept = contiguous((input.shape[1],), input.dtype.compute, input.device)
        return Inferred((out, kept, kept, kept, kept, kept), {"eps": float(eps)})

    def lower(self, b: Any, input: Any, weight: Any, bias: Any, eps: float) -> Any:
        ndim = len(input.shape)
        elements = b.convert(input, input.dtype.compute)
        count = channel_count(b, elements)
        mean = b.map(lambda k, s, n: k.div(s, n), channel_sum(b, elements), count)
        away = b.map(lambda k, x, m: k.sub(x, m), elements, mean)
        rest = b.map(lambda k, s, n: k.div(s, n), channel_sum(b, away), count)
        squares = channel_sum(b, b.map(lambda k, d: k.mul(d, d), away))
        squares = b.map(
            lambda k, s, r, n: k.max(k.sub(s, k.mul(k.mul(r, r), n)), 0.0), squares, rest, count
        )
        scale = b.map(lambda k, s, n: k.div(1.0, k.sqrt(k.add(k.div(s, n), eps))), squares, count)
        hat = normalised(b, elements, mean, rest, scale)
        output = affine(b, hat, by_channel(b, weight, ndim), by_channel(b, bias, ndim))
        exact = b.map(lambda k, m, r: k.add(m, r), mean, rest)
        freedom = channel_count(b, elements, 1)
        variance = b.map(lambda k, s, n: k.div(s, n), squares, freedom)
        channels = (input.shape[1],)
        numbers = (exact, variance, mean, rest, scale)
        return output, *[b.reshape(each, channels) for each in numbers]

    def vjp(
        self, t: Any, grad_output: Any, input: Any, weight: Any, centre: Any, rest: Any,
        scale: Any, eps: float, needs: Any,
    ) -> Any:  # fmt: skip
        if grad_output is None:
            return None, None, None
        if not t.is_grad_enabled():
            parts = t.batch_norm_backward(grad_output, input, weight, centre, rest, scale)
            return where_needed(parts, needs)
        dims = channel_dims(input.dim())
        hat, scale = standardised(input, dims, eps)
        inner = grad_output
        if weight is not None:
            inner = inner * weight.view([-1] + [1] * (input.dim() - 2))
        into_input = standardised_gradient(inner, hat, scale, dims)
        return (
            into_input if needs[0] else None,
            (grad_output * hat).sum(dims) if needs[1] else None,
            grad_output.sum(dims) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(4, 3), s.real(3), s.real(3), 1e-5),
            s(s.real(2, 3, 4, 2), None, None, 1e-5),
        ]


@operator("batch_norm_backward", function=False, returns=("grad_input", "grad_weight", "grad_bias"))
class BatchNormBackward(Operator):
    """Gradients of batch_norm_train."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, input: Tensor, weight: OptionalTensor, centre: Tensor,
        rest: Tensor, scale: Tensor,
    ) -> Any:  # fmt: skip
        parameter = contiguous(
            (input.shape[1],), input.dtype if weight is None else weight.dtype, input.device
        )
        return contiguous(input.shape, input.dtype, input.device), parameter, parameter

    def lower(
        self, b: Any, grad_output: Any, input: Any, weight: Any, centre: Any, rest: Any, scale: Any
    ) -> Any:
        """scale * weight * (g - mean(g) - hat * mean(g * hat)), sum(g * hat), sum(g)."""
        ndim = len(input.shape)
        grad = b.convert(grad_output, grad_output.dtype.compute)
        centre, rest, scale = (by_channel(b, each, ndim) for each in (centre, rest, scale))
        elements = b.convert(input, grad.dtype)

        def hat(k: Any, x: Any, m: Any, r: Any, s: Any) -> Any:
            return k.mul(k.sub(k.sub(x, m), r), s)

        along = channel_sum_of(
            b, lambda k, g, *number: k.mul(g, hat(k, *number)),
            (grad, elements, centre, rest, scale),
        )  # fmt: skip
        total = channel_sum_of(b, lambda k, g: g, (grad,))
        factor = affine(b, scale, by_channel(b, weight, ndim), None)

        def formula(k: Any, g: Any, f: Any, t: Any, a: Any, n: Any, *number: Any) -> Any:
            inner = k.mul(hat(k, *number), k.div(a, n))
            return k.mul(f, k.sub(k.sub(g, k.div(t, n)), inner))

        numbers = (elements, centre, rest, scale)
        into_input = b.map(formula, grad, factor, total, along, channel_count(b, grad), *numbers)
        channels = (input.shape[1],)
        return into_input, b.reshape(along, channels), b.reshape(total, channels)

    def samples(self, s: Any) -> list[Any]:
        numbers = (s.real(3), s.real(3), s.real(3))
        return [s(s.real(4, 3), s.real(4, 3), s.real(3), *numbers)]


@operator("batch_norm_eval", function=False)
class BatchNormEval(Operator):
    """(x - mean) / sqrt(var + eps) * weight + bias with given statistics."""

    def infer(
        self, input: Tensor, mean: Tensor, var: Tensor, weight: OptionalTensor,
        bias: OptionalTensor, eps: float,
    ) -> Any:  # fmt: skip
        check_parameters("batch_norm", input, mean, var, weight, bias)
        given = [each for each in (input, mean, var, weight, bias) if each is not None]
        for name, each in (("running_mean", mean), ("weight", weight), ("bias", bias)):
            if each is not None and each.n_elements != input.shape[1]:
                raise not_of_channels(name, input.shape[1], each.n_elements)
        return contiguous(input.shape, input.dtype, shapes.common_device(given))

    def lower(
        self, b: Any, input: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float
    ) -> Any:
        ndim = len(input.shape)
        centre, spread, factor, offset = (
            by_channel(b, each, ndim) for each in (mean, var, weight, bias)
        )
        scale = b.map(lambda k, v: k.div(1.0, k.sqrt(k.add(v, eps))), spread)
        hat = b.map(lambda k, x, m, f: k.mul(k.sub(x, m), f), input, centre, scale)
        return affine(b, hat, factor, offset)

    def vjp(
        self, t: Any, grad: Any, input: Any, mean: Any, var: Any, weight: Any, eps: float,
        needs: Any,
    ) -> Any:  # fmt: skip
        ones = [-1] + [1] * (input.dim() - 2)
        dims = channel_dims(input.dim())
        scale = (var + eps).rsqrt().view(ones)
        away = input - mean.view(ones)
        inner = grad if weight is None else grad * weight.view(ones)
        into_input = inner * scale
        return (
            into_input if needs[0] else None,
            -into_input.sum(dims) if needs[1] else None,
            -0.5 * (inner * away * scale * scale * scale).sum(dims) if needs[2] else None,
            (grad * away * scale).sum(dims) if needs[3] else None,
            grad.sum(dims) if needs[4] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        mean, variance = s.constant(3), s.constant(3)
        return [s(s.real(4, 3, 2), mean, variance, s.real(3), s.real(3), 1e-5)]
