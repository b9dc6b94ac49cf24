"""Images sampled at places of a grid: affine_grid, grid_sample.

Keeps     a sample is a weighted sum of its neighbours, each gathered, so that gradients reach image
          and grid by those of gather and of the weights.
Touches   tensor.functions.
Not here  resizing by a factor (resizing.py).
Source    Jaderberg et al., 2015; Keys, 1981 (cubic, a = -0.75)."""

from __future__ import annotations

import itertools
import warnings
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.gradients.recording.drawn import shows
from flambeau.ops.define import type_name
from flambeau.tensor import functions as t

_MODES: Final = ("bilinear", "nearest", "bicubic")
_PADDINGS: Final = ("zeros", "border", "reflection")


def _warn_of_default(name: str) -> None:
    warnings.warn(
        f"Default {name} behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample "
        "for details.",
        stacklevel=3,
    )


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Places that affine maps send a regular grid to, from -1 to 1 across an image.

    theta   (N, 2, 3) for images, (N, 3, 4) for volumes
    size    (N, C, H, W) or (N, C, D, H, W) of what will be sampled

    >>> affine_grid(t.eye(2, 3)[None], (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if align_corners is None:
        _warn_of_default("grid_sample and affine_grid")
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError("Expected non-zero, positive output size. Got " + str(tuple(size)))
    spatial = tuple(size[2:])
    if align_corners and min(spatial) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=2,
        )
    columns = []
    for dim in reversed(range(n)):  # x first, as grids have it
        shape = [1] * n
        shape[dim] = spatial[dim]
        columns.append(
            _line(spatial[dim], align_corners, theta.dtype).reshape(shape).expand(spatial)
        )
    columns.append(t.ones_like(columns[0]))
    base = t.stack([column.reshape(-1) for column in columns], 1)
    return t.matmul(base, theta.mT).reshape(size[0], *spatial, n)


def _line(count: int, align_corners: bool, element: Any) -> Any:
    """count places from -1 to 1, at the pixels' middles or with the outermost at the ends."""
    if count <= 1:
        return t.zeros(count, dtype=element)
    line = t.linspace(-1, 1, count, dtype=element)
    return line if align_corners else line * (count - 1) / count


@shows(lambda input, *_, **__: f"GridSampler{input.ndim - 2}DBackward0")
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """The image at places of a grid, whose last dim holds x, y (and z), each from -1 to 1."""
    _check_words(mode, padding_mode)
    if align_corners is None:
        _warn_of_default("grid_sample and affine_grid")
        align_corners = False
    _check(input, grid, mode)
    sizes = list(reversed(input.shape[2:]))  # of x, y, z
    places = []
    for number, size in enumerate(sizes):
        place = grid[..., number]
        # In torch's order of roundings: a regular grid lies on pixels, where slopes jump.
        places.append(
            (place + 1) * ((size - 1) / 2) if align_corners else (place + 1) * (size / 2) - 0.5
        )
    image = _Image(input, sizes, padding_mode, align_corners)
    if mode == "bicubic":
        return _cubic(image, places)
    places = [image.padded(place, dim) for dim, place in enumerate(places)]
    if mode == "nearest":
        found = image.at([t.round(place) for place in places])
        if not grid.requires_grad:
            return found
        # A step's slope is zero, which the grid is told, wherever its places are.
        return found - t.abs(t.sign(grid)).sum(-1)[:, None] * 0
    return _linear(image, places)


def _check_words(mode: str, padding_mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )


def _check(input: Any, grid: Any, mode: str) -> None:
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != input.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.dim() - 2} in last dimension, but "
            f"got grid with sizes {list(grid.shape)}"
        )
    if input.dim() not in (4, 5) or input.dim() != grid.dim():
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    for dim, size in enumerate(input.shape[2:], 2):
        if not size:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(input.shape)} with dimension {dim} being empty"
            )
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            helped(
                f"expected scalar type {type_name(input.dtype)} but found {type_name(grid.dtype)}",
                fix="grid.to(input.dtype)",
            )
        )
    if mode == "bicubic" and input.dim() == 5:
        raise RuntimeError(
            helped(
                "grid_sampler(): bicubic interpolation only supports 4D input",
                fix='mode="bilinear" for volumes',
            )
        )


class _Image:
    """An image by places: those outside are zero, or brought inside."""

    def __init__(
        self, input: Any, sizes: list[int], padding_mode: str, align_corners: bool
    ) -> None:
        self.flat = input.reshape(*input.shape[:2], -1)
        self.sizes = sizes
        self.padding_mode = padding_mode
        self.align_corners = align_corners

    def padded(self, place: Any, dim: int) -> Any:
        """Places brought inside, where the padding says so."""
        size = self.sizes[dim]
        if self.padding_mode == "zeros":
            return place
        if self.padding_mode == "reflection":
            low, span = (0.0, size - 1.0) if self.align_corners else (-0.5, float(size))
            if span == 0:
                return t.zeros_like(place)
            distance = t.abs(place - low)
            rest = t.fmod(distance, span)
            turns = t.floor(distance.detach() / span)
            even = t.eq(t.fmod(turns, 2), 0)
            place = t.where(even, rest + low, span - rest + low)
        return t.clamp(place, min=0, max=size - 1)

    def at(self, places: list[Any]) -> Any:
        """The image at whole places (x, y, z), zero outside."""
        inside: Any = None
        index: Any = None
        stride = 1
        for place, size in zip(places, self.sizes, strict=True):
            within = t.logical_and(place >= 0, place <= size - 1)
            inside = within if inside is None else t.logical_and(inside, within)
            step = t.where(within, place.detach(), 0).long() * stride  # NaN is outside
            index = step if index is None else index + step
            stride *= size
        batch, channels = self.flat.shape[:2]
        shape = index.shape[1:]
        index = index.reshape(batch, 1, -1).expand(batch, channels, -1)
        found = t.gather(self.flat, 2, index).reshape(batch, channels, *shape)
        return t.masked_fill(found, t.logical_not(inside)[:, None], 0)


def _linear(image: _Image, places: list[Any]) -> Any:
    """Neighbours on both sides in every dim, weighted by how near they are."""
    lows = [t.floor(place.detach()) for place in places]
    result: Any = None
    for offsets in itertools.product((0, 1), repeat=len(places)):
        weight: Any = None
        for place, low, offset in zip(places, lows, offsets, strict=True):
            share = place - low if offset else low + 1 - place
            weight = share if weight is None else weight * share
        corner = image.at([low + offset for low, offset in zip(lows, offsets, strict=True)])
        part = corner * weight[:, None]
        result = part if result is None else result + part
    return result


def _cubic_weights(share: Any) -> list[Any]:
    """Weights of the neighbours at -1, 0, 1 and 2 of a place `share` after the one at 0."""
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]


def _cubic(image: _Image, places: list[Any]) -> Any:
    lows = [t.floor(place.detach()) for place in places]
    weights = [_cubic_weights(place - low) for place, low in zip(places, lows, strict=True)]
    result: Any = None
    for j, i in itertools.product(range(4), repeat=2):
        whole = [
            image.padded(lows[0] + (i - 1), 0), image.padded(lows[1] + (j - 1), 1)
        ]  # fmt: skip
        part = image.at(whole) * (weights[0][i] * weights[1][j])[:, None]
        result = part if result is None else result + part
    return result
