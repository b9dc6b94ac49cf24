"""Pools: the largest, or the mean, of windows.

Keeps     the gradient of a maximum goes to the first place that has it, as torch's.
Touches   tensor.functions, windows.py.
Not here  the layers (modules/pooling.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.nn.functions.windows import windows
from flambeau.nn.modules.sizes import repeated
from flambeau.tensor import functions as t


def _sizes(
    name: str, spatial: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool,
) -> tuple[int, ...]:  # fmt: skip
    """Numbers of windows; a window may reach out at the end with ceil_mode."""
    made = []
    for size, k, step, pad, far in zip(spatial, kernel, stride, padding, dilation, strict=True):
        if pad > k // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, "
                f"kernel_size={k} and dilation={far}"
            )
        room = size + 2 * pad - far * (k - 1) - 1
        count = (-(-room // step) if ceil_mode else room // step) + 1
        if ceil_mode and (count - 1) * step >= size + pad:
            count -= 1
        if count < 1:
            raise RuntimeError(
                f"Given input size: ({'x'.join(map(str, spatial))}). Calculated output size: "
                f"({'x'.join(map(str, [max(count, 0)]))}). Output size is too small"
            )
        made.append(count)
    return tuple(made)


def _reaching(
    spatial: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, sizes: Any
) -> tuple[int, ...]:
    """Places missing at the end of each dim, so that all windows fit."""
    return tuple(
        max((n - 1) * step + far * (k - 1) + 1 - (size + pad), 0)
        for size, k, step, pad, far, n in zip(
            spatial, kernel, stride, padding, dilation, sizes, strict=True
        )
    )


def _padded(input: Any, before: Any, after: Any, value: float) -> Any:
    sides: list[int] = []
    for low, high in zip(reversed(before), reversed(after), strict=True):
        sides += [low, high]
    return t.constant_pad_nd(input, tuple(sides), value) if any(sides) else input


def _flat_windows(view: Any, count: int) -> Any:
    """(..., *sizes, *kernel) with the kernel as one dim."""
    shape = view.shape[: view.dim() - count]
    return view.reshape(*shape, math.prod(view.shape[view.dim() - count :]))


def _check_dims(name: str, input: Any, count: int) -> None:
    if input.dim() not in (count + 1, count + 2):
        raise RuntimeError(
            f"{name}: Expected {count + 1}D or {count + 2}D tensor, but got {list(input.shape)}"
        )


def _max_pool(
    name: str, count: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """(largest of each window, its place in the input seen flat)."""
    _check_dims(name, input, count)
    kernel = repeated(kernel_size, count)
    stride = kernel if stride is None or stride == [] else repeated(stride, count)
    padding, dilation = repeated(padding, count), repeated(dilation, count)
    spatial = tuple(input.shape[-count:])
    sizes = _sizes(name, spatial, kernel, stride, padding, dilation, ceil_mode)
    after = _reaching(spatial, kernel, stride, padding, dilation, sizes)
    lowest = float("-inf") if input.is_floating_point() else -(2**63)
    padded = _padded(input, padding, after, lowest)
    flat = _flat_windows(windows(padded, kernel, stride, dilation, sizes), count)
    values, place = t.max_dim(flat, flat.dim() - 1)
    return values, (place, kernel, stride, padding, dilation, spatial, sizes)


def _flat_index(found: tuple[Any, ...]) -> Any:
    """Places in windows as places in the input."""
    import flambeau as torch

    place, kernel, stride, padding, dilation, spatial, sizes = found
    count = len(kernel)
    index: Any = 0
    for dim in range(count):
        inner = math.prod(kernel[dim + 1 :])
        within = (place // inner) % kernel[dim]
        starts = torch.arange(sizes[dim]) * stride[dim] - padding[dim]
        starts = starts.reshape((-1,) + (1,) * (count - 1 - dim))
        index = index * spatial[dim] + (starts + within * dilation[dim])
    return index


def _max(name: str, count: int) -> Any:
    def pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        values, found = _max_pool(
            name, count, input, kernel_size, stride, padding, dilation, ceil_mode
        )
        return (values, _flat_index(found)) if return_indices else values

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"The largest of windows over the last {count} dims."
    return pool


max_pool1d = _max("max_pool1d", 1)
max_pool2d = _max("max_pool2d", 2)
max_pool3d = _max("max_pool3d", 3)


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


def _covered(spatial: Any, kernel: Any, stride: Any, before: Any, after: Any, sizes: Any) -> Any:
    """How many places of each window lie inside [-before, size + after)."""
    import flambeau as torch

    counts: Any = 1
    for dim, n in enumerate(sizes):
        row = []
        for number in range(n):
            start = number * stride[dim] - before[dim]
            low = max(start, -after[dim][0])
            high = min(start + kernel[dim], spatial[dim] + after[dim][1])
            row.append(high - low)
        column = torch.tensor(row).reshape((-1,) + (1,) * (len(sizes) - 1 - dim))
        counts = counts * column
    return counts


def _avg_pool(
    name: str, count: int, input: Any, kernel_size: Any, stride: Any, padding: Any,
    ceil_mode: bool, count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    _check_dims(name, input, count)
    kernel = repeated(kernel_size, count)
    stride = kernel if stride is None or stride == [] else repeated(stride, count)
    padding, ones = repeated(padding, count), (1,) * count
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    spatial = tuple(input.shape[-count:])
    sizes = _sizes(name, spatial, kernel, stride, padding, ones, ceil_mode)
    after = _reaching(spatial, kernel, stride, padding, ones, sizes)
    view = windows(_padded(input, padding, after, 0.0), kernel, stride, ones, sizes)
    total = view.sum(tuple(range(view.dim() - count, view.dim())))
    if divisor_override is not None:
        return total / divisor_override
    if count_include_pad and all(a <= p for a, p in zip(after, padding, strict=True)):
        return total / math.prod(kernel)
    if not any(padding) and not any(after):
        return total / math.prod(kernel)
    inside = [(p, p) if count_include_pad else (0, 0) for p in padding]
    counts = _covered(spatial, kernel, stride, padding, inside, sizes)
    return total / counts.to(total.dtype)


def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """Means of windows over the last dim."""
    return _avg_pool(
        "avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


def avg_pool2d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Means of windows over the last two dims."""
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


