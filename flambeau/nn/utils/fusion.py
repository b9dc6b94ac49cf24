"""A layer and the batch norm behind it as one layer, for evaluation.

Keeps     running statistics are folded into weight and bias, by torch's formula.
Touches   nn.parameter, tensor.functions.
Not here  fusion of kernels, which needs no asking (engine.planning)."""

from __future__ import annotations

import copy
from typing import Any

from flambeau.nn.parameter import Parameter
from flambeau.tensor import functions as t
from flambeau.tensor.public.fills import ones_like, zeros_like


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> Any:  # fmt: skip
    """Weight and bias of a convolution that does a batch norm's work, too."""
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.ndim - 2)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> Any:
    """Weight and bias of a linear layer that does a batch norm's work, too."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(
    weight: Any, bias: Any, mean: Any, variance: Any, eps: float, scale: Any, shift: Any, shape: Any
) -> Any:
    wanted_weight = weight.requires_grad
    wanted_bias = bias.requires_grad if bias is not None else wanted_weight
    bias = zeros_like(mean) if bias is None else bias
    scale = ones_like(mean) if scale is None else scale
    shift = zeros_like(mean) if shift is None else shift
    factor = scale * t.rsqrt(variance + eps)
    new_weight = (weight * factor.reshape(shape)).to(dtype=weight.dtype)
    new_bias = ((bias - mean) * factor + shift).to(dtype=bias.dtype)
    return Parameter(new_weight.detach(), wanted_weight), Parameter(new_bias.detach(), wanted_bias)


def _checked(layer: Any, bn: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    return copy.deepcopy(layer)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that does the work of the batch norm behind it, too."""
    made = _checked(conv, bn)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return made


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that does the work of the batch norm behind it, too."""
    made = _checked(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    made.weight, made.bias = fuse_linear_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return made
