"""Images in other sizes: interpolate and its older names.

Keeps     resizing is a gather along each dim, with weights where it interpolates. Images of bytes
          are weighted in whole numbers of 16 bits and rounded after each dim, the last one first.
Touches   tensor.functions.
Not here  the layers (modules/upsampling.py), channels rearranged (shuffling.py)."""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau.base import dtypes
from flambeau.gradients.recording.drawn import shows
from flambeau.ops.define import not_implemented
from flambeau.tensor import functions as t

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}


def _sizes(
    input: Any, size: Any, scale_factor: Any, recompute: Any, count: int
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """(sizes of the result, scale of each dim or None where sizes say it)."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    spatial = input.shape[2:]
    if size is not None and recompute:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if size is not None:
        given = tuple(size) if isinstance(size, (tuple, list)) else (size,) * count
        if len(given) != count:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(spatial)} and output size of {size}. Please "
                "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, "
                "...,oK) format."
            )
        return given, (None,) * count
    scales = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * count
    if len(scales) != count:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {list(spatial)} and scale_factor of shape {scale_factor}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, "
            "s2, ...,sK) format."
        )
    sizes = tuple(math.floor(s * float(f)) for s, f in zip(spatial, scales, strict=True))
    return sizes, (None,) * count if recompute else tuple(float(f) for f in scales)


def _check_mode(input: Any, mode: str, count: int) -> None:
    """Refuse modes that do not exist, or not for so many dims."""
    known = ("nearest", "nearest-exact", "area", "bicubic", *_LINEAR)
    if mode not in known or count not in ((2,) if mode == "bicubic" else (1, 2, 3)):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
            f"lanczos | area | nearest-exact (got {mode})"
        )
    wanted = _LINEAR.get(mode, count)
    if wanted != count:
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {wanted + 2}D input"
        )


def _check_sizes(input: Any, sizes: tuple[int, ...]) -> None:
    """Refuse images without places or channels, before and after."""
    count = len(sizes)
    if min(*sizes, *input.shape[2:]) <= 0:
        letters = "DHW"[3 - count :]
        old, new = (
            ", ".join(f"{letter}: {each}" for letter, each in zip(letters, given, strict=True))
            for given in (input.shape[2:], sizes)
        )
        joined = " and output" if count == 1 else " output"
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({old}){joined} ({new})"
        )
    if not input.shape[1]:
        raise RuntimeError(
            f"Non-empty {count + 2}D data tensor expected but got a tensor with sizes "
            f"{list(input.shape)}"
        )


def _check_dtype(input: Any, mode: str, antialias: bool) -> None:
    """Refuse dtypes that torch has no kernel for where their values would be meaningless."""
    if input.is_floating_point() or input.is_complex() or mode in ("nearest", "nearest-exact"):
        return
    if input.dtype is dtypes.uint8 and mode in ("bilinear", "bicubic"):
        return
    name = f"upsample_{mode}{input.dim() - 2}d"
    if antialias:
        name = "compute_index_ranges_weights"
    elif mode == "bicubic":
        name = "compute_indices_weights_cubic"
    elif mode == "bilinear":
        name += "_channels_last"
    raise not_implemented(name, input.dtype)


def _interpolation(input: Any, *arguments: Any, mode: str = "nearest", **named: Any) -> str | None:
    """torch's node of a kind of interpolation; None where it has no node of its own."""
    kind = arguments[2] if len(arguments) > 2 else mode
    if kind == "area":
        return None
    stem = {"nearest-exact": "NearestExact"}.get(kind, kind.capitalize())
    tail = "Aa" if named.get("antialias") else ""
    return f"Upsample{stem}{input.ndim - 2}D{tail}Backward0"


@shows(_interpolation)
def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: Any = None, recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """An image in another size.

    >>> import flambeau as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 3.0]]]), size=4, mode="nearest")
    tensor([[[1., 1., 3., 3.]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    count = input.dim() - 2
    sizes, scales = _sizes(input, size, scale_factor, recompute_scale_factor, count)
    if antialias and (mode not in ("bilinear", "bicubic") or count != 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    _check_mode(input, mode, count)
    if mode == "area":
        from flambeau.nn.functions import pooling

        return getattr(pooling, f"adaptive_avg_pool{count}d")(input, sizes)
    _check_sizes(input, sizes)
    _check_dtype(input, mode, antialias)
    if input.dtype is dtypes.uint8 and mode in ("bilinear", "bicubic"):
        return _resized_bytes(input, sizes, scales, mode, bool(align_corners), antialias)
    for number in range(count):
        if antialias:
            input = _smoothed(
                input, 2 + number, sizes[number], scales[number], mode, bool(align_corners)
            )
            continue
        input = _resized(input, 2 + number, sizes[number], scales[number], mode, align_corners)
    return input


def _positions(old: int, new: int, scale: Any, align: bool) -> list[float]:
    """Where each place of the new dim lies in the old one."""
    if align:
        step = (old - 1) / (new - 1) if new > 1 else 0.0
        return [step * n for n in range(new)]
    step = 1.0 / scale if scale else old / new
    return [step * (n + 0.5) - 0.5 for n in range(new)]


def _resized(input: Any, dim: int, new: int, scale: Any, mode: str, align: bool) -> Any:
    from flambeau.nn import names as torch

    old = input.shape[dim]
    if mode in ("nearest", "nearest-exact"):
        step = 1.0 / scale if scale else old / new
        half = 0.5 if mode == "nearest-exact" else 0.0
        places = [min(math.floor((n + half) * step), old - 1) for n in range(new)]
        return t.index_select(input, dim, torch.tensor(places))
    if mode == "bicubic":
        return _cubic(input, dim, _positions(old, new, scale, align))
    if old == new and not scale:
        return input
    positions = [max(each, 0.0) for each in _positions(old, new, scale, align)]
    low = [min(int(each), old - 1) for each in positions]
    high = [min(each + 1, old - 1) for each in low]
    shape = (-1,) + (1,) * (input.dim() - 1 - dim)
    share = torch.tensor(
        [p - n for p, n in zip(positions, low, strict=True)], dtype=input.dtype
    ).reshape(shape)
    first = t.index_select(input, dim, torch.tensor(low))
    second = t.index_select(input, dim, torch.tensor(high))
    return first * (1 - share) + second * share


def _keys(rest: float) -> list[float]:
    """Weights of the four neighbours of a place `rest` after the second: Keys' cubic, a = -0.75."""
    a = -0.75

    def near(x: float) -> float:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: float) -> float:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(rest + 1), near(rest), near(1 - rest), far(2 - rest)]


