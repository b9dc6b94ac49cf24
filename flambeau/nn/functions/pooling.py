"""Pools: the largest, or the mean, of windows.

Keeps     one spatial dim is two, the first of size 1; return_indices chooses what comes back.
Touches   tensor.functions.
Not here  the operators (ops.pooling), the layers (modules/pooling.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.base import dtypes
from flambeau.gradients.autocast import in_float32
from flambeau.nn.modules.utils import repeated
from flambeau.ops.define import not_implemented, type_name
from flambeau.ops.pooling.sizes import ints_of, wrong_count, wrong_dims
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
    if what == "stride" and (value is None or value in ((), [])):
        return None
    numbers = ints_of(name, what, value)
    if len(numbers) != 1:
        if name == "max_pool1d":
            raise RuntimeError(
                f"{name}() {what} must be an int, list of ints or tuple of ints of size 1 but got "
                f"size {len(numbers)}"
            )
        raise RuntimeError(
            f"{name}() argument '{what}' should contain one int (got {len(numbers)})"
        )
    return (lead, *numbers)


def _check_line(name: str, size: int, given: dict[str, int], ceil_mode: bool) -> None:
    """torch's checks of a pool over one dim."""
    for what in ("kernel_size", "stride", "dilation"):
        if given[what] <= 0:
            raise RuntimeError(f"{name}() {what} must be greater than zero, but got {given[what]}")
        if what != "stride":
            continue
        kernel, pad = given["kernel_size"], given["padding"]
        if pad < 0:
            raise RuntimeError(f"{name}() padding must be non-negative, but got {pad}")
        if pad > kernel // 2:
            raise RuntimeError(
                f"{name}() padding should be at most half of kernel size, but got padding={pad} "
                f"and kernel_size={kernel}"
            )
    room = size + 2 * pad - given["dilation"] * (kernel - 1) - 1
    outputs = (room + (given["stride"] - 1 if ceil_mode else 0)) // given["stride"] + 1
    if outputs < 1:
        raise RuntimeError(f"{name}() Invalid computed output size: {outputs}")


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
    numbers = {"kernel_size": kernel[1], "stride": step[1], "padding": pad[1], "dilation": far[1]}
    _check_line("max_pool1d", input.shape[-1], numbers, ceil_mode)
    if not (return_indices or input.is_floating_point()):
        raise not_implemented("max_pool1d_impl", input.dtype)
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
            f"Expected 2 to 3 dimensions, but got {input.dim()}-dimensional tensor for argument #1 "
            "'self' (while checking arguments for avg_pool1d)"
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
    spatial = input.shape[-count:]
    called = f"{name}()" if "max" in name else name
    if count == 1:
        _check_adaptive_line(name, input, given)
    elif not isinstance(output_size, int) and input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    elif len(given) != count:
        raise RuntimeError(wrong_count(called, count))
    elif len(spatial) < count:
        raise RuntimeError(wrong_dims(called, input.shape, count))
    return tuple(s if g is None else g for g, s in zip(given, spatial, strict=True))


def _check_adaptive_line(name: str, input: Any, given: Any) -> None:
    if len(given) != 1:
        raise RuntimeError(
            f"{name}() argument 'output_size' should contain one int (got {len(given)})"
        )
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.dim()}-dimensional tensor for argument #1 "
            f"'self' (while checking arguments for {name})"
        )
    if "max" in name and 0 in input.shape[1:]:
        dim = 1 + list(input.shape[1:]).index(0)
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input "
            f"has sizes {list(input.shape)} with dimension {dim} being empty"
        )


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


def _check_places(input: Any, indices: Any, count: int) -> None:
    """Refuse indices that are no places of the input's elements."""
    if indices.dtype is not dtypes.int64:
        but = "" if count == 3 else f" but got: {type_name(indices._layout)}"
        raise RuntimeError(f"elements in indices should be type int64{but}")
    lead = input.dim() - count
    if lead not in (1, 2):
        raise RuntimeError(
            f"Input to max_unpooling{count}d should be a {count + 1}d or {count + 2}d Tensor, but "
            f"got a tensor with {input.dim()} dimensions."
        )
    if input.shape != indices.shape:
        tail = [1] * (count == 1)
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({[*input.shape, *tail]}) but got indices tensor with shape: "
            f"{[*indices.shape, *tail]}"
        )


def _unpooled_sizes(given: Any, usual: tuple[int, ...], stride: Any) -> tuple[int, ...]:
    """The sizes asked for, each less than a stride from what is usual."""
    count = len(usual)
    sizes = given[2:] if len(given) == count + 2 else given
    if len(sizes) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it "
            f"has a length of '{len(sizes)}'"
        )
    for dim, (size, own, step) in enumerate(zip(sizes, usual, stride, strict=True)):
        if not own - step < size < own + step:
            raise ValueError(
                f'invalid output_size "{sizes}" (dim {dim} must be between {own - step} and '
                f"{own + step})"
            )
    return tuple(sizes)


def _check_inside(places: Any, sizes: tuple[int, ...]) -> None:
    """Refuse places outside the result, which are looked for only where the scatter would."""
    if not places.numel() or places.is_meta:
        return
    for found in (places.amax().item(), places.amin().item()):
        if not 0 <= found < math.prod(sizes):
            shown = "x".join(map(str, sizes if len(sizes) > 1 else (*sizes, 1)))
            raise RuntimeError(
                f"Found an invalid max index: {found} (output volumes are of size {shown})"
            )


def _unpool(name: str, count: int) -> Any:
    def pool(
        input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        output_size: Any = None,
    ) -> Any:  # fmt: skip
        kernel = repeated(kernel_size, count)
        stride = kernel if stride is None else repeated(stride, count)
        padding = repeated(padding, count)
        _check_places(input, indices, count)
        sizes = tuple(
            (size - 1) * step - 2 * pad + k
            for size, step, pad, k in zip(
                input.shape[-count:], stride, padding, kernel, strict=True
            )
        )
        if output_size is not None:
            sizes = _unpooled_sizes(output_size, sizes, stride)
        lead = input.shape[: input.dim() - count]
        zeros = input.new_zeros((*lead, math.prod(sizes)))
        places = indices.flatten(-count)
        _check_inside(places, sizes)
        made = zeros.scatter(-1, places, input.flatten(-count))
        return made.reshape(*lead, *sizes)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"Values put back where max_pool{count}d found them, 0 elsewhere."
    return in_float32(pool)


max_unpool1d = _unpool("max_unpool1d", 1)
max_unpool2d = _unpool("max_unpool2d", 2)
max_unpool3d = _unpool("max_unpool3d", 3)


def _lp(count: int, average: Any, largest: Any) -> Any:
    def pool(
        input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        if norm_type in (math.inf, -math.inf):
            sign = 1 if norm_type > 0 else -1
            return sign * largest(sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        kernel = repeated(kernel_size, count)
        mean = average(input.pow(norm_type), kernel, stride, 0, ceil_mode)
        total = mean.sign() * t.relu(mean.abs()) * math.prod(kernel)
        return total.pow(1.0 / norm_type)

    pool.__name__ = pool.__qualname__ = f"lp_pool{count}d"
    pool.__doc__ = "Norms of windows."
    return pool


lp_pool1d = _lp(1, avg_pool1d, max_pool1d)
lp_pool2d = _lp(2, t.avg_pool2d, max_pool2d)
lp_pool3d = _lp(3, t.avg_pool3d, max_pool3d)
