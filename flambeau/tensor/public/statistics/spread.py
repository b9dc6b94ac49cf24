"""Covariances, distances of rows, integrals and slopes of samples.

Keeps     no kernel of their own: the fuser sees the operators, gradients follow from theirs.
Touches   functions, composed.
Not here  variances (ops.reduction.moments)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import stored
from flambeau.tensor.number_rules import number
from flambeau.tensor.public.composed import trapezoid
from flambeau.tensor.tensor import Tensor


def nanmean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """Mean of what is not NaN."""
    if not input.is_floating_point() and not input.is_complex():
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            + dtypes_name(input)
        )
    dims = tuple(range(input.ndim)) if dim is None else dim
    count = t.logical_not(t.isnan(input.detach())).sum(dims, keepdim)
    found = t.nansum(input, dims, keepdim, dtype=dtype) / count
    return stored(found, out)


def dtypes_name(input: Tensor) -> str:
    """torch's name of a dtype in messages."""
    from flambeau.ops.define import type_name

    return type_name(input._layout)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> Tensor:
    """Covariances of variables, a row each, over observations, a column each.

    >>> cov(t.stack([t.arange(3), 2 - t.arange(3)]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    if input.dtype is dtypes.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.reshape(1, -1) if input.ndim < 2 else input
    if not rows.is_floating_point() and not rows.is_complex():
        rows = rows.float()
    n = rows.shape[1]
    weights = _weights(fweights, aweights, n)
    if weights is None:
        total: Any = n
        mean = rows.mean(1, True)
        scale: Any = n - correction
    else:
        total = weights.sum()
        mean = (rows * weights).sum(1, True) / total
        scale = total - correction
        if aweights is not None and correction:
            scale = total - correction * (weights * aweights).sum() / total
    centred = rows - mean
    weighted = centred if weights is None else centred * weights
    if not isinstance(scale, Tensor):
        scale = float(max(scale, 0))
    found = t.mm(weighted, centred.t().conj()) / scale
    return t.squeeze(found)


def _weights(fweights: Any, aweights: Any, n: int) -> Any:
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                f"{given.ndim} dimensions"
            )
        if given.numel() != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the "
                f"input but got {given.numel()} != {n}"
            )
        if bool(t.lt(given, 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is not None and fweights.is_floating_point():
        raise RuntimeError(
            "cov(): expected fweights to have integral dtype but got fweights with "
            f"{dtypes_name(fweights)} dtype"
        )
    if fweights is None or aweights is None:
        return fweights if aweights is None else aweights
    return fweights * aweights


def corrcoef(input: Tensor) -> Tensor:
    """Correlations of variables, a row each."""
    if input.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )
    covariance = cov(input)
    if not covariance.ndim:
        return covariance / covariance
    deviation = t.sqrt(t.diagonal(covariance))
    found = covariance / deviation[:, None] / deviation[None, :]
    if found.is_complex():
        real, imag = (t.clamp(part, -1.0, 1.0) for part in (found.real, found.imag))
        return t.complex(real, imag)
    return t.clamp(found, -1.0, 1.0)


@shows("CdistBackward0")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:  # fmt: skip
    """Distances of all rows of x1 to all rows of x2, from their differences.

    >>> cdist(t.zeros(1, 2), t.arange(4.0).reshape(2, 2))
    tensor([[1.0000, 3.6056]])
    """
    for name, given in (("X1", x1), ("X2", x2)):
        if given.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {given.ndim}D"
            )
        if not given.is_floating_point():
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {dtypes_name(given)}"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return t.vector_norm(difference, p, (-1,))


def trapz(y: Tensor, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Alias of trapezoid."""
    return trapezoid(y, x, dx=dx, dim=dim) if x is None else trapezoid(y, x, dim=dim)


