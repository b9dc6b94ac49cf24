"""Fractional pools: the largest of windows whose places are drawn (Graham, 2014).

Keeps     windows start where a random share of a step puts them, in torch's arithmetic; the last
          one ends where the input does.
Touches   tensor.functions.
Not here  pools of regular windows (functions/pooling.py)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.gradients.recording.drawn import shows
from flambeau.nn.modules.utils import repeated
from flambeau.random.tensors import rand
from flambeau.tensor import functions as t
from flambeau.tensor.public.fills import full
from flambeau.tensor.public.ranges import arange


def _outputs(name: str, input: Any, count: int, output_size: Any, ratio: Any) -> tuple[int, ...]:
    """How many windows each dim has."""
    if output_size is not None:
        sizes = repeated(output_size, count)
    elif ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    else:
        shares = repeated(ratio, count)
        spatial = input.shape[-count:]
        sizes = tuple(int(size * share) for size, share in zip(spatial, shares, strict=True))
    return _of_dims(name, "output_size", sizes, count)


def _of_dims(name: str, what: str, numbers: Any, count: int) -> tuple[int, ...]:
    """As many numbers as there are dims."""
    if len(numbers) != count:
        raise RuntimeError(
            f"{name}: {what} must either be a single Int or tuple of {'three ' * (count == 3)}Ints"
        )
    return tuple(numbers)


def _check(
    name: str, input: Any, kernel: tuple[int, ...], sizes: tuple[int, ...], samples: Any
) -> None:
    """Refuse inputs that are no images, windows that do not fit, samples of another kind."""
    count = len(kernel)
    where = name if count == 2 else f"{name}_out"
    for dim, size in enumerate(input.shape[-count - 1 :], input.dim() - count - 1):
        if not size:
            raise RuntimeError(
                f"{where}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"got{list(input.shape)} with dimension {dim} being empty."
            )
    if samples.dtype is not input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    channels = input.shape[-count - 1]
    if samples.shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != count:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {count}; got {samples.shape[2]}."
        )
    words = ("time", "height", "width")[-count:]
    for word, size, pool, outputs in zip(words, input.shape[-count:], kernel, sizes, strict=True):
        if outputs + pool - 1 > size:
            raise RuntimeError(
                helped(
                    f"{where}(): pool {word} {pool} too large relative to input {word} {size}",
                    expected=f"at most {size - outputs + 1} for {outputs} outputs",
                )
            )


def _starts(sample: Any, size: int, outputs: int, pool: int) -> Any:
    """Where the windows of a dim start: (planes, outputs), of one sample a plane."""
    last = full((sample.shape[0], 1), size - pool, dtype=dtypes.int64)
    if outputs == 1:
        return last
    step = float(size - pool) / (outputs - 1)
    number = arange(outputs - 1, dtype=sample.dtype)
    share = sample.unsqueeze(1)
    first = ((number + share) * step).long() - (share * step).long()
    return t.cat([first, last], 1)


def _pooled(name: str, count: int) -> Any:
    def pool(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        if input.dim() <= count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-input.dim()}, "
                f"{input.dim() - 1}], but got {-count - 1})"
            )
        kernel = _of_dims(name, "kernel_size", repeated(kernel_size, count), count)
        sizes = _outputs(name, input, count, output_size, output_ratio)
        images = input if input.dim() == count + 2 else input.unsqueeze(0)
        if _random_samples is None:
            _random_samples = rand(*images.shape[:2], count, dtype=input.dtype)
        _check(name, input, kernel, sizes, _random_samples)
        spatial = images.shape[2:]
        planes = math.prod(images.shape[:2])
        samples = _random_samples[: images.shape[0]].reshape(planes, count)
        if count == 2:
            samples = samples.flip(1)  # the width's share comes first
        places: Any = 0
        for dim in range(count):
            own = _starts(samples[:, dim], spatial[dim], sizes[dim], kernel[dim])
            own = own.unsqueeze(2) + arange(kernel[dim])
            shape = [planes] + [1] * (2 * count)
            shape[1 + dim], shape[1 + count + dim] = sizes[dim], kernel[dim]
            places = places * spatial[dim] + own.reshape(shape)
        places = places.reshape(planes, math.prod(sizes), math.prod(kernel))
        flat = images.reshape(planes, 1, -1).expand(-1, places.shape[1], -1)
        values, which = flat.gather(2, places).max(2)
        indices = places.gather(2, which.unsqueeze(2))
        made = (*input.shape[:-count], *sizes)
        values = values.reshape(made)
        return (values, indices.reshape(made)) if return_indices else values

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"The largest of windows over the last {count} dims, at places that are drawn."
    return shows(f"FractionalMaxPool{count}DBackward0")(pool)


fractional_max_pool2d = _pooled("fractional_max_pool2d", 2)
fractional_max_pool3d = _pooled("fractional_max_pool3d", 3)


def _with_indices(name: str, pool: Any) -> Any:
    def pool_with_indices(*args: Any, **kwargs: Any) -> Any:
        return pool(*args, **{**kwargs, "return_indices": True})

    pool_with_indices.__name__ = pool_with_indices.__qualname__ = name
    pool_with_indices.__doc__ = "The largest of windows at places that are drawn, and where it is."
    return pool_with_indices


fractional_max_pool2d_with_indices = _with_indices(
    "fractional_max_pool2d_with_indices", fractional_max_pool2d
)
fractional_max_pool3d_with_indices = _with_indices(
    "fractional_max_pool3d_with_indices", fractional_max_pool3d
)