def _cubic(input: Any, dim: int, positions: list[float]) -> Any:
    """Four neighbours, weighted."""
    from flambeau.nn import names as torch

    old = input.shape[dim]
    shape = (-1,) + (1,) * (input.dim() - 1 - dim)
    bases = [math.floor(p) for p in positions]
    weights = [_keys(p - b) for p, b in zip(positions, bases, strict=True)]
    result: Any = None
    for number, offset in enumerate((-1, 0, 1, 2)):
        places = [min(max(b + offset, 0), old - 1) for b in bases]
        own = [each[number] for each in weights]
        column = torch.tensor(own, dtype=input.dtype).reshape(shape)
        part = t.index_select(input, dim, torch.tensor(places)) * column
        result = part if result is None else result + part
    return result


def _filter(mode: str, x: float) -> float:
    """A triangle, or Keys' cubic with a = -0.5, around 0."""
    x = abs(x)
    if mode == "bilinear":
        return max(1.0 - x, 0.0)
    a = -0.5
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _filtered(old: int, new: int, scale: Any, mode: str, align: bool) -> list[list[float]]:
    """A row of weights for each new place; the filter is as wide as a step, if that is over 1."""
    if align:
        step = (old - 1) / (new - 1) if new > 1 else 0.0
    else:
        step = 1.0 / scale if scale else old / new
    width = max(step, 1.0)
    support = (1.0 if mode == "bilinear" else 2.0) * width
    rows = []
    for place in range(new):
        centre = step * (place + 0.5)
        first = max(int(centre - support + 0.5), 0)
        end = min(int(centre + support + 0.5), old)
        weights = [_filter(mode, (n - centre + 0.5) / width) for n in range(first, end)]
        total = sum(weights) or 1.0
        row = [0.0] * old
        row[first:end] = [each / total for each in weights]
        rows.append(row)
    return rows


def _neighbouring(old: int, new: int, scale: Any, mode: str, align: bool) -> list[list[float]]:
    """A row of weights for each new place: those of its two or four neighbours."""
    rows = []
    for position in _positions(old, new, scale, align):
        row = [0.0] * old
        if mode == "bilinear":
            position = max(position, 0.0)
            low = min(int(position), old - 1)
            row[low] += 1 - (position - low)
            row[min(low + 1, old - 1)] += position - low
        else:
            base = math.floor(position)
            for offset, weight in zip((-1, 0, 1, 2), _keys(position - base), strict=True):
                row[min(max(base + offset, 0), old - 1)] += weight
        rows.append(row)
    return rows


def _smoothed(input: Any, dim: int, new: int, scale: Any, mode: str, align: bool) -> Any:
    """Resized by a product with weights that keep aliases out."""
    from flambeau.nn import names as torch

    rows = _filtered(input.shape[dim], new, scale, mode, align)
    table = torch.tensor(rows, dtype=input.dtype)
    return t.matmul(input.movedim(dim, -1), table.t()).movedim(-1, dim)


def _resized_bytes(
    input: Any, sizes: tuple[int, ...], scales: tuple[Any, ...], mode: str, align: bool,
    antialias: bool,
) -> Any:  # fmt: skip
    """An image of bytes, resized in whole numbers."""
    from flambeau.nn import names as torch

    for dim in reversed(range(2, input.dim())):
        old, new, scale = input.shape[dim], sizes[dim - 2], scales[dim - 2]
        if old == new and not scale:
            continue
        rows = (_filtered if antialias else _neighbouring)(old, new, scale, mode, align)
        largest = max(max(row) for row in rows)
        bits = 0
        while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
            bits += 1
        whole = [
            [float(int(each * (1 << bits) + (0.5 if each >= 0 else -0.5))) for each in row]
            for row in rows
        ]
        table = torch.tensor(whole, dtype=dtypes.float64)
        sums = t.matmul(input.movedim(dim, -1).double(), table.t()) + (1 << bits >> 1)
        input = (sums / (1 << bits)).floor().clamp(0, 255).to(dtypes.uint8).movedim(-1, dim)
    return input.contiguous()


def _warn_of_old_name(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: Any = None,
) -> Any:  # fmt: skip
    """The old name of interpolate."""
    _warn_of_old_name("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate by the nearest place."""
    _warn_of_old_name("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate along both dims, corners aligned."""
    _warn_of_old_name("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)
