"""Normalisations as torch.nn.functional spells them.

Keeps     batch norm writes its running statistics in training, as torch's.
Touches   tensor.functions.
Not here  the kernels (ops.rows.normalization)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.tensor import functions as t
from flambeau.tensor.public import composed


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Mean 0 and variance 1 over the last dims, then weight and bias.

    >>> import flambeau as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return composed.layer_norm(input, normalized_shape, weight, bias, eps)


def _check_batch(shape: Any) -> None:
    if shape[0] * prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shape}"
        )


def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Mean 0 and variance 1 per channel: of the batch in training, of the running statistics
    otherwise."""
    if input.dim() >= 2:
        _check_statistics(input.shape[1], (running_mean, running_var, weight, bias))
    if (eps <= 0) if training else (eps < 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    if training and (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training:
        for name, given in (("running_mean", running_mean), ("running_var", running_var)):
            if given is None and input.shape != (0,):
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        if input.dim() < 2:
            return _without_channels(input, running_mean, weight, bias)
        return t.batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    _check_batch(input.shape)
    if input.dim() < 2:
        return _without_channels(input, running_mean, weight, bias)
    if not input.numel():  # an empty batch says nothing of the averages
        return _per_channel(input.clone(), weight, bias)
    output, mean, var, *_ = t.batch_norm_train(input, weight, bias, eps)
    for running, new in ((running_mean, mean), (running_var, var)):
        if running is not None:
            _average(running, new, momentum)
    return output


def _average(running: Any, new: Any, momentum: float) -> None:
    """Move a running statistic towards a batch's."""
    with no_grad():
        # Not by `alpha`: writes of a tensor and a tensor are recorded by native code.
        running.mul_(1 - momentum).add_(new.to(running.dtype) * momentum)


def _per_channel(output: Any, weight: Any, bias: Any) -> Any:
    """output * weight + bias, each of one number a channel, where they are given."""
    sides = (1, output.shape[1]) + (1,) * (output.dim() - 2)
    if weight is not None:
        output = output * weight.reshape(sides)
    return output if bias is None else output + bias.reshape(sides)


def _check_statistics(channels: int, given: Any) -> None:
    """Refuse running statistics and parameters of another number of channels."""
    for name, each in zip(("running_mean", "running_var", "weight", "bias"), given, strict=True):
        if each is not None and each.numel() != channels:
            from flambeau.ops.rows.batch_normalization import not_of_channels

            raise not_of_channels(name, channels, each.numel())


def _without_channels(input: Any, running_mean: Any, weight: Any, bias: Any) -> Any:
    """What torch makes of an input without a dim of channels: an empty vector passes."""
    if input.shape != (0,):
        if running_mean is None:
            raise IndexError(
                "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
            )
        count = running_mean.numel()
        raise RuntimeError(f"running_mean should contain 0 elements not {count}")
    output = input.clone()
    for given, combine in ((weight, t.mul), (bias, t.add)):
        output = output if given is None else combine(output, given)
    return output


def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Batch norm of every sample by itself."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    samples, channels = input.shape[:2]
    every = [
        None if each is None else each.repeat(samples)
        for each in (running_mean, running_var, weight, bias)
    ]
    _check_statistics(samples * channels, every)
    flat = input.reshape(1, samples * channels, *input.shape[2:])
    if not input.numel():
        return flat.clone().view(input.shape)
    means, variances, weights, biases = every
    if not use_input_stats:
        return t.batch_norm_eval(flat, means, variances, weights, biases, eps).view(input.shape)
    output, mean, var, *_ = t.batch_norm_train(flat, weights, biases, eps)
    for running, new in ((running_mean, mean), (running_var, var)):
        if running is not None:
            _average(running, new.detach().view(samples, channels).mean(0), momentum)
    return output.view(input.shape)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Mean 0 and variance 1 over groups of channels.

    >>> import flambeau as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    samples, channels = input.shape[:2]
    _check_batch([samples * channels // num_groups, num_groups, *input.shape[2:]])
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and (given.dim() != 1 or given.numel() != channels):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(given.shape)} and input of shape "
                f"{list(input.shape)}"
            )
    return t.group_norm_rows(input, num_groups, weight, bias, eps)[0]


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """x / (k + alpha * mean of squares over `size` neighbouring channels)^beta."""
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    sides = (0, 0) * (input.dim() - 2) + (size // 2, (size - 1) // 2)
    squares = t.constant_pad_nd(input * input, sides, 0.0)
    windows = squares.unfold(1, size, 1)
    if not input.dtype.category > 1:  # torch's means of integers are cut
        return input / ((windows.sum(-1) // size) * alpha + k) ** beta
    mean = windows.mean(-1)
    return input / (mean * alpha + k) ** beta
