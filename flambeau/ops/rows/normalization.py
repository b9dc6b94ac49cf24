"""Normalisation of rows: layer_norm, rms_norm, each one kernel a direction.

Keeps     moments in two corrected passes (reduction/moments.py). Where gradients of gradients are
          wanted, vjp is made of plain operators, else it is one operator.
Touches   ops.define, reduction.moments.
Not here  batch_norm (batch_normalization.py), group_norm (group_normalization.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import (
    Inferred,
    Operator,
    OptionalTensor,
    Tensor,
    check_floating,
    operator,
    where_needed,
)
from flambeau.ops.reduction.moments import centred, squares_about_mean
from flambeau.ops.reduction.sums import n_reduced


def check_normalized_shape(name: str, input: Layout, shape: tuple[int, ...], **given: Any) -> None:
    """The last dims of the input, and the shapes of weight and bias, must be `shape`."""
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            f"element, but got normalized_shape = {list(shape)}"
        )
    for key, each in given.items():
        if each is not None and each.shape != shape:
            raise RuntimeError(
                f"Expected {key} to be of same shape as normalized_shape, but got {key} of shape "
                f"{list(each.shape)} and normalized_shape = {list(shape)}"
            )
    if input.shape[input.ndim - len(shape) :] != shape or input.ndim < len(shape):
        wanted = "".join(f", {size}" for size in shape)
        wanted = wanted[2:] if name == "rms_norm" else wanted  # torch forgets a comma
        raise RuntimeError(
            helped(
                f"Given normalized_shape={list(shape)}, expected input with shape [*{wanted}], but "
                f"got input of size{list(input.shape)}",
                fix="normalized_shape is the sizes of the input's last dims",
            )
        )


def check_parameters(kernel: str, input: Layout, *given: Layout | None) -> None:
    """Parameters have the input's dtype, or float32 beside a half precision input."""
    mixed = [each for each in given if each is not None and each.dtype is not input.dtype]
    if mixed:
        if any(each.dtype is not dtypes.float32 for each in mixed):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if input.dtype.compute is input.dtype:
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    check_floating(kernel, input)


def statistics(b: Any, input: Any, dims: Any, eps: float) -> tuple[Any, Any, Any]:
    """(centre, rest, scale): the mean in two parts, 1 / sqrt(var + eps), in the compute dtype."""
    away, rest, centre = centred(b, input, dims)
    squares = squares_about_mean(b, away, rest, dims)
    count = b.size_number(n_reduced(input.shape, dims), away.dtype)
    scale = b.map(
        lambda k, s, n: k.div(1.0, k.sqrt(k.add(k.div(k.max(s, 0.0), n), eps))), squares, count
    )
    return centre, rest, scale


def normalised(b: Any, input: Any, centre: Any, rest: Any, scale: Any) -> Any:
    """(x - mean) * scale, the mean in two parts."""
    return b.map(
        lambda k, x, m, r, f: k.mul(k.sub(k.sub(x, m), r), f), input, centre, rest, scale,
        compute=input.dtype.compute,
    )  # fmt: skip


def affine(b: Any, value: Any, weight: Any, bias: Any) -> Any:
    """value * weight + bias, absent ones left out."""
    if weight is not None:
        value = b.map(lambda k, x, w: k.mul(x, w), value, b.convert(weight, value.dtype))
    if bias is not None:
        value = b.map(lambda k, x, y: k.add(x, y), value, b.convert(bias, value.dtype))
    return value


def normalised_gradient(
    b: Any, grad: Any, product: Any, weight: Any, hat: Any, scale: Any, dims: Any
) -> Any:
    """Gradient through the normalisation, product = grad * hat, inner = grad * weight:
    scale * (inner - mean(inner) - hat * mean(product * weight))."""
    count = b.size_number(n_reduced(hat.shape, dims), hat.dtype)
    along = b.reduce("sum", affine(b, product, weight, None), dims, True)
    inner = affine(b, grad, weight, None)
    total = b.reduce("sum", inner, dims, True)

    def formula(k: Any, g: Any, h: Any, f: Any, t: Any, a: Any, n: Any) -> Any:
        return k.mul(f, k.sub(k.sub(g, k.div(t, n)), k.mul(h, k.div(a, n))))

    return b.map(formula, inner, hat, scale, total, along, count)


def standardised(input: Any, dims: Any, eps: float) -> tuple[Any, Any]:
    """((x - mean) * scale, scale) in plain operators, for gradients of gradients."""
    away = input - input.mean(dims, True)
    scale = ((away * away).mean(dims, True) + eps).rsqrt()
    return away * scale, scale


def standardised_gradient(inner: Any, hat: Any, scale: Any, dims: Any) -> Any:
    """Gradient through `standardised`: the formula of `normalised_gradient` in plain operators."""
    return scale * (inner - inner.mean(dims, True) - hat * (inner * hat).mean(dims, True))


