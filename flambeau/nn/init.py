"""Initial values: fills of parameters, drawn as torch draws them.

Keeps     bounds and deviations are Python doubles; the same draws, in the same order, as torch.
Touches   Tensor.uniform_ and normal_.
Not here  the generator (random)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.missing import module_getattr
from flambeau.ops.define import not_implemented

_LINEAR = (
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "sigmoid",
)  # fmt: skip


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By how much a nonlinearity shrinks the spread of what goes through it.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        else:
            slope = param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Draw from U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Draw from N(mean, std^2)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Any, val: float) -> Any:
    """Fill with a number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Fill with 1."""
    with no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with 0."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    from flambeau.tensor.public import fills

    with no_grad():
        tensor.copy_(fills.eye(*tensor.shape, dtype=tensor.dtype))
    return tensor


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill a convolution's weight so that it passes its input through."""
    dimensions = tensor.dim()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.shape
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draw from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Draw from N(0, gain^2 * 2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:  # fmt: skip
    """Draw from U(-b, b), b = gain * sqrt(3 / fan) (He et al., 2015)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator) if tensor.numel() else tensor


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:  # fmt: skip
    """Draw from N(0, gain^2 / fan) (He et al., 2015)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return normal_(tensor, 0, std, generator) if tensor.numel() else tensor


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    """gain / sqrt(fan); 0, with torch's warning, where there is nothing to draw."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return 0.0
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def _share_below(value: float) -> float:
    return (1.0 + math.erf(value / math.sqrt(2.0))) / 2.0


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Any = None,
) -> Any:  # fmt: skip
    """Draw from N(mean, std^2) cut off outside [a, b]: what falls outside is drawn again."""
    if tensor.is_meta:
        return tensor
    if (mean < a - 2 * std) or (mean > b + 2 * std):
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    inside = _share_below((b - mean) / std) - _share_below((a - mean) / std)
    with no_grad():
        if inside > 0.3:
            return _redrawn(tensor, mean, std, a, b, generator)
        return _accepted(tensor, mean, std, a, b, generator)


def _redrawn(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    """Normals, those outside drawn again until none is."""
    from flambeau.nn import names as torch

    low, high = (torch.tensor(each, dtype=tensor.dtype).item() for each in (a, b))
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if not outside.any():
            break
        again = torch.empty_like(tensor, requires_grad=False).normal_(
            mean, std, generator=generator
        )
        result = torch.where(outside, again, result)
    if result is not tensor:
        tensor.copy_(result)
    return tensor


def _accepted(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    """Uniform proposals, each accepted with the density's share of its peak."""
    from flambeau.nn import names as torch

    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    pending: Any = None
    result: Any = None
    while pending is None or pending.any():
        proposals = torch.empty_like(tensor, requires_grad=False).uniform_(
            a, b, generator=generator
        )
        limit = proposals.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        chance = torch.empty_like(tensor, requires_grad=False).uniform_(generator=generator)
        refused = chance.log_().gt(limit)
        if pending is None:
            result, pending = proposals, refused
        else:
            result = torch.where(pending, proposals, result)
            pending = torch.where(pending, refused, pending)
    tensor.copy_(result)
    return tensor


def _orthonormal_columns(matrix: Any) -> Any:
    """Q of the QR decomposition with a positive diagonal of R, in float64: Gram and Schmidt's
    method, every column made orthogonal twice, which leaves no error beyond rounding."""
    from flambeau.nn import names as torch

    columns = matrix.double()
    made = torch.zeros_like(columns)
    for number in range(columns.shape[1]):
        column = columns[:, number]
        for _ in range(2):
            column = column - made.mv(made.t().mv(column))
        made[:, number] = column / (column * column).sum().sqrt()
    return made


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a (semi-)orthogonal matrix (Saxe et al., 2013)."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if tensor.dtype.itemsize < 4:
            raise not_implemented("geqrf_cpu", tensor.dtype)
        made = _orthonormal_columns(flat.t() if rows < columns else flat)
        made = (made.t() if rows < columns else made).to(tensor.dtype)
        tensor.copy_(made.reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Draw from N(0, std^2) and zero a share of each column (Martens, 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    from flambeau.nn import names as torch

    rows, columns = tensor.shape
    n_zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = torch.randperm(rows)[:n_zeros]
            tensor[chosen, column] = 0
    return tensor


def _old_name(function: Callable[..., Any]) -> Callable[..., Any]:
    new = function.__name__
    old = new[:-1]

    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    deprecated.__name__ = old
    return deprecated


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)
__getattr__ = module_getattr(__name__)