def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Running integral of samples by trapezoids."""
    at = shapes.wrap_dim(dim, y.ndim)
    size = y.shape[at]
    pairs = t.narrow(y, at, 1, size - 1) + t.narrow(y, at, 0, size - 1)
    if x is None:
        return t.cumsum(pairs, at) * (dx / 2)
    if x.ndim == 1:
        shape = [1] * y.ndim
        shape[at] = x.shape[0]
        x = x.reshape(shape)
    along = shapes.wrap_dim(at - y.ndim, x.ndim)
    steps = t.narrow(x, along, 1, size - 1) - t.narrow(x, along, 0, size - 1)
    return t.cumsum(pairs * steps, at) / 2


def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Slopes of samples along dims: central differences inside, one-sided at the edges.

    spacing   the distance of neighbours, one for all dims or one each; or places, a vector each
    Raises    RuntimeError: a dim twice, spacings that are not one for each dim, too few samples
    """
    dims = [dim] if isinstance(dim, int) else list(range(input.ndim)) if dim is None else list(dim)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    given = spacing
    if not isinstance(spacing, (tuple, list)):
        distance = 1.0 if spacing is None else number(spacing, "gradient", "spacing", 0)
        given = [distance] * len(dims)
    if len(given) != len(dims):
        raise RuntimeError(_uneven_spacing(len(given), input.ndim, None if dim is None else dims))
    wrapped = [shapes.wrap_dim(each, input.ndim) for each in dims]
    for each in given:
        if isinstance(each, Tensor) and each.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got "
                f"an element with {each.ndim} dimensions!"
            )
    for place, at in enumerate(wrapped):
        if at in wrapped[:place]:
            raise RuntimeError(f"dim {at} appears multiple times in the list of dims")
        if input.shape[at] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    return tuple(
        _slope_between(input, at, step, edge_order)
        if isinstance(step, Tensor)
        else _slope(input, at, step, edge_order)
        for at, step in zip(wrapped, given, strict=True)
    )


def _uneven_spacing(count: int, ndim: int, dims: list[int] | None) -> str:
    if dims is None:
        return (
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {ndim}', since dim argument was not given, but got a list of "
            f"length {count}"
        )
    return (
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
        f"arguments to have the same length, but got a spacing argument of length {count} and a "
        f"dim argument of length {len(dims)}."
    )


def _slope(input: Tensor, dim: int, distance: Any, edge_order: int) -> Tensor:
    """Neighbours are `distance` apart."""
    size = input.shape[dim]

    def part(start: int, count: int = 1) -> Any:
        return t.narrow(input, dim, start, count)

    if edge_order == 1:
        first, last = part(1) - part(0), part(size - 1) - part(size - 2)
    else:
        first = part(1) * 2 - part(0) * 1.5 - part(2) * 0.5
        last = part(size - 1) * 1.5 - part(size - 2) * 2 + part(size - 3) * 0.5
    inner = (part(2, size - 2) - part(0, size - 2)) / distance / 2
    return t.cat([first / distance, inner, last / distance], dim)


def _slope_between(input: Tensor, dim: int, places: Tensor, edge_order: int) -> Tensor:
    """Samples lie at `places`."""
    size = input.shape[dim]
    places = places.to(input.dtype if input.dtype.category > 1 else dtypes.float32)
    shape = [1] * input.ndim
    shape[dim] = -1
    gaps = (places[1:] - places[:-1]).reshape(shape)

    def part(tensor: Any, start: int, count: int) -> Any:
        return t.narrow(tensor, dim, start, count)

    slopes = (part(input, 1, size - 1) - part(input, 0, size - 1)) / gaps
    first, last = part(slopes, 0, 1), part(slopes, size - 2, 1)
    pieces = [first, last]
    if size > 2:
        before, after = part(gaps, 0, size - 2), part(gaps, 1, size - 2)
        left, right = part(slopes, 0, size - 2), part(slopes, 1, size - 2)
        inner = (left * after + right * before) / (before + after)
        if edge_order == 2:
            share = part(gaps, 0, 1) / (part(gaps, 0, 1) + part(gaps, 1, 1))
            first = first - (part(slopes, 1, 1) - first) * share
            end = part(gaps, size - 2, 1)
            share = end / (end + part(gaps, size - 3, 1))
            last = last + (last - part(slopes, size - 3, 1)) * share
        pieces = [first, inner, last]
    return t.cat(pieces, dim)


@shows("RenormBackward0")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """Slices along a dim scaled down to a norm of at most maxnorm."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    at = shapes.wrap_dim(dim, input.ndim)
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    others = tuple(each for each in range(input.ndim) if each != at)
    norms = t.vector_norm(input, p, others, True)
    found = input * t.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return stored(found, out)


def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """renorm in place."""
    return self.copy_(renorm(t.clone(self), p, dim, maxnorm))


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Numbers of elements in row-major order as an index for each dim."""
    sizes = [shape] if isinstance(shape, int) else list(shape)
    found = []
    for size in reversed(sizes):
        found.append(t.remainder(indices, size))
        indices = t.floor_divide(indices, size)
    return tuple(reversed(found))


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of numbers as the columns of a matrix, the highest first."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    exponents = t.arange(count)
    if not increasing:
        exponents = t.flip(exponents, (0,))
    base = x if x.is_floating_point() or x.is_complex() else x.long()
    return t.pow(base[:, None], exponents)
