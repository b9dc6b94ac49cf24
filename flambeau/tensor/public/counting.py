"""Finding places in sorted sequences and counting into bins: searchsorted, histogram, bincount.

Keeps     places by halving steps over all values at once; counts by one accumulating write.
Touches   functions, creation.
Not here  distinct values (distinct.py), sorting (ops.indexing.scans)."""

from __future__ import annotations

import math
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.gradients.recording.drawn import shows
from flambeau.ops.define import c_type_name, not_implemented
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import stored
from flambeau.tensor.tensor import Tensor, result_tuple


def _places(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """How many elements of each row lie before each value: below it, or at most it if `right`."""
    size = sequence._layout.shape[-1]
    found = t.zeros(values._layout.shape, dtype=dtypes.int64)
    if not size or not values._layout.n_elements:
        return found
    step = 1 << (size.bit_length() - 1)
    while step:
        probe = found + step
        index = t.clamp(probe - 1, max=size - 1)
        seen = t.take(sequence, index) if sequence.ndim == 1 else t.gather(sequence, -1, index)
        after = seen > values if right else seen >= values  # False for NaN: it comes last
        found = t.where((probe <= size) & ~after, probe, found)
        step >>= 1
    return found


def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Any = None, out: Any = None,
) -> Tensor:  # fmt: skip
    """Where values would have to be put to keep the last dim of a sequence sorted.

    >>> searchsorted(t.arange(4), t.arange(3) + 1)
    tensor([1, 2, 3])
    """
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    is_number = not isinstance(input, Tensor)
    values = creation.tensor(input, dtype=sorted_sequence.dtype) if is_number else input
    rows, given = sorted_sequence._layout.shape, values._layout.shape
    if len(rows) != 1 and (len(rows) != len(given) or rows[:-1] != given[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(rows)} and input value tensor {list(given)}"
        )
    if values.dtype is not sorted_sequence.dtype:
        common = promotion.promote_types(values.dtype, sorted_sequence.dtype)
        values, sorted_sequence = values.to(common), sorted_sequence.to(common)
    if sorter is not None:
        sorted_sequence = t.gather(sorted_sequence, -1, sorter)
    found = _places(sorted_sequence, values, right or side == "right")
    found = found.to(dtypes.int32) if out_int32 else found
    return stored(
        found, out,
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
        "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's "
        "dtype {given} and out_int32 flag is " + str(out_int32),
    )  # fmt: skip


def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """The bucket between sorted boundaries that each value falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(
            "torch.bucketize(): boundaries tensor must be 1 dimension, but got "
            f"dim({boundaries.ndim})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number comes, or the sum of its weights.

    >>> bincount(t.arange(3))
    tensor([1, 1, 1])
    """
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.dtype.category > 1 or input.dtype is dtypes.bool_:
        raise not_implemented("bincount_cpu", input.dtype)
    if input.ndim != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    size = minlength
    if input.numel():
        if int(input.min().item()) < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        size = max(size, int(input.max().item()) + 1)
    element = dtypes.int64
    if weights is not None:
        element = dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    counts = t.zeros((size,), dtype=element)
    if not input.numel():
        return counts
    added = t.ones(input._layout.shape, dtype=element) if weights is None else weights.to(element)
    return t.scatter_add(counts, 0, input.to(dtypes.int64), added)


def _range(input: Tensor, low: float, high: float, given: bool, name: str) -> tuple[float, float]:
    """The outer edges: those given, else the smallest and largest value."""
    if given:
        pass
    elif input.numel():
        low, high = float(input.min().item()), float(input.max().item())
    else:
        low, high = 0.0, 0.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{name} range [{low:g}, {high:g}] is not finite")
    return low, high


def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None
) -> Tensor:
    """How many values lie in each of equally wide bins."""
    if not input.dtype.is_floating_point:
        raise not_implemented("histogram_cpu", input.dtype)
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    if max < min:
        raise RuntimeError("torch.histc: max must be larger than min")
    low, high = _range(input, float(min), float(max), min != max, "torch.histc:")
    if low == high:
        low, high = low - 1, high + 1
    values = input.detach().reshape(-1)
    inside = (values >= low) & (values <= high)
    place = ((values - low) / (high - low) * bins).clamp(0, bins - 1).nan_to_num(0)
    counts = t.zeros((bins,), dtype=input.dtype)
    made = t.scatter_add(counts, 0, place.to(dtypes.int64), inside.to(input.dtype))
    return stored(made, out)


def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None,
    density: bool = False, out: Any = None,
) -> Any:  # fmt: skip
    """Counts, or sums of weights, in bins of given edges or of equal width."""
    edges = _edges(input, bins, range)
    _check_weight(input, weight, tuple(input.shape))
    place, inside = _in_bins(edges, input.detach().reshape(-1))
    counts = _summed(input, place, inside, weight, edges.shape[0] - 1)
    if density:
        counts = counts / counts.sum() / (edges[1:] - edges[:-1])
    if out is not None:
        counts, edges = out[0].copy_(counts), out[1].copy_(edges)
    return result_tuple("histogram", ("hist", "bin_edges"), (counts, edges))


