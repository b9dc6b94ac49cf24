"""Medians, quantiles, the k-th smallest, the most frequent; running extremes.

Keeps     values are read back at the index that was found, so that gradients go there; ties and NaN
          as torch has them.
Touches   functions.
Not here  sorting itself (ops.indexing.scans), extremes (ops.reduction.extremes)."""

from __future__ import annotations

from typing import Any

from flambeau.base import shapes
from flambeau.base.dtypes import NAN, float32, float64, int64
from flambeau.gradients.recording.drawn import shows
from flambeau.ops.define import not_implemented
from flambeau.tensor import creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import check_overlap, stored
from flambeau.tensor.tensor import Tensor, result_tuple

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _pair(name: str, input: Tensor, index: Any, dim: int, keepdim: bool, out: Any) -> Any:
    """(values, indices) at one index along a dim, which is kept or not."""
    values = t.gather(input, dim, index)
    if not keepdim:
        values, index = t.squeeze(values, dim), t.squeeze(index, dim)
    if out is not None:
        return _written(name, out, values, index)
    return result_tuple(name, ("values", "indices"), (values, index))


def _written(name: str, out: Any, values: Any, indices: Any) -> Any:
    if out[1].dtype is not int64:
        raise RuntimeError("output indices must be of scalar type Long")
    out[0].resize_(values.shape).copy_(values)
    out[1].resize_(indices.shape).copy_(indices)
    return result_tuple(f"{name}_out", ("values", "indices"), (out[0], out[1]))


def _alone(name: str, input: Tensor, out: Any) -> Any:
    """(values, indices) of a tensor without dims."""
    index = t.zeros((), dtype=t.sort(input)[1].dtype)
    if out is not None:
        return _written(name, out, input, index)
    return result_tuple(name, ("values", "indices"), (t.clone(input), index))


def _some(name: str, input: Tensor, dim: int) -> int:
    """The dim, wrapped; torch's error where it is empty."""
    at = shapes.wrap_dim(dim, input.ndim)
    if input.ndim and input.shape[at] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {at} to have non-zero size.")
    return at


@shows("KthvalueBackward0")
def kthvalue(
    input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None
) -> Any:
    """(the k-th smallest along a dim, where it is).

    >>> kthvalue(creation.tensor([5.0, 1.0, 3.0]), 2).values
    tensor(3.)
    """
    at = shapes.wrap_dim(dim, input.ndim)
    size = input.shape[at] if input.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    if out is not None:
        check_overlap(out[0], (input,), "kthvalue")
    if not input.ndim:
        return _alone("kthvalue", input, out)
    order = t.sort(input.detach(), at, stable=True)[1]
    return _pair("kthvalue", input, t.narrow(order, at, k - 1, 1), at, keepdim, out)


