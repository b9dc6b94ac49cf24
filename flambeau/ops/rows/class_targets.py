"""Targets that are numbers of classes or shares of them: torch's errors where they do not fit.

Keeps     an error says which shapes or dtypes met and what to do to the target.
Touches   ops.define.
Not here  the losses (cross_entropy.py)."""

from __future__ import annotations

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.base.layout import Layout
from flambeau.ops.define import Bound, type_name


def class_dim(ndim: int) -> int:
    """Classes are dim 1, or the only dim."""
    return 1 if ndim > 1 else 0


def check_class_targets(input: Layout, target: Layout, weight: Layout | None) -> tuple[int, ...]:
    """Shape of the losses; raises torch's errors."""
    if input.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    at = class_dim(input.ndim)
    expected = (*input.shape[:at], *input.shape[at + 1 :])
    n_targets = target.shape[0] if target.ndim else 0
    if input.ndim > 1 and input.shape[0] != n_targets:
        raise ValueError(
            helped(
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                f"({n_targets}).",
                given=f"input of shape {input.shape}, target of shape {target.shape}",
                expected=f"target of shape {expected}",
            )
        )
    if target.shape != expected and (input.ndim > 1 or target.shape != (1,)):
        if input.ndim == 1:
            raise ValueError(
                "For 1D input, 1D target must have size 1, but got target size: "
                f"{target.n_elements}"
            )
        if input.ndim == 2:
            raise RuntimeError(
                helped(
                    "0D or 1D target tensor expected, multi-target not supported",
                    given=f"target of shape {target.shape}",
                    expected=f"one class a row, shape {expected}",
                    fix="target.squeeze(1) where it is one column, target.argmax(1) if one-hot",
                )
            )
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(
            helped(
                f"expected target dtype to be Long or Byte, but got {type_name(target)}",
                expected=f"numbers of classes, shape {expected}",
                fix="target.long()",
            )
        )
    n_classes = input.shape[at]
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input)} but found {type_name(weight)}")
    if weight is not None and weight.shape != (n_classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {n_classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )
    return expected


def check_shares(input: Layout, target: Layout, weight: Layout | None, ignore_index: int) -> None:
    """Raise torch's errors for targets that are probabilities."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            helped(
                "Expected floating point type for target with class probabilities, got "
                f"{type_name(target)}",
                given=f"input and target of one shape, {target.shape}, which means probabilities",
                fix=f"target.argmax({class_dim(input.ndim)}) if it is one-hot, or target.float()",
            )
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    n_classes = input.shape[class_dim(input.ndim)] if input.ndim else 1
    if weight is not None and weight.shape != (n_classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {n_classes} classes or "
            f"no classes but got weight tensor of shape: {list(weight.shape)}"
        )


def class_bounds(input: Layout) -> list[Bound]:
    """Targets in [0, classes); the engine is to leave ignored ones out."""
    n_classes = input.shape[class_dim(input.ndim)]

    def out_of_bounds(target: int) -> Exception:
        range_ = f"0 to {n_classes - 1}, as the input has {n_classes} classes"
        return IndexError(helped(f"Target {target} is out of bounds.", expected=range_))

    return [("target", 0, n_classes, out_of_bounds)]
