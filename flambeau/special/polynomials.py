"""torch.special's orthogonal polynomials: Chebyshev's, Hermite's, Laguerre's, Legendre's.

Keeps     degrees are read when the call is made: the recurrence runs up to the largest one that has
          no closed form. Nothing is differentiated, as in torch.
Touches   tensor.functions.
Not here  other special functions (ops.special).
Source    Abramowitz and Stegun, 22.7 (recurrences) and 22.3.15 (Chebyshev's closed forms)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from flambeau.autograd.grad_mode import no_grad
from flambeau.base import dtypes, promotion
from flambeau.base.errors import helped
from flambeau.base.shapes import broadcast_shapes
from flambeau.ops.define import not_implemented
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.inplace import takes_out
from flambeau.tensor.public import queries


class _Family(NamedTuple):
    """How a family's members follow from one another; the first is 1."""

    second: Callable[[Any], Any]
    following: Callable[[Any, int, Any, Any], Any]  # of (x, k, member k, member k - 1)
    # What is exact at 1 and -1, and from `closed_from` on between them: of (x, angle, n).
    closed: Callable[[Any, Any, Any], Any] | None = None
    closed_from: int = 0


def _doubled(x: Any, k: int, last: Any, before: Any) -> Any:
    return (x + x) * last - before


def _first_kind(x: Any, angle: Any, n: Any) -> Any:
    return t.where(x == 1, 1, t.where(x == -1, _sign(n), t.cos(n * angle)))


def _second_kind(x: Any, angle: Any, n: Any) -> Any:
    inside = t.sin((n + 1) * angle) / t.sin(angle)
    return t.where(x == 1, n + 1, t.where(x == -1, _sign(n) * (n + 1), inside))


def _third_kind(x: Any, angle: Any, n: Any) -> Any:
    inside = t.cos((n + 0.5) * angle) / t.cos(angle * 0.5)
    return t.where(x == 1, 1, t.where(x == -1, _sign(n) * (n + n + 1), inside))


def _fourth_kind(x: Any, angle: Any, n: Any) -> Any:
    inside = t.sin((n + 0.5) * angle) / t.sin(angle * 0.5)
    return t.where(x == 1, n + n + 1, t.where(x == -1, _sign(n), inside))


def _sign(n: Any) -> Any:
    return 1 - 2 * t.remainder(n, 2)


_FAMILIES: Final = {
    "chebyshev_polynomial_t": _Family(lambda x: x, _doubled, _first_kind, 7),
    "chebyshev_polynomial_u": _Family(lambda x: x + x, _doubled, _second_kind, 9),
    "chebyshev_polynomial_v": _Family(lambda x: x + x - 1, _doubled, _third_kind, 9),
    "chebyshev_polynomial_w": _Family(lambda x: x + x + 1, _doubled, _fourth_kind, 9),
    "hermite_polynomial_h": _Family(
        lambda x: x + x, lambda x, k, last, before: (x + x) * last - 2 * k * before
    ),
    "hermite_polynomial_he": _Family(
        lambda x: x, lambda x, k, last, before: x * last - k * before
    ),
    "laguerre_polynomial_l": _Family(
        lambda x: 1 - x,
        lambda x, k, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    ),
    "legendre_polynomial_p": _Family(
        lambda x: x, lambda x, k, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1)
    ),
}  # fmt: skip
# torch gives Hermite's polynomials up to these degrees.
_HERMITE_LARGEST: Final = {dtypes.float32: 128, dtypes.float64: 512}
_SHIFTED: Final = "shifted_"


def _operands(name: str, x: Any, n: Any) -> tuple[Any, Any]:
    """(x, n) as tensors of one floating dtype, n whole."""
    if not isinstance(x, Tensor) and not isinstance(n, Tensor):
        kinds = ", ".join(type(each).__name__ for each in (x, n))
        raise TypeError(
            helped(
                f"special_{name}() received an invalid combination of arguments - got ({kinds}), "
                "but expected one of:",
                expected="(Tensor x, Tensor n), (Number x, Tensor n) or (Tensor x, Number n)",
                fix="torch.tensor(x)",
            )
        )
    element = queries.result_type(x, n)
    if not element.is_floating_point and not element.is_complex:
        element = promotion.default_dtype()
    if element not in _HERMITE_LARGEST:
        raise not_implemented(f"{name}_cpu", element)
    x, n = (creation.as_tensor(each).detach().to(element) for each in (x, n))
    return x, n.trunc()


def _evaluated(name: str, x: Any, n: Any) -> Any:
    x, n = _operands(name, x, n)
    family = _FAMILIES[name.removeprefix(_SHIFTED)]
    if name.startswith(_SHIFTED):
        x = x + x - 1
    shape = broadcast_shapes(tuple(x.shape), tuple(n.shape))
    x, n = t.expand(x, shape), t.expand(n, shape)
    left = n
    if family.closed is not None:
        size = x.abs()
        is_closed = (size == 1) | ((size < 1) & (n >= family.closed_from))
        left = t.where(is_closed, 0, n)
    largest = _HERMITE_LARGEST[x.dtype] if name.startswith("hermite") else None
    found = _by_recurrence(family, x, left, largest)
    if family.closed is not None:
        found = t.where(is_closed, family.closed(x, t.acos(x), n), found)
    return t.where(n < 0, 0.0, found)


def _by_recurrence(family: _Family, x: Any, n: Any, largest: int | None) -> Any:
    """Member n; NaN above `largest`."""
    top = int(n.max()) if n.numel() else 0
    if largest is not None:
        top = min(top, largest)
    before, last = t.ones_like(x), family.second(x)
    found = t.where(n >= 1, last, before)
    for k in range(1, top):
        before, last = last, family.following(x, k, last, before)
        found = t.where(n > k, last, found)
    return found if largest is None else t.where(n > largest, float("nan"), found)


def _function(name: str) -> Callable[..., Any]:
    def polynomial(x: Any, n: Any) -> Any:
        with no_grad():
            return _evaluated(name, x, n)

    words = name.split("_")
    polynomial.__name__ = polynomial.__qualname__ = name
    polynomial.__doc__ = (
        f"{words[-3].capitalize()}'s polynomial {words[-1].capitalize()} of degree n at x"
        f"{', shifted to 0 .. 1' if name.startswith(_SHIFTED) else ''}."
    )
    return takes_out(polynomial)


FUNCTIONS: Final = {
    name: _function(name)
    for family in _FAMILIES
    for name in (family, _SHIFTED + family)
    if not name.startswith(_SHIFTED) or family.startswith("chebyshev")
}
