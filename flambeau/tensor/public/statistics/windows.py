"""Windows for signals: Hann, Hamming, Blackman, Bartlett, Kaiser.

Keeps     a periodic window is a symmetric one of one place more, its last place left out.
Touches   functions, fills.
Not here  Fourier transforms (fft)."""

from __future__ import annotations

from typing import Any

from flambeau.base.dtypes import PI
from flambeau.tensor import functions as t
from flambeau.tensor.public.fills import ones
from flambeau.tensor.public.queries import get_default_dtype


def _places(name: str, length: int, periodic: bool, settings: dict[str, Any]) -> tuple[Any, int]:
    """(0, 1, 2 ... as floats, the number of the last place)."""
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    element = settings.get("dtype") or get_default_dtype()
    if not element.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {element}")
    return t.arange(length, dtype=element), length if periodic else length - 1


def _finished(made: Any, settings: dict[str, Any]) -> Any:
    return made.requires_grad_() if settings.get("requires_grad") else made


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
    **settings: Any,
) -> Any:  # fmt: skip
    """alpha - beta cos(2 pi n / N)."""
    places, last = _places("hamming_window", window_length, periodic, settings)
    if window_length <= 1:
        return _finished(ones(window_length, dtype=places.dtype), settings)
    return _finished(alpha - beta * t.cos(places * (2 * PI / last)), settings)


def hann_window(window_length: int, periodic: bool = True, **settings: Any) -> Any:
    """(1 - cos(2 pi n / N)) / 2.

    >>> hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return hamming_window(window_length, periodic, 0.5, 0.5, **settings)


def blackman_window(window_length: int, periodic: bool = True, **settings: Any) -> Any:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    places, last = _places("blackman_window", window_length, periodic, settings)
    if window_length <= 1:
        return _finished(ones(window_length, dtype=places.dtype), settings)
    angle = places * (2 * PI / last)
    made = 0.42 - 0.5 * t.cos(angle) + 0.08 * t.cos(angle * 2)
    return _finished(made, settings)


def bartlett_window(window_length: int, periodic: bool = True, **settings: Any) -> Any:
    """A triangle."""
    places, last = _places("bartlett_window", window_length, periodic, settings)
    if window_length <= 1:
        return _finished(ones(window_length, dtype=places.dtype), settings)
    rising = places * (2.0 / last)
    return _finished(t.where(places <= last / 2, rising, 2.0 - rising), settings)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **settings: Any
) -> Any:
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta)."""
    places, last = _places("kaiser_window", window_length, periodic, settings)
    if window_length <= 1:
        return _finished(ones(window_length, dtype=places.dtype), settings)
    centred = places * (2.0 / last) - 1
    inside = t.sqrt(t.clamp(1 - centred * centred, min=0)) * beta
    scale = t.i0(t.full_like(places[:1], beta))
    return _finished(t.i0(inside) / scale, settings)
