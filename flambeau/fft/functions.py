"""Fourier transforms of one dim or several, of complex, real and Hermitian signals.

Keeps     torch's arguments: sizes cut or filled, norms by direction, results of real inputs halved.
Touches   transform.py.
Not here  the transform itself (transform.py), frequencies (frequencies.py)."""

from __future__ import annotations

import math
from typing import Any, Final

from flambeau.base import dtypes, shapes
from flambeau.base.errors import helped
from flambeau.fft.transform import resized, transformed
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import stored
from flambeau.tensor.public.queries import get_default_dtype

_COMPLEX: Final = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _complex(input: Any) -> Any:
    if input.is_complex():
        return input
    return _real(input, "fft").to(_COMPLEX[_real(input, "fft").dtype])


def _real(input: Any, name: str) -> Any:
    """Real numbers in a dtype that is transformed."""
    if input.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {_kind(input)}")
    if not input.is_floating_point():
        return input.to(get_default_dtype())
    if input.dtype not in _COMPLEX:
        raise RuntimeError(
            helped(f"Unsupported dtype {_kind(input)}", fix="convert with .to(torch.float32)")
        )
    return input


def _kind(input: Any) -> str:
    from flambeau.ops.define import type_name

    return type_name(input._layout)


def _scale(norm: str | None, count: int, inverse: bool) -> float:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1.0 / math.sqrt(count)
    scales = inverse if norm != "forward" else not inverse
    return 1.0 / count if scales else 1.0


def _size(given: int | None, own: int) -> int:
    size = own if given is None else given
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _along(input: Any, dim: int, size: int, inverse: bool) -> Any:
    """The unscaled transform along a dim, cut or filled to a size."""
    cut = resized(input, dim, size)
    return t.movedim(transformed(t.movedim(cut, dim, -1), inverse), -1, dim)


def _one(input: Any, n: Any, dim: int, norm: Any, out: Any, inverse: bool) -> Any:
    signal = _complex(input)
    at = shapes.wrap_dim(dim, signal.dim())
    size = _size(n, signal.shape[at])
    scale = _scale(norm, size, inverse)
    if input.dtype.is_complex:
        found = _scaled(_along(signal, at, size, inverse), scale)
    else:  # a half and its mirror image, zeros' signs included
        found = _whole(_halved(signal, at, size, inverse, scale), at, size)
    return stored(found, out)


def _scaled(found: Any, scale: float) -> Any:
    return found if scale == 1.0 else found * scale