@operator("layer_norm_rows", function=False, returns=("output", "centre", "rest", "scale"))
class LayerNorm(Operator):
    """Mean 0 and variance 1 over the last dims, then weight and bias (Ba et al., 2016); for the
    gradient the mean in two parts and 1 / sqrt(var + eps)."""

    def infer(
        self, input: Tensor, normalized_shape: Any, weight: OptionalTensor, bias: OptionalTensor,
        eps: float,
    ) -> Inferred:  # fmt: skip
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        check_normalized_shape("layer_norm", input, shape, weight=weight, bias=bias)
        check_parameters("LayerNormKernelImpl", input, weight, bias)
        given = [each for each in (input, weight, bias) if each is not None]
        out = contiguous(input.shape, input.dtype, shapes.common_device(given))
        dims = tuple(range(input.ndim - len(shape), input.ndim))
        rows = (*input.shape[: dims[0]], *(1 for _ in dims))
        kept = contiguous(rows, input.dtype.compute, input.device)
        return Inferred((out, kept, kept, kept), {"dims": dims, "eps": float(eps)})

    def lower(self, b: Any, input: Any, weight: Any, bias: Any, dims: Any, eps: float) -> Any:
        element = input.dtype.compute
        if 0 in input.shape:
            number = b.full((*input.shape[: dims[0]], *(1 for _ in dims)), 0.0, element)
            return b.convert(input, element), number, number, number
        numbers = statistics(b, input, dims, eps)
        return affine(b, normalised(b, input, *numbers), weight, bias), *numbers

    def vjp(
        self, t: Any, grad_output: Any, input: Any, weight: Any, centre: Any, rest: Any,
        scale: Any, dims: Any, eps: float, needs: Any,
    ) -> Any:  # fmt: skip
        grad = grad_output
        if grad is None or not (needs[0] or needs[1]):
            return None, None, grad
        if not t.is_grad_enabled():
            parts = t.layer_norm_backward(grad, input, weight, centre, rest, scale, dims)
            return where_needed(parts, needs)
        hat, scale = standardised(input, dims, eps)
        inner = grad if weight is None else grad * weight
        into_input = standardised_gradient(inner, hat, scale, dims)
        outer = tuple(range(dims[0]))
        into_weight = (grad * hat).sum(outer) if outer else grad * hat
        return (
            into_input if needs[0] else None,
            into_weight if needs[1] else None,
            grad if needs[2] else None,
        )

    saved_for = {"bias": ()}

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 4), (4,), s.real(4), s.real(4), 1e-5),
            s(s.real(2, 3, 4), (3, 4), None, None, 1e-5),
            s(s.real(5, 4), (4,), s.real(4), None, 1e-5),
        ]


@operator("layer_norm_alone", function=False)
class LayerNormAlone(LayerNorm):
    """The output of layer_norm_rows, where no gradient is wanted."""

    differentiable = False
    returns = ()

    def infer(
        self, input: Tensor, normalized_shape: Any, weight: OptionalTensor, bias: OptionalTensor,
        eps: float,
    ) -> Inferred:  # fmt: skip
        inferred = super().infer(input, normalized_shape, weight, bias, eps)
        return Inferred(inferred.outputs[:1], inferred.attributes)

    def lower(self, b: Any, input: Any, weight: Any, bias: Any, dims: Any, eps: float) -> Any:
        return super().lower(b, input, weight, bias, dims, eps)[0]


