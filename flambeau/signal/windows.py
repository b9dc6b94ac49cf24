"""torch.signal.windows: windows by their length M, symmetric unless sym is False.

Keeps     torch's places in the window's dtype, evenly spaced from a first to a last; a periodic
          window is a symmetric one of M + 1 places, its last left out.
Touches   tensor (functions, fills, ranges).
Not here  torch.hann_window and the like, which are periodic (tensor/public/statistics)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from flambeau.base import dtypes
from flambeau.base.missing import module_getattr
from flambeau.tensor import functions as t
from flambeau.tensor.public import fills, ranges
from flambeau.tensor.public.formats import strided
from flambeau.tensor.public.queries import get_default_dtype

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


class _Asked(NamedTuple):
    """How the window is to be made."""

    dtype: Any
    device: Any
    requires_grad: bool

    def places(self, first: float, step: float, count: int) -> Any:
        """`count` numbers from `first`, `step` apart."""
        last = first + (count - 1) * step
        return ranges.linspace(first, last, count, dtype=self.dtype, device=self.device)

    def finished(self, made: Any) -> Any:
        """The window, as a leaf where gradients are wanted."""
        return made.requires_grad_() if self.requires_grad else made

    def trivial(self, count: int) -> Any:
        """A window of no place or one."""
        return self.finished(fills.ones(count, dtype=self.dtype, device=self.device))


def _asked(
    name: str, count: int, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> _Asked:  # fmt: skip
    element = get_default_dtype() if dtype is None else dtype
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if element not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {element}")
    return _Asked(element, device, requires_grad)


def _centre(count: int, sym: bool) -> float:
    return (count - 1 if sym or count < 2 else count) / 2


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **settings: Any
) -> Any:
    """exp(-|n - center| / tau)."""
    asked = _asked("exponential", M, **settings)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return asked.trivial(0)
    middle = _centre(M, sym) if center is None else center
    return asked.finished(t.exp(-t.abs(asked.places(-middle / tau, 1 / tau, M))))


def cosine(M: int, *, sym: bool = True, **settings: Any) -> Any:
    """sin(pi (n + 1/2) / M)."""
    asked = _asked("cosine", M, **settings)
    if M == 0:
        return asked.trivial(0)
    step = math.pi / (M if sym or M < 2 else M + 1)
    return asked.finished(t.sin(asked.places(step / 2, step, M)))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **settings: Any) -> Any:
    """exp(-(n - center)^2 / (2 std^2)).

    >>> gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    asked = _asked("gaussian", M, **settings)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return asked.trivial(0)
    step = 1 / (std * math.sqrt(2))
    return asked.finished(t.exp(-(asked.places(-_centre(M, sym) * step, step, M) ** 2)))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **settings: Any) -> Any:
    """I0(beta sqrt(1 - ((n - center) / center)^2)) / I0(beta)."""
    asked = _asked("kaiser", M, **settings)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return asked.trivial(M)
    places = asked.places(-beta, beta / _centre(M, sym), M)
    scale = fills.full((), beta, dtype=asked.dtype, device=asked.device)
    inside = t.clamp(scale * scale - places * places, min=0)
    return asked.finished(t.i0(t.sqrt(inside)) / t.i0(scale))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **settings: Any) -> Any:
    """a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., x from 0 to 2 pi."""
    return _cosines("general_cosine", M, a, sym, settings)


def _cosines(name: str, count: int, weights: Any, sym: bool, settings: dict[str, Any]) -> Any:
    asked = _asked(name, count, **settings)
    if count < 2:
        return asked.trivial(count)
    if not isinstance(weights, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(weights)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    angle = asked.places(0, math.pi / _centre(count, sym), count)
    total = fills.full((count,), weights[0], dtype=asked.dtype, device=asked.device)
    for number, weight in enumerate(weights[1:], 1):
        total = total + (-1) ** number * weight * t.cos(angle * number)
    return asked.finished(total)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **settings: Any) -> Any:
    """alpha - (1 - alpha) cos(x), x from 0 to 2 pi."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **settings)


def hamming(M: int, *, sym: bool = True, **settings: Any) -> Any:
    """0.54 - 0.46 cos(x), x from 0 to 2 pi."""
    return general_hamming(M, sym=sym, **settings)


def hann(M: int, *, sym: bool = True, **settings: Any) -> Any:
    """(1 - cos(x)) / 2, x from 0 to 2 pi.

    >>> hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **settings)


def blackman(M: int, *, sym: bool = True, **settings: Any) -> Any:
    """0.42 - 0.5 cos(x) + 0.08 cos(2 x), x from 0 to 2 pi."""
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, settings)


def bartlett(M: int, *, sym: bool = True, **settings: Any) -> Any:
    """1 - |n - center| / center: a triangle."""
    asked = _asked("bartlett", M, **settings)
    if M < 2:
        return asked.trivial(M)
    return asked.finished(1 - t.abs(asked.places(-1, 1 / _centre(M, sym), M)))


def nuttall(M: int, *, sym: bool = True, **settings: Any) -> Any:
    """Four cosines, weights by Heinzel et al. (2002)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **settings)


__getattr__ = module_getattr(__name__)