def fft(input: Any, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """sum over j of input[j] exp(-2 pi i j k / n).

    >>> fft(t.ones(4))
    tensor([4.+0.j, 0.+0.j, 0.+0.j, 0.-0.j])
    """
    return _one(input, n, dim, norm, out, inverse=False)


def ifft(input: Any, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse of fft."""
    return _one(input, n, dim, norm, out, inverse=True)


def _halved(input: Any, dim: int, size: int, inverse: bool, scale: float = 1.0) -> Any:
    """The first half of a real signal's transform; of the inverse one, its conjugate."""
    found = t.narrow(_along(_complex(input), dim, size, False), dim, 0, size // 2 + 1)
    found = _scaled(found, scale)
    return t.conj_physical(found) if inverse else found


def _whole(input: Any, dim: int, size: int) -> Any:
    """A Hermitian signal from its first half."""
    half = resized(_complex(input), dim, size // 2 + 1)
    mirrored = t.narrow(half, dim, 1, (size - 1) // 2)
    return t.cat([half, t.flip(mirrored, (dim,)).conj()], dim)


def rfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The first half of a real signal's fft; the rest is its mirror image."""
    signal = _real(input, "rfft")
    at = shapes.wrap_dim(dim, signal.dim())
    size = _size(n, signal.shape[at])
    found = _halved(signal, at, size, inverse=False)
    return stored(_scaled(found, _scale(norm, size, inverse=False)), out)


def ihfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The first half of a real signal's inverse transform."""
    signal = _real(input, "ihfft")
    at = shapes.wrap_dim(dim, signal.dim())
    size = _size(n, signal.shape[at])
    scale = _scale(norm, size, inverse=True)
    return stored(_halved(signal, at, size, inverse=True, scale=scale), out)


def _of_half(input: Any, n: Any, dim: int, norm: Any, out: Any, inverse: bool) -> Any:
    at = shapes.wrap_dim(dim, input.dim())
    size = _size(n, 2 * (input.shape[at] - 1))
    found = _along(_whole(input, at, size), at, size, inverse).real
    return stored(_scaled(found, _scale(norm, size, inverse)), out)


def irfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse of rfft; n says whether the signal had an even or an odd length."""
    return _of_half(input, n, dim, norm, out, inverse=True)


def hfft(input: Any, n: Any = None, dim: int = -1, norm: Any = None, *, out: Any = None) -> Any:
    """The real transform of a Hermitian signal, of which the first half is given."""
    return _of_half(input, n, dim, norm, out, inverse=False)


# Several dims ----------------------------------------------------------------------------


def _dims(input: Any, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """(dims, sizes), -1 for a size being the input's own."""
    ndim = input.dim()
    if dim is None:
        count = ndim if s is None else len(s)
        dims = list(range(ndim - count, ndim))
    else:
        dims = [shapes.wrap_dim(each, ndim) for each in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is None:
        return dims, [input.shape[each] for each in dims]
    given = [s] if isinstance(s, int) else list(s)
    if len(given) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [
        input.shape[each] if size == -1 else size for each, size in zip(dims, given, strict=True)
    ]
    return dims, [_size(size, 0) for size in sizes]


def _many(input: Any, s: Any, dim: Any, norm: Any, out: Any, inverse: bool) -> Any:
    found = _complex(input)
    dims, sizes = _dims(found, s, dim)
    if not dims:
        found = found.clone()
    for each, size in zip(dims, sizes, strict=True):
        found = _along(found, each, size, inverse)
    return stored(_scaled(found, _scale(norm, math.prod(sizes), inverse)), out)


def fftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """fft along several dims."""
    return _many(input, s, dim, norm, out, inverse=False)


def ifftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """ifft along several dims."""
    return _many(input, s, dim, norm, out, inverse=True)


def _many_halved(
    name: str, input: Any, s: Any, dim: Any, norm: Any, out: Any, inverse: bool
) -> Any:
    signal = _real(input, name)
    dims, sizes = _dims(signal, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    found = _halved(signal, dims[-1], sizes[-1], inverse)
    for each, size in zip(dims[:-1], sizes[:-1], strict=True):
        found = _along(found, each, size, inverse)
    return stored(_scaled(found, _scale(norm, math.prod(sizes), inverse)), out)


def _many_of_half(input: Any, s: Any, dim: Any, norm: Any, out: Any, inverse: bool) -> Any:
    found = _complex(input)
    dims, sizes = _dims(found, s, dim)
    if s is None or (not isinstance(s, int) and list(s)[-1] == -1):
        sizes[-1] = _size(None, 2 * (found.shape[dims[-1]] - 1))
    for each, size in zip(dims[:-1], sizes[:-1], strict=True):
        found = _along(found, each, size, inverse)
    found = _along(_whole(found, dims[-1], sizes[-1]), dims[-1], sizes[-1], inverse).real
    return stored(_scaled(found, _scale(norm, math.prod(sizes), inverse)), out)


def rfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """rfft along the last of several dims, fft along the others."""
    return _many_halved("rfftn", input, s, dim, norm, out, inverse=False)


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """ihfft along the last of several dims, ifft along the others."""
    return _many_halved("ihfftn", input, s, dim, norm, out, inverse=True)


def irfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse of rfftn."""
    return _many_of_half(input, s, dim, norm, out, inverse=True)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: Any = None, *, out: Any = None) -> Any:
    """The inverse of ihfftn."""
    return _many_of_half(input, s, dim, norm, out, inverse=False)


def _of_two(function: Any, name: str) -> Any:
    def two(
        input: Any, s: Any = None, dim: Any = (-2, -1), norm: Any = None, *, out: Any = None
    ) -> Any:
        return function(input, s, dim, norm, out=out)

    two.__name__ = two.__qualname__ = name
    two.__doc__ = f"{function.__name__} along the last two dims."
    return two


fft2, ifft2 = _of_two(fftn, "fft2"), _of_two(ifftn, "ifft2")
rfft2, irfft2 = _of_two(rfftn, "rfft2"), _of_two(irfftn, "irfft2")
hfft2, ihfft2 = _of_two(hfftn, "hfft2"), _of_two(ihfftn, "ihfft2")