@operator("layer_norm_backward", function=False, returns=("grad_input", "grad_weight", "grad_bias"))
class LayerNormBackward(Operator):
    """Gradients of layer_norm; those nobody reads are not computed."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, input: Tensor, weight: OptionalTensor, centre: Tensor,
        rest: Tensor, scale: Tensor, dims: Any,
    ) -> Any:  # fmt: skip
        inner = input.shape[dims[0] :]
        parameter = contiguous(inner, input.dtype if weight is None else weight.dtype, input.device)
        return contiguous(input.shape, input.dtype, input.device), parameter, parameter

    def lower(
        self, b: Any, grad_output: Any, input: Any, weight: Any, centre: Any, rest: Any,
        scale: Any, dims: Any,
    ) -> Any:  # fmt: skip
        grad = b.convert(grad_output, grad_output.dtype.compute)
        outer = tuple(range(dims[0]))
        if 0 in input.shape:
            zero = b.full(tuple(input.shape[dims[0] :]), 0.0, grad.dtype)
            return grad, zero, zero
        hat = normalised(b, input, centre, rest, scale)
        product = b.map(lambda k, g, h: k.mul(g, h), grad, hat)
        into_input = normalised_gradient(b, grad, product, weight, hat, scale, dims)
        if not outer:
            return into_input, product, grad
        into_weight = b.reduce_of(
            "sum", lambda k, g, x, m, r, f: k.mul(g, k.mul(k.sub(k.sub(x, m), r), f)),
            (grad, input, centre, rest, scale), outer,
        )  # fmt: skip
        return into_input, into_weight, b.reduce("sum", grad, outer)

    def samples(self, s: Any) -> list[Any]:
        numbers = [s.real(3, 1) for _ in range(3)]
        return [s(s.real(3, 4), s.real(3, 4), s.real(4), *numbers, (1,))]


@operator("rms_norm", methods=(), aliases=("nn.functional.rms_norm",))
class RootMeanSquareNorm(Operator):
    """x / sqrt(mean(x^2) + eps) over the last dims, times weight (Zhang and Sennrich, 2019)."""

    holomorphic = True
    out = False

    def infer(
        self,
        input: Tensor,
        normalized_shape: Any,
        weight: OptionalTensor = None,
        eps: float | None = None,
    ) -> Inferred:
        shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        if input.ndim < len(shape):
            raise ValueError(
                f"Input tensor must have at least {len(shape)} dimensions, but got {input.ndim}"
            )
        check_normalized_shape(self.name, input, shape, weight=weight)
        if not input.dtype.is_complex:
            check_floating("rms_norm", input)
        if eps is None:
            eps = _machine_epsilon(input)
        given = [each for each in (input, weight) if each is not None]
        out = contiguous(input.shape, input.dtype, shapes.common_device(given))
        dims = tuple(range(input.ndim - len(shape), input.ndim))
        return Inferred((out,), {"dims": dims, "eps": float(eps)})

    def lower(self, b: Any, input: Any, weight: Any, dims: Any, eps: float) -> Any:
        elements = b.convert(input, input.dtype.compute)
        if 0 in input.shape:
            return elements
        hat, _ = root_mean_square(b, elements, dims, eps)
        return affine(b, hat, weight, None)

    def vjp(
        self, t: Any, grad: Any, input: Any, weight: Any, dims: Any, eps: float, needs: Any
    ) -> Any:
        if not t.is_grad_enabled():
            parts = t.rms_norm_backward(grad, input, weight, dims, eps)
            return where_needed(parts, needs)
        scale = ((input * input).mean(dims, True) + eps).rsqrt()
        hat = input * scale
        inner = grad if weight is None else grad * weight
        into_input = scale * (inner - hat * (inner * hat).mean(dims, True))
        return into_input if needs[0] else None, grad * hat if needs[1] else None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), (4,), s.real(4)), s(s.real(2, 3, 4), (3, 4), None, 1e-5)]


def _machine_epsilon(input: Layout) -> float:
    return float(2.0 ** -dtypes.FLOAT_FACTS[input.dtype.compute.to_real()][0])


def root_mean_square(b: Any, elements: Any, dims: Any, eps: float) -> tuple[Any, Any]:
    """(x * scale, scale) with scale = 1 / sqrt(mean(x^2) + eps)."""
    squares = b.reduce("sum", b.map(lambda k, x: k.mul(x, x), elements), dims, True)
    count = b.size_number(n_reduced(elements.shape, dims), elements.dtype)
    scale = b.map(lambda k, s, n: k.div(1.0, k.sqrt(k.add(k.div(s, n), eps))), squares, count)
    return b.map(lambda k, x, f: k.mul(x, f), elements, scale), scale


@operator("rms_norm_backward", function=False, returns=("grad_input", "grad_weight"))
class RootMeanSquareNormBackward(Operator):
    """Gradients of rms_norm."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, input: Tensor, weight: OptionalTensor, dims: Any, eps: float
    ) -> Any:
        inner = input.shape[dims[0] :]
        parameter = contiguous(inner, input.dtype if weight is None else weight.dtype, input.device)
        return contiguous(input.shape, input.dtype, input.device), parameter

    def lower(
        self, b: Any, grad_output: Any, input: Any, weight: Any, dims: Any, eps: float
    ) -> Any:
        grad = b.convert(grad_output, grad_output.dtype.compute)
        if 0 in input.shape:
            return grad, b.full(tuple(input.shape[dims[0] :]), 0.0, grad.dtype)
        elements = b.convert(input, grad.dtype)
        hat, scale = root_mean_square(b, elements, dims, eps)
        inner = affine(b, grad, weight, None)
        along = b.reduce("sum", b.map(lambda k, g, h: k.mul(g, h), inner, hat), dims, True)
        count = b.size_number(n_reduced(input.shape, dims), hat.dtype)
        into_input = b.map(
            lambda k, g, h, f, a, n: k.mul(f, k.sub(g, k.mul(h, k.div(a, n)))),
            inner, hat, scale, along, count,
        )  # fmt: skip
        outer = tuple(range(dims[0]))
        if not outer or grad.dtype.is_complex:
            product = b.map(lambda k, g, h: k.mul(g, h), grad, hat)
            return into_input, b.reduce("sum", product, outer) if outer else product
        into_weight = b.reduce_of(
            "sum", lambda k, g, x, f: k.mul(g, k.mul(x, f)), (grad, elements, scale), outer
        )
        return into_input, into_weight

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), s.real(4), (1,), 1e-5)]
