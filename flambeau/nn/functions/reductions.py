"""The old way to say how a loss is reduced: size_average and reduce.

Keeps     torch's warning and its table.
Touches   nothing.
Not here  the reductions (ops.rows.losses)."""

from __future__ import annotations

import warnings
from typing import Any


def legacy(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """'mean', 'sum' or 'none' for the old flags."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    chosen = "mean" if size_average and reduce else "sum" if reduce else "none"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{chosen}' instead.",
            stacklevel=4,
        )
    return chosen


def chosen(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction, the old flags first."""
    if size_average is not None or reduce is not None:
        return legacy(size_average, reduce)
    return reduction


def apply(losses: Any, reduction: str) -> Any:
    """Losses reduced."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return losses
