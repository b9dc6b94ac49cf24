"""Pools: the largest, or the mean, of windows.

Keeps     one spatial dim is two, the first of size 1; return_indices chooses what comes back.
Touches   tensor.functions.
Not here  the operators (ops.pooling), the layers (modules/pooling.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.gradients.autocast import in_float32
from flambeau.nn.modules.utils import repeated
from flambeau.tensor import functions as t


def _line(name: str, input: Any) -> None:
    """Refuse what has no single spatial dim."""
    if input.dim() not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(input.shape)}"
        )


def _in_two(name: str, what: str, value: Any, lead: int) -> Any:
    """A number of the one spatial dim as numbers of two, the first of which does nothing."""
    if value is None or (isinstance(value, (tuple, list)) and not value):
        return None
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise RuntimeError(f"{name}() argument '{what}' must contain one int")
        (value,) = value
    return (lead, value)


def max_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest of windows over the last dim."""
    _line("max_pool1d", input)
    kernel = _in_two("max_pool1d", "kernel_size", kernel_size, 1)
    step = _in_two("max_pool1d", "stride", stride, 1) or kernel
    pad = _in_two("max_pool1d", "padding", padding, 0)
    far = _in_two("max_pool1d", "dilation", dilation, 1)
    if step[1] > 0 and kernel[1] > 0:
        room = input.shape[-1] + 2 * pad[1] - far[1] * (kernel[1] - 1) - 1
        outputs = (room + (step[1] - 1 if ceil_mode else 0)) // step[1] + 1
        if outputs < 1:
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {outputs}")
    values, indices = t.max_pool2d_with_indices(
        input.unsqueeze(-2), kernel, step, pad, far, ceil_mode
    )
    return (values.squeeze(-2), indices.squeeze(-2)) if return_indices else values.squeeze(-2)


def _max(name: str, operator: str) -> Any:
    def pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        found = getattr(t, operator)(
            input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
        )
        return tuple(found) if return_indices else found[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"The largest of windows over the last {name[-2]} dims."
    return pool


max_pool2d = _max("max_pool2d", "max_pool2d_with_indices")
max_pool3d = _max("max_pool3d", "max_pool3d_with_indices")


def _with_indices(name: str, pool: Any) -> Any:
    def pool_with_indices(*args: Any, **kwargs: Any) -> Any:
        kwargs["return_indices"] = True
        return pool(*args, **kwargs)

    pool_with_indices.__name__ = pool_with_indices.__qualname__ = name
    pool_with_indices.__doc__ = "The largest of windows, and where they are."
    return pool_with_indices


max_pool1d_with_indices = _with_indices("max_pool1d_with_indices", max_pool1d)
max_pool2d_with_indices = _with_indices("max_pool2d_with_indices", max_pool2d)
max_pool3d_with_indices = _with_indices("max_pool3d_with_indices", max_pool3d)


def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Means of windows over the last dim.

    >>> import flambeau as torch
    >>> torch.nn.functional.avg_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
    tensor([[1.5000, 3.5000]])
    """
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2D or 3D (batch mode) tensor for input, but got: {list(input.shape)}"
        )
    kernel = _in_two("avg_pool1d", "kernel_size", kernel_size, 1)
    step = _in_two("avg_pool1d", "stride", stride, 1)
    pad = _in_two("avg_pool1d", "padding", padding, 0)
    return t.avg_pool2d(
        input.unsqueeze(-2), kernel, step, pad, ceil_mode, count_include_pad
    ).squeeze(-2)


def _wanted(name: str, input: Any, output_size: Any, count: int) -> tuple[int, ...]:
    """Numbers of outputs; None: as many as there are places."""
    given = repeated(output_size, count)
    if len(given) != count:
        raise RuntimeError(f"{name}: output_size must be {count}")
    spatial = input.shape[-count:]
    if len(spatial) < count:
        raise RuntimeError(
            f"{name}: Expected {count + 1}D or {count + 2}D tensor, but got {list(input.shape)}"
        )
    return tuple(s if g is None else g for g, s in zip(given, spatial, strict=True))


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Means of as many windows as asked for, over the last dim."""
    (size,) = _wanted("adaptive_avg_pool1d", input, output_size, 1)
    return t.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


def _adaptive_avg(name: str, count: int) -> Any:
    def pool(input: Any, output_size: Any) -> Any:
        wanted = _wanted(name, input, output_size, count)
        if wanted == (1,) * count and input.is_floating_point() and input.numel():
            return input.mean(tuple(range(-count, 0)), keepdim=True)
        return getattr(t, name)(input, wanted)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"Means of as many windows as asked for, over the last {count} dims."
    return pool


adaptive_avg_pool2d = _adaptive_avg("adaptive_avg_pool2d", 2)
adaptive_avg_pool3d = _adaptive_avg("adaptive_avg_pool3d", 3)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """The largest of as many windows as asked for, over the last dim."""
    (size,) = _wanted("adaptive_max_pool1d", input, output_size, 1)
    values, indices = t.adaptive_max_pool2d(input.unsqueeze(-2), (1, size))
    return (values.squeeze(-2), indices.squeeze(-2)) if return_indices else values.squeeze(-2)


def _adaptive_max(name: str, count: int) -> Any:
    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        wanted = _wanted(name, input, output_size, count)
        values, indices = getattr(t, name)(input, wanted)
        return (values, indices) if return_indices else values

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"The largest of as many windows as asked for, over the last {count} dims."
    return pool


adaptive_max_pool2d = _adaptive_max("adaptive_max_pool2d", 2)
adaptive_max_pool3d = _adaptive_max("adaptive_max_pool3d", 3)


def _unpool(name: str, count: int) -> Any:
    def pool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Any:  # fmt: skip
        kernel = repeated(kernel_size, count)
        stride = kernel if stride is None else repeated(stride, count)
        padding = repeated(padding, count)
        if output_size is None:
            output_size = tuple(
                (size - 1) * step - 2 * pad + k
                for size, step, pad, k in zip(
                    input.shape[-count:], stride, padding, kernel, strict=True
                )
            )
        sizes = tuple(output_size)[-count:]
        lead = input.shape[: input.dim() - count]
        zeros = input.new_zeros((*lead, math.prod(sizes)))
        made = zeros.scatter(-1, indices.flatten(-count), input.flatten(-count))
        return made.reshape(*lead, *sizes)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"Values put back where max_pool{count}d found them, 0 elsewhere."
    return in_float32(pool)


max_unpool1d = _unpool("max_unpool1d", 1)
max_unpool2d = _unpool("max_unpool2d", 2)
max_unpool3d = _unpool("max_unpool3d", 3)


def _lp(count: int, average: Any) -> Any:
    def pool(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        kernel = repeated(kernel_size, count)
        mean = average(input.pow(norm_type), kernel, stride, 0, ceil_mode)
        total = mean.sign() * t.relu(mean.abs()) * math.prod(kernel)
        return total.pow(1.0 / norm_type)

    pool.__name__ = pool.__qualname__ = f"lp_pool{count}d"
    pool.__doc__ = "Norms of windows."
    return pool


lp_pool1d = _lp(1, avg_pool1d)
lp_pool2d = _lp(2, t.avg_pool2d)