def _middle(input: Tensor, dim: int, skips_nan: bool) -> Any:
    """Where the lower median lies along a dim, which is kept."""
    values, order = t.sort(input.detach(), dim, stable=True)
    size = input.shape[dim]
    if not input.is_floating_point():
        return t.narrow(order, dim, (size - 1) // 2, 1)
    missing = t.isnan(values).sum(dim, True)
    if skips_nan:
        place = t.clamp(size - missing - 1, min=0) // 2
    else:
        place = t.where(missing > 0, size - missing, (size - 1) // 2)
    return t.gather(order, dim, place)


def _whole_median(input: Tensor, skips_nan: bool) -> Tensor:
    """The median of all elements; its gradient goes to all that equal it, evenly."""
    if not input.numel():
        element = input.dtype
        fill = NAN if element.is_floating_point else -(2 ** (8 * element.itemsize - 1))
        return t.sum(input).to(element) + fill
    flat = input.reshape(-1)
    value = t.take(flat.detach(), _middle(flat, 0, skips_nan)).reshape(())
    if not input.requires_grad:
        return value
    equal = t.isnan(flat) if bool(t.isnan(value)) else t.eq(flat, value)
    # A sum of zeros, through which the gradient finds its places.
    nothing = t.masked_fill(flat - value, t.logical_not(equal), 0).sum() / equal.sum()
    return t.masked_fill(value, t.isnan(value), 0) + nothing


def _median(
    name: str, input: Tensor, dim: int | None, keepdim: bool, out: Any, skips_nan: bool
) -> Any:
    if input.dtype.is_complex or input.dtype.name == "bool":
        raise not_implemented("median_out_impl" if dim is not None else "median_cpu", input.dtype)
    if dim is None:
        return _whole_median(input, skips_nan)
    at = _some(name, input, dim)
    if not input.ndim:
        return _alone(name, input, out)
    return _pair(name, input, _middle(input, at, skips_nan), at, keepdim, out)


@shows(lambda input, dim=None, *_, **__: f"MedianBackward{int(dim is not None)}")
def median(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower median of all elements, or (values, indices) along a dim; NaN wins.

    >>> median(creation.tensor([4.0, 1.0, 3.0, 2.0]))
    tensor(2.)
    """
    return _median("median", input, dim, keepdim, out, skips_nan=False)


@shows(lambda input, dim=None, *_, **__: f"NanmedianBackward{int(dim is not None)}")
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """median of what is not NaN."""
    return _median("nanmedian", input, dim, keepdim, out, skips_nan=True)


@shows("ModeBackward0")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """(the most frequent value along a dim, where it last is); the smallest of equally frequent."""
    at = _some("mode", input, dim)
    if not input.ndim:
        return _alone("mode", input, out)
    values, order = t.sort(input.detach(), at, stable=True)
    size = input.shape[at]
    shape = [1] * input.ndim
    shape[at] = size
    places = t.arange(size).reshape(shape).expand(input.shape)
    before, after = t.narrow(values, at, 0, size - 1), t.narrow(values, at, 1, size - 1)
    first = t.ones_like(t.narrow(values, at, 0, 1), dtype=t.ne(values, values).dtype)
    starts = t.cat([first, t.ne(before, after)], at)
    length = places - _running(t.where(starts, places, 0), at, largest=True)[0]
    index = t.gather(order, at, t.argmax(length, at, True))
    return _pair("mode", input, index, at, keepdim, out)


# Running extremes ----------------------------------------------------------------------


def _running(values: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    """(extreme up to each place, where it last came), by steps of 1, 2, 4 ..."""
    size = values.shape[dim]
    shape = [1] * values.ndim
    shape[dim] = size
    places = t.arange(size).reshape(shape).expand(values.shape)
    step = 1
    while step < size:
        head = t.narrow(values, dim, 0, step), t.narrow(places, dim, 0, step)
        early = t.narrow(values, dim, 0, size - step), t.narrow(places, dim, 0, size - step)
        late = t.narrow(values, dim, step, size - step), t.narrow(places, dim, step, size - step)
        takes = t.ge(late[0], early[0]) if largest else t.le(late[0], early[0])
        if values.is_floating_point():
            takes = t.logical_or(takes, t.isnan(late[0]))
        values, places = (
            t.cat([first, t.where(takes, new, old)], dim)
            for first, new, old in zip(head, late, early, strict=True)
        )
        step *= 2
    return values, places


def _cumulative(name: str, input: Tensor, dim: int, out: Any, largest: bool) -> Any:
    at = shapes.wrap_dim(dim, input.ndim)
    if not input.ndim:
        return _alone(name, input, out)
    _, places = _running(input.detach(), at, largest)
    values = t.gather(input, at, places)
    if out is not None:
        return _written(name, out, values, places)
    return result_tuple(name, ("values", "indices"), (values, places))


@shows("CummaxBackward0")
def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """(largest up to each place of a dim, where it last came).

    >>> cummax(creation.tensor([1.0, 3.0, 2.0, 3.0]), 0).indices
    tensor([0, 1, 1, 3])
    """
    return _cumulative("cummax", input, dim, out, largest=True)


@shows("CumminBackward0")
def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """(smallest up to each place of a dim, where it last came)."""
    return _cumulative("cummin", input, dim, out, largest=False)


@shows("LogcumsumexpBackward0")
def logcumsumexp(input: Tensor, dim: int, *, out: Any = None) -> Tensor:
    """log of the running sum of exponentials, by steps of 1, 2, 4 ...; nothing overflows."""
    if not input.is_floating_point() and not input.is_complex():
        raise not_implemented("logcumsumexp_out_cpu", input.dtype)
    at = shapes.wrap_dim(dim, input.ndim)
    made: Any = t.clone(input)
    size = input.shape[at] if input.ndim else 1
    step = 1
    while step < size:
        early, late = t.narrow(made, at, 0, size - step), t.narrow(made, at, step, size - step)
        made = t.cat([t.narrow(made, at, 0, step), t.logaddexp(early, late)], at)
        step *= 2
    return stored(made, out)


# Quantiles -----------------------------------------------------------------------------


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str,
    out: Any, skips_nan: bool,
) -> Tensor:  # fmt: skip
    if input.dtype not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise RuntimeError("quantile() q must be a scalar or 1D tensor")
        if q.dtype is not input.dtype:
            raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
        if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
            raise RuntimeError("quantile() q values must be in the range [0, 1]")
    else:
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
        q = creation.tensor(q, dtype=input.dtype)
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if not input.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    ndim = max(input.ndim, 1)
    at = 0 if dim is None else shapes.wrap_dim(dim, ndim)
    rows = input.reshape(1, -1) if dim is None or not input.ndim else t.movedim(input, at, -1)
    found = _between(rows, q.reshape(-1), interpolation, skips_nan)
    found = t.movedim(found, -1, 0)
    if dim is None or not input.ndim:
        found = t.squeeze(found, 1)
        if keepdim:
            found = found.reshape(-1, *[1] * input.ndim)
    elif keepdim:
        found = t.unsqueeze(found, at + 1)
    found = t.squeeze(found, 0) if not q.ndim else found
    return stored(found, out)


def _between(rows: Any, q: Any, interpolation: str, skips_nan: bool) -> Any:
    """Quantiles of the last dim, along the last dim."""
    values = t.sort(rows, -1)[0]
    size = values.shape[-1]
    missing = t.isnan(values.detach()).sum(-1, True)
    if skips_nan:
        rank = q * t.clamp(size - missing - 1, min=0)
    else:
        rank = t.where(missing > 0, size - 1, q * (size - 1))
    if interpolation == "lower":
        rank = t.floor(rank)
    elif interpolation == "higher":
        rank = t.ceil(rank)
    elif interpolation == "nearest":
        rank = t.round(rank)
    below = rank.long()
    low = t.gather(values, -1, below.expand(*values.shape[:-1], q.shape[0]))
    if interpolation in ("lower", "higher", "nearest"):
        return low
    above = t.ceil(rank).long()
    high = t.gather(values, -1, above.expand(*values.shape[:-1], q.shape[0]))
    share = t.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
    return t.lerp(low, high, share.expand(low.shape))


@shows("SqueezeBackward4")
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear", out: Any = None,
) -> Tensor:  # fmt: skip
    """The value below which a share q of the elements lies, between neighbours as asked.

    >>> quantile(creation.tensor([0.0, 1.0, 2.0, 3.0]), 0.5)
    tensor(1.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, out, skips_nan=False)


@shows("SqueezeBackward4")
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear", out: Any = None,
) -> Tensor:  # fmt: skip
    """quantile of what is not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, out, skips_nan=True)
