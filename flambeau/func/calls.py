"""functional_call and functionalize: functions that are pure from outside.

Keeps     the module is as it was before when the call ends.
Touches   nn.utils.stateless.
Not here  derivatives (derivatives.py)."""

from __future__ import annotations

from typing import Any

from flambeau.nn.utils import stateless


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """module(*args, **kwargs) with other parameters and buffers, by dotted name: a dict, or a
    tuple of dicts without names in common."""
    given = parameter_and_buffer_dicts
    if isinstance(given, (tuple, list)):
        merged: dict[str, Any] = {}
        for each in given:
            repeated = sorted(merged.keys() & each.keys())
            if repeated:
                raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of "
                                 "functional call is ambiguous")  # fmt: skip
            merged.update(each)
        given = merged
    elif not isinstance(given, dict):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    return stateless.functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def functionalize(func: Any, *, remove: str = "mutations") -> Any:
    """The function itself: writes are ordered with everything else as they are recorded."""
    return func