def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None,
    density: bool = False,
) -> Any:  # fmt: skip
    """Counts, or sums of weights, of points of D coordinates in the bins of D axes.

    input     (..., D), float32 or float64
    bins      a number for all axes, D numbers, or D vectors of edges
    range     the outer edges, two numbers an axis
    Returns   (hist, bin_edges): a tensor of D dims, the edges of each axis
    Raises    RuntimeError: bins, range or weights that do not fit the points

    >>> import flambeau as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), [2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    if input.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    n_axes = input.shape[-1]
    given = [bins] * n_axes if isinstance(bins, int) else list(bins)
    if len(given) != n_axes:
        if given and isinstance(given[0], Tensor):
            raise RuntimeError(
                f"torch.histogramdd: expected {n_axes} sequences of bin edges for a "
                f"{n_axes}-dimensional histogram but got {len(given)}"
            )
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if range is not None and len(range) != 2 * n_axes:
        raise RuntimeError(
            f"torch.histogramdd: for a {n_axes}-dimensional histogram range should have "
            f"{2 * n_axes} elements, but got {len(range)}"
        )
    _check_weight(input, weight, tuple(input.shape[:-1]))
    points = input.detach().reshape(-1, n_axes)
    edges, place, inside = [], None, None
    for axis, each in enumerate(given):
        values = points[:, axis]
        limits = None if range is None else range[2 * axis : 2 * axis + 2]
        edges.append(_edges(values, each, limits, axis))
        along, is_in = _in_bins(edges[-1], values)
        place = along if place is None else place * (edges[-1].shape[0] - 1) + along
        inside = is_in if inside is None else inside & is_in
    shape = tuple([each.shape[0] - 1 for each in edges])
    counts = _summed(input, place, inside, weight, math.prod(shape)).reshape(shape)
    if density:
        counts = counts / counts.sum()
        for axis, each in enumerate(edges):
            widths = [1] * n_axes
            widths[axis] = -1
            counts = counts / (each[1:] - each[:-1]).reshape(widths)
    return result_tuple("histogramdd", ("hist", "bin_edges"), (counts, tuple(edges)))


def _check_weight(input: Tensor, weight: Tensor | None, shape: tuple[int, ...]) -> None:
    """Refuse weights that are not one for each of the points."""
    if weight is None:
        return
    if tuple(weight.shape) != shape:
        whole = list(input.shape) if tuple(input.shape) != shape else [input.numel(), 1]
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            f"input tensor excluding its innermost dimension, but got input with shape {whole} and "
            f"weight with shape {list(weight.shape)}"
        )
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({c_type_name(input._layout)}), and "
            f"weight({c_type_name(weight._layout)})"
        )


def _in_bins(edges: Any, values: Any) -> tuple[Any, Any]:
    """(the bin of each value, whether it lies in one at all)."""
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = (_places(edges, values, right=True) - 1).clamp(0, edges.shape[0] - 2)
    return place, inside


def _summed(input: Tensor, place: Any, inside: Any, weight: Any, count: int) -> Any:
    """Of each of `count` bins how many lie in it, or the sum of their weights."""
    added = inside.to(input.dtype)
    if weight is not None:
        added = t.where(inside, weight.detach().reshape(-1), 0.0)
    return t.scatter_add(t.zeros((count,), dtype=input.dtype), 0, place, added)


def _edges(input: Tensor, bins: Any, limits: Any, dim: int = 0) -> Tensor:
    """Edges of the bins along dimension `dim`, whose values are `input`."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.numel() == 0:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got "
                f"{bins.ndim} dimensions in the bins tensor for dimension {dim}"
            )
        if bins.dtype is not input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, "
                f"but got input with dtype {c_type_name(input._layout)} and bins for dimension "
                f"{dim} with dtype {c_type_name(bins._layout)}"
            )
        if input.dtype not in (dtypes.float32, dtypes.float64):
            raise not_implemented("histogram_cpu", input.dtype)
        return t.clone(bins.detach())
    if bins <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}"
        )
    low, high = (0.0, 1.0) if limits is None else (float(limits[0]), float(limits[1]))
    if limits is not None and high < low:
        raise RuntimeError(
            "torch.histogramdd: min should not exceed max, but got min "
            f"{low:g} max {high:g} for dimension {dim}"
        )
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented("histogramdd", input.dtype)
    if limits is not None or input.numel():
        name = f"torch.histogramdd: dimension {dim}'s"
        low, high = _range(input, low, high, limits is not None, name)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return t.linspace(low, high, bins + 1, dtype=input.dtype)


@shows("DistBackward0")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Norm of order p of the difference."""
    return t.vector_norm(input - other, p)
