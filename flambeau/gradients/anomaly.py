"""Anomaly detection: remembers where operators were called and finds the first NaN gradient.

Keeps     nothing is paid while it is off.
Touches   saved.SPECIAL, runtime.
Not here  the backward pass that asks (backward.py)."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from flambeau.gradients.runtime import RUNTIME
from flambeau.gradients.saved import SPECIAL

__all__ = ["check", "detect_anomaly", "is_check_nan_enabled", "is_enabled", "set_detect_anomaly"]


class _State:
    enabled = False
    check_nan = True


def is_enabled() -> bool:
    """Whether anomaly detection is on, for the whole process."""
    return _State.enabled


def is_check_nan_enabled() -> bool:
    """Whether NaN gradients are looked for."""
    return _State.check_nan


def switch(enabled: bool, check_nan: bool) -> None:
    """Set both flags; while on, recording takes the path that notes tracebacks."""
    if enabled and not _State.enabled:
        SPECIAL.append(_State)
    elif not enabled and _State.enabled:
        SPECIAL.remove(_State)
    _State.enabled = enabled
    _State.check_nan = check_nan


class detect_anomaly:  # noqa: N801 - torch's name
    """Inside, a NaN in a gradient raises and shows the forward call that it belongs to."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.before = (_State.enabled, _State.check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (_State.enabled, _State.check_nan)
        switch(True, self.check_nan)

    def __exit__(self, *_: object) -> None:
        switch(*self.before)


class set_detect_anomaly:  # noqa: N801 - torch's name
    """Set anomaly detection at once, or until the end of a block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (_State.enabled, _State.check_nan)
        switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        switch(*self.before)


def forward_trace() -> str:
    """The caller's stack, flambeau's own frames left out."""
    import traceback

    root = __name__.partition(".")[0] + "."
    frames = []
    for frame, line in traceback.walk_stack(sys._getframe(1)):
        if getattr(frame.f_globals.get("__spec__"), "name", None) == f"{root}__main__":
            break  # `python -m flambeau run SCRIPT`: what is outside the script is not the user's
        if not frame.f_globals.get("__name__", "").startswith(root):
            frames.append((frame, line))
    return "".join(traceback.StackSummary.extract(reversed(frames)).format())


def explain(node: Any) -> None:
    """Warn with the forward call of a node that failed."""
    trace = node.extras.trace if node.extras is not None else None
    if trace is None:
        where = RUNTIME.describe(node.site)
        known = f" It was recorded at {where}." if where else ""
        text = (
            f"Error detected in {node.node_name()}. No forward pass information available. Enable "
            f"detect anomaly during forward pass for more information.{known}"
        )
    else:
        text = (
            f"Error detected in {node.node_name()}. Traceback of forward call that caused the "
            f"error:\n{trace}"
        )
    warnings.warn(text, stacklevel=2)


def check(node: Any, cotangents: Any) -> None:
    """Raise for the first cotangent that holds a NaN."""
    for index, cotangent in enumerate(cotangents):
        if cotangent is None or cotangent._layout.dtype.category < 2:
            continue
        if bool((cotangent != cotangent).any()):
            raise RuntimeError(
                f"Function '{node.node_name()}' returned nan values in its {index}th output."
            )
