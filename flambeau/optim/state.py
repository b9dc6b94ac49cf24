"""What an optimizer knows of one parameter.

Keeps     the number of steps, and other single numbers, are Python numbers inside and tensors to
          whoever looks, as in torch: counting costs no record.
Touches   tensor.creation.
Not here  the optimizers."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

from flambeau.base import dtypes, promotion
from flambeau.tensor import Tensor, creation

STEP: Final = "step"
NUMBERS: Final = frozenset((STEP, "eta", "mu", "mu_product"))
# References to a tensor that only the dict and the look at it hold.
_UNSEEN: Final = 3


def _number_dtype() -> Any:
    """torch keeps such numbers in float32, or in float64 where that is the default."""
    default = promotion.default_dtype()
    return default if default is dtypes.float64 else dtypes.float32


def _as_tensor(value: float) -> Tensor:
    return creation.tensor(float(value), dtype=_number_dtype())


def rounded(value: float) -> float:
    """A number as torch's tensors of single numbers keep it."""
    return ctypes.c_float(value).value if _number_dtype() is dtypes.float32 else value


class ParameterState(dict[str, Any]):
    """A dict whose single numbers are tensors when they are looked at. Once one was, the tensor
    counts, until nobody holds it any more."""

    __slots__ = ()

    def number(self, key: str) -> float:
        """The value of a number."""
        held = dict.__getitem__(self, key)
        return held.item() if isinstance(held, Tensor) else held

    def hold(self, key: str, value: float) -> float:
        """Change a number; returns it as it is kept, rounded."""
        held = dict.get(self, key)
        if isinstance(held, Tensor):
            held.fill_(value)
            return held.item()
        value = rounded(value)
        dict.__setitem__(self, key, value)
        return value

    def advance(self) -> float:
        """One step more; returns the number."""
        held = dict.get(self, STEP, 0)
        if not isinstance(held, Tensor):
            dict.__setitem__(self, STEP, held + 1)
            return held + 1
        count = int(held.item()) + 1
        if sys.getrefcount(held) <= _UNSEEN:
            dict.__setitem__(self, STEP, count)
        else:
            held.fill_(count)
        return count

    def __getitem__(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        if key in NUMBERS and not isinstance(value, Tensor):
            value = _as_tensor(value)
            dict.__setitem__(self, key, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        has = key in self
        return self[key] if has else default

    def _shown(self) -> None:
        for key in NUMBERS & self.keys():
            self[key]

    def items(self) -> Any:
        """(key, value) pairs."""
        self._shown()
        return dict.items(self)

    def values(self) -> Any:
        """The values."""
        self._shown()
        return dict.values(self)

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __reduce__(self) -> Any:
        return (_rebuilt, (plain(self),))

    def copy(self) -> Any:
        """A copy."""
        return _rebuilt(dict(dict.items(self)))


def _rebuilt(values: dict[str, Any]) -> ParameterState:
    made = ParameterState()
    made.update(values)
    return made


def plain(value: Any) -> Any:
    """The state as a dict of torch's kind, for state_dict()."""
    if not isinstance(value, ParameterState):
        return value
    return {
        key: each if key not in NUMBERS or isinstance(each, Tensor) else _as_tensor(each)
        for key, each in dict.items(value)
    }
