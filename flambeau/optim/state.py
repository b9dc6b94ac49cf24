"""What an optimizer knows of one parameter.

Keeps     the number of steps is a Python number inside and a float32 tensor to whoever looks, as
          in torch: counting costs no record.
Touches   tensor.creation.
Not here  the optimizers."""

from __future__ import annotations

import sys
from typing import Any

from flambeau.tensor import Tensor, creation

STEP = "step"
# References to a tensor that only the dict and the look at it hold.
_UNSEEN = 3


def _as_tensor(count: float) -> Tensor:
    return creation.tensor(float(count))


class ParameterState(dict[str, Any]):
    """A dict whose "step" is a tensor when it is looked at. Once it was, the tensor counts, until
    nobody holds it any more."""

    __slots__ = ()

    def advance(self) -> float:
        """One step more; returns the number."""
        held = dict.get(self, STEP, 0)
        if isinstance(held, Tensor):
            count = held.item() + 1
            if sys.getrefcount(held) <= _UNSEEN:
                dict.__setitem__(self, STEP, count)
            else:
                held.fill_(count)
            return float(count)
        dict.__setitem__(self, STEP, held + 1)
        return held + 1  # type: ignore[no-any-return]

    def __getitem__(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        if key == STEP and not isinstance(value, Tensor):
            value = _as_tensor(value)
            dict.__setitem__(self, STEP, value)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`."""
        return self[key] if key in self else default

    def items(self) -> Any:
        """(key, value) pairs."""
        if STEP in self:
            self[STEP]
        return dict.items(self)

    def values(self) -> Any:
        """The values."""
        if STEP in self:
            self[STEP]
        return dict.values(self)

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __reduce__(self) -> Any:
        return (_rebuilt, (plain(self),))

    def copy(self) -> Any:
        """A copy."""
        made = ParameterState()
        made.update(dict.items(self))
        return made


def _rebuilt(values: dict[str, Any]) -> ParameterState:
    made = ParameterState()
    made.update(values)
    return made


def plain(value: Any) -> Any:
    """The state as a dict of torch's kind, for state_dict()."""
    if not isinstance(value, ParameterState):
        return value
    made = dict(dict.items(value))
    if STEP in made and not isinstance(made[STEP], Tensor):
        made[STEP] = _as_tensor(made[STEP])
    return made