def avg_pool3d(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Means of windows over the last three dims."""
    return _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip


def _spans(size: int, count: int) -> list[tuple[int, int]]:
    """First and last + 1 place of `count` windows that cover `size` places."""
    return [(n * size // count, -(-(n + 1) * size // count)) for n in range(count)]


def _wanted(input: Any, output_size: Any, count: int) -> tuple[int, ...]:
    given = repeated(output_size, count)
    spatial = input.shape[-count:]
    return tuple(s if g is None else g for g, s in zip(given, spatial, strict=True))


def _adaptive_avg(name: str, count: int) -> Any:
    def pool(input: Any, output_size: Any) -> Any:
        _check_dims(name, input, count)
        wanted = _wanted(input, output_size, count)
        spatial = tuple(input.shape[-count:])
        if all(n and size % n == 0 for size, n in zip(spatial, wanted, strict=True)):
            kernel = tuple(size // n for size, n in zip(spatial, wanted, strict=True))
            return _avg_pool(name, count, input, kernel, kernel, 0, False, True, None)
        for number, n in enumerate(wanted):
            dim = input.dim() - count + number
            parts = [
                input.narrow(dim, low, high - low).mean(dim)
                for low, high in _spans(spatial[number], n)
            ]
            input = t.stack(parts, dim)
        return input

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"Means of as many windows as asked for, over the last {count} dims."
    return pool


adaptive_avg_pool1d = _adaptive_avg("adaptive_avg_pool1d", 1)
adaptive_avg_pool2d = _adaptive_avg("adaptive_avg_pool2d", 2)
adaptive_avg_pool3d = _adaptive_avg("adaptive_avg_pool3d", 3)


def _gathered_windows(input: Any, spans: list[list[tuple[int, int]]]) -> tuple[Any, Any]:
    """Windows of unequal sizes, the short ones with their last place repeated: (..., *sizes,
    places), and the flat place of each in the input."""
    import flambeau as torch

    count = len(spans)
    spatial = input.shape[-count:]
    index: Any = None
    for dim, each in enumerate(spans):
        longest = max(high - low for low, high in each)
        rows = [[min(low + n, high - 1) for n in range(longest)] for low, high in each]
        one = torch.tensor(rows)  # (size, longest)
        if index is None:
            index = one
        else:
            lead, places = index.shape[:-1], index.shape[-1]
            index = index.reshape(*lead, 1, places, 1) * spatial[dim] + one.reshape(
                *(1,) * len(lead), one.shape[0], 1, longest
            )
            index = index.reshape(*lead, one.shape[0], places * longest)
    flat = input.flatten(-count)
    taken = t.index_select(flat, flat.dim() - 1, index.reshape(-1))
    return taken.reshape(*flat.shape[:-1], *index.shape), index


def _adaptive_max(name: str, count: int) -> Any:
    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        _check_dims(name, input, count)
        wanted = _wanted(input, output_size, count)
        spans = [_spans(size, n) for size, n in zip(input.shape[-count:], wanted, strict=True)]
        taken, index = _gathered_windows(input, spans)
        values, place = t.max_dim(taken, taken.dim() - 1)
        if not return_indices:
            return values
        spread = index.expand(*place.shape[: place.dim() - count], *index.shape)
        return values, spread.gather(-1, place.unsqueeze(-1)).squeeze(-1)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"The largest of as many windows as asked for, over the last {count} dims."
    return pool


adaptive_max_pool1d = _adaptive_max("adaptive_max_pool1d", 1)
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
    return pool


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
lp_pool2d = _lp(2, avg_pool2d)
