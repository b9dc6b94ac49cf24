"""Activations as torch.nn.functional spells them: with `inplace`, and softmax's implicit dim.

Keeps     each is one operator.
Touches   tensor.functions.
Not here  the formulas (ops.elementwise, ops.rows.softmax)."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t


def relu(input: Any, inplace: bool = False) -> Any:
    """max(0, x)."""
    return t.relu_(input) if inplace else t.relu(input)


def relu6(input: Any, inplace: bool = False) -> Any:
    """min(max(0, x), 6)."""
    return t.relu6_(input) if inplace else t.relu6(input)


def selu(input: Any, inplace: bool = False) -> Any:
    """scale * (max(0, x) + min(0, alpha * (exp(x) - 1)))."""
    return t.selu_(input) if inplace else t.selu(input)


def silu(input: Any, inplace: bool = False) -> Any:
    """x * sigmoid(x)."""
    return t.silu_(input) if inplace else t.silu(input)


def mish(input: Any, inplace: bool = False) -> Any:
    """x * tanh(softplus(x))."""
    return t.mish_(input) if inplace else t.mish(input)


def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """clamp(x / 6 + 1/2, 0, 1)."""
    return t.hardsigmoid_(input) if inplace else t.hardsigmoid(input)


def hardswish(input: Any, inplace: bool = False) -> Any:
    """x * hardsigmoid(x)."""
    return t.hardswish_(input) if inplace else t.hardswish(input)


def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """x moved by lambd towards 0, 0 between -lambd and lambd.

    >>> import flambeau as torch
    >>> softshrink(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    largest = dtypes.FLOAT_FACTS[input.dtype][1] if input.is_floating_point() else None
    if largest is not None and not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype "
            f"{promotion.SCALAR_TYPE_NAMES[input.dtype.name]}, but found {lambd:g}"
        )
    return t.softshrink(input, lambd)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return t.elu_(input, alpha) if inplace else t.elu(input, alpha)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return t.celu_(input, alpha) if inplace else t.celu(input, alpha)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x where x >= 0, else negative_slope * x.

    >>> import flambeau as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-2.0, 3.0]), 0.5)
    tensor([-1.,  3.])
    """
    function = t.leaky_relu_ if inplace else t.leaky_relu
    return function(input, negative_slope)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """clamp(x, min_val, max_val)."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    function = t.hardtanh_ if inplace else t.hardtanh
    return function(input, min_val, max_val)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """x where x > threshold, else value."""
    function = t.threshold_ if inplace else t.threshold
    return function(input, threshold, value)


def relu_(input: Any) -> Any:
    """relu in place."""
    return t.relu_(input)


def selu_(input: Any) -> Any:
    """selu in place."""
    return t.selu_(input)


def elu_(input: Any, alpha: float = 1.0) -> Any:
    """elu in place."""
    return t.elu_(input, alpha)


def celu_(input: Any, alpha: float = 1.0) -> Any:
    """celu in place."""
    return t.celu_(input, alpha)


def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """leaky_relu in place."""
    return t.leaky_relu_(input, negative_slope)


def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """hardtanh in place."""
    return hardtanh(input, min_val, max_val, True)


def threshold_(input: Any, threshold: float, value: float) -> Any:
    """threshold in place."""
    return t.threshold_(input, threshold, value)


def prelu(input: Any, weight: Any) -> Any:
    """x where x >= 0, else weight * x; one weight, or one for each channel (dim 1)."""
    if input.dtype is not weight.dtype:
        given, other = (promotion.SCALAR_TYPE_NAMES[each.dtype.name] for each in (input, weight))
        raise RuntimeError(f"prelu: Type promoting not supported. Got {given} and {other}")
    if weight.dim() not in (0, 1):
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    count = weight.numel()
    if count != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.dim() > 1 else 1
        if channels != count:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
        weight = weight.view((1, count) + (1,) * (input.dim() - 2))
    elif weight.dim() != input.dim():
        weight = weight.view((1,) * input.dim())
    return t.prelu_kernel(input, weight)


@shows("RreluWithNoiseBackward0")
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Any:  # fmt: skip
    """Leaky ReLU, its slope drawn for each element in training, else the middle of the range."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    from flambeau.nn.functions.dropout import rrelu_slopes

    element = input.dtype
    # The slopes of a 16-bit format are not rounded to it before they multiply.
    wide = input.to(dtypes.float32) if element is dtypes.bfloat16 else input
    result = t.mul(wide, rrelu_slopes(wide, lower, upper)).to(element)
    return input.copy_(result) if inplace else result


def rrelu_(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Any:
    """rrelu in place."""
    return rrelu(input, lower, upper, training, True)


def _chosen_dim(name: str, given: Any, ndim: int, stacklevel: int) -> int:
    """The dim that is no plain int: torch's choice where it is None."""
    if given is not None:
        if not hasattr(given, "__index__"):
            function = "softmax" if name == "softmin" else name
            raise TypeError(
                f"{function}(): argument 'dim' (position 1) must be int, not {type(given).__name__}"
            )
        return int(given.__index__())
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """exp(x) divided by its sum along a dim.

    >>> import flambeau as torch
    >>> torch.nn.functional.softmax(torch.zeros(2, 2), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if type(dim) is not int:
        dim = _chosen_dim("softmax", dim, input.dim(), _stacklevel)
    return t.softmax(input, dim) if dtype is None else t.softmax(input, dim, dtype)


def log_softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """log(softmax(x))."""
    if type(dim) is not int:
        dim = _chosen_dim("log_softmax", dim, input.dim(), _stacklevel)
    return t.log_softmax(input, dim) if dtype is None else t.log_softmax(input, dim, dtype)


def softmin(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax(-x)."""
    if type(dim) is not int:
        dim = _chosen_dim("softmin", dim, input.dim(), _stacklevel)
    negative = t.neg(input)
    return t.softmax(negative, dim) if dtype is None else t.softmax(negative, dim, dtype)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """softmax((logits + Gumbel noise) / tau); with `hard` one-hot, the gradient the soft one's."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -t.empty_like(logits, requires_grad=False).exponential_().log()
    soft = t.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return t.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
