"""The discrete Fourier transform of one dim, out of matrix products.

Keeps     a length is split into factors of at most 64 (Cooley and Tukey), each a product with its
          small matrix; lengths with larger prime factors become convolutions (Bluestein). All are
          recorded operators: gradients of any order, the same bits on any threads.
Touches   tensor.functions.
Not here  norms, dims and real transforms (functions.py)."""

from __future__ import annotations

import cmath
import math
from functools import lru_cache
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.gradients.modes import no_grad
from flambeau.tensor import creation
from flambeau.tensor import functions as t

_LARGEST: Final = 64
# Roots of unity of transforms up to this length are kept; of longer ones they are computed anew.
_KEPT: Final = 4096


def transformed(input: Any, inverse: bool) -> Any:
    """The transform of a complex tensor's last dim, unscaled."""
    n = input.shape[-1]
    if n <= 1:
        return input
    if n <= _LARGEST:
        return t.matmul(input, _matrix(n, inverse, input.dtype))
    factor = _factor(n)
    if factor is None:
        return _convolved(input, n, inverse)
    rest = n // factor
    lead = tuple(input.shape[:-1])
    # x[a rest + b]: over a first, then turned, then over b.
    columns = input.reshape(*lead, factor, rest).transpose(-1, -2)
    inner = t.matmul(columns, _matrix(factor, inverse, input.dtype))
    inner = inner * _turns(n, rest, factor, inverse, input.dtype)
    outer = transformed(inner.transpose(-1, -2), inverse)
    return outer.transpose(-1, -2).reshape(*lead, n)


def _factor(n: int) -> int | None:
    """The largest factor up to 64; None where what is left would have none."""
    rest = n
    for prime in range(2, _LARGEST + 1):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        return None
    return max(each for each in range(2, _LARGEST + 1) if n % each == 0)


def _root(numerator: int, n: int, inverse: bool) -> complex:
    """exp(-2 pi i numerator / n), quarters exact."""
    quarters, between = divmod(4 * numerator, n)
    if not between:
        return (1, 1j if inverse else -1j, -1, -1j if inverse else 1j)[quarters % 4]
    angle = 2 * math.pi * (numerator % n) / n
    return cmath.rect(1.0, angle if inverse else -angle)


def _made(values: list[Any], element: Any) -> Any:
    with no_grad():
        return creation.tensor(values, dtype=dtypes.complex128).to(element)


@lru_cache(maxsize=128)
def _matrix(n: int, inverse: bool, element: Any) -> Any:
    return _made([[_root(j * k, n, inverse) for k in range(n)] for j in range(n)], element)


def _turns(n: int, rows: int, columns: int, inverse: bool, element: Any) -> Any:
    """What the places of a row are turned by between the two transforms."""
    if n <= _KEPT:
        return _kept_turns(n, rows, columns, inverse, element)
    return _turned(t.arange(rows)[:, None] * t.arange(columns), n, inverse, element)


@lru_cache(maxsize=64)
def _kept_turns(n: int, rows: int, columns: int, inverse: bool, element: Any) -> Any:
    table = [[_root(j * k, n, inverse) for k in range(columns)] for j in range(rows)]
    return _made(table, element)


def _turned(numerators: Any, n: int, inverse: bool, element: Any) -> Any:
    """exp(-2 pi i numerator / n), computed where it is used: too much to keep."""
    angle = t.remainder(numerators, n).to(dtypes.float64) * (2 * math.pi / n)
    sine = t.sin(angle)
    return t.complex(t.cos(angle), sine if inverse else -sine).to(element)


def _chirp(n: int, inverse: bool, element: Any) -> Any:
    """exp(-i pi k^2 / n)."""
    if n <= _KEPT:
        return _kept_chirp(n, inverse, element)
    places = t.arange(n)
    return _turned(places * places, 2 * n, inverse, element)


@lru_cache(maxsize=32)
def _kept_chirp(n: int, inverse: bool, element: Any) -> Any:
    return _made([_root(k * k, 2 * n, inverse) for k in range(n)], element)


def _chirp_spectrum(n: int, size: int, inverse: bool, element: Any) -> Any:
    """The transform of the chirp's conjugate, around 0, in a ring of `size` places."""
    if n <= _KEPT:
        return _kept_spectrum(n, size, inverse, element)
    chirp = _chirp(n, not inverse, dtypes.complex128)
    gap = t.zeros(size - 2 * n + 1, dtype=dtypes.complex128)
    ring = t.cat([chirp, gap, t.flip(chirp[1:], (0,))])
    return transformed(ring, False).to(element)


@lru_cache(maxsize=32)
def _kept_spectrum(n: int, size: int, inverse: bool, element: Any) -> Any:
    chirp = [_root(k * k, 2 * n, not inverse) for k in range(n)]
    padded = chirp + [0j] * (size - 2 * n + 1) + chirp[:0:-1]
    with no_grad():
        return transformed(_made(padded, dtypes.complex128), False).to(element)


def _convolved(input: Any, n: int, inverse: bool) -> Any:
    """j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with a chirp."""
    size = 1 << (2 * n - 2).bit_length()
    chirp = _chirp(n, inverse, input.dtype)
    padded = resized(input * chirp, -1, size)
    product = transformed(padded, False) * _chirp_spectrum(n, size, inverse, input.dtype)
    found = transformed(product, True)
    return t.narrow(found, -1, 0, n) * chirp * (1.0 / size)


def resized(input: Any, dim: int, size: int) -> Any:
    """A dim cut off, or filled up with zeros."""
    own = input.shape[dim]
    if own >= size:
        return t.narrow(input, dim, 0, size) if own > size else input
    shape = list(input.shape)
    shape[dim] = size - own
    return t.cat([input, t.zeros(tuple(shape), dtype=input.dtype)], dim)
