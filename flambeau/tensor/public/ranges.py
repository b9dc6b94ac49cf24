"""Numbers in steps: arange, range, linspace, logspace.

Keeps     how many there are is worked out before anything is recorded; torch's errors.
Touches   fills, number_rules.
Not here  constants (fills.py)."""

from __future__ import annotations

import math
import warnings
from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.dtypes import asked_for, dtype
from flambeau.base.promotion import C_TYPE_NAMES, SCALAR_TYPE_NAMES
from flambeau.ops.define import not_implemented
from flambeau.tensor import number_rules
from flambeau.tensor.arguments import refuses
from flambeau.tensor.public import fills
from flambeau.tensor.tensor import Tensor


def _bounds(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    """start, end and step of arange, however they were given."""
    names = ("end",) if len(arguments) == 1 and "end" not in named else ("start", "end", "step")
    given = dict(zip(names, arguments, strict=False))
    for name in ("start", "end", "step"):
        if name in named:
            given[name] = named.pop(name)
    if named:
        raise TypeError(f"arange() got an unexpected keyword argument '{next(iter(named))}'")
    if "end" not in given or len(arguments) > 3:
        kinds = ", ".join(type(each).__name__ for each in arguments)
        raise TypeError(
            f"arange() received an invalid combination of arguments - got ({kinds}), but expected "
            "one of:\n * (Number end)\n * (Number start, Number end)\n"
            " * (Number start, Number end, Number step)"
        )
    position = {name: number for number, name in enumerate(names, 1)}
    values = [
        number_rules.number(given.get(name, default), "arange", name, position.get(name, 0))
        for name, default in (("start", 0), ("end", None), ("step", 1))
    ]
    return values[0], values[1], values[2]


def count_of(start: Any, end: Any, step: Any, element: dtype) -> int:
    """How many numbers arange has; torch's errors."""
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if element is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise ValueError("step must be nonzero")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def arange(
    *arguments: Any, out: Any = None, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **named: Any,
) -> Tensor:  # fmt: skip
    """start, start + step, ... before end; int64 if all are ints, else the default dtype.

    >>> arange(3).tolist(), arange(1, 2, 0.5).tolist()
    ([0, 1, 2], [1.0, 1.5])
    """
    if len(arguments) == 1 and arguments[0].__class__ is int and not named:
        start, end, step = 0, arguments[0], 1
    else:
        start, end, step = _bounds(arguments, named)
    if out is not None:
        dtype = out._layout.dtype
    elif dtype is None:
        whole = start.__class__ is not float and end.__class__ is not float
        whole = whole and step.__class__ is not float
        dtype = dtypes.int64 if whole else promotion.default_dtype()
    dtype = dtypes.asked_for(dtype, "arange")
    if dtype.category in (0, 3) or dtype in dtypes.EIGHT_BITS:
        name = promotion.SCALAR_TYPE_NAMES[dtype.name]
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{name}'")
    count = count_of(start, end, step, dtype)
    values = (start, step) if dtype.is_floating_point else (int(start), int(step))
    if out is not None:
        return fills.into(out, "arange", (count,), values)
    result = fills.fresh((count,), "arange", dtype, device)
    return fills.recorded("arange", result, values, requires_grad)


def range_closed(start: Any = 0, end: Any = None, step: Any = 1, **named: Any) -> Tensor:
    """torch.range: like arange, the end included; deprecated there."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    count_of(start, end, step, dtypes.float64)
    count = math.floor((end - start) / step) + 1
    dtype = named.pop("dtype", None) or promotion.default_dtype()
    result = fills.fresh((count,), "range", dtype, named.get("device"))
    return fills.recorded("arange", result, (start, step), named.get("requires_grad", False))


def _steps(start: Any, end: Any, steps: Any, name: str) -> tuple[Any, Any, int]:
    ndims = [each.ndim if isinstance(each, Tensor) else 0 for each in (start, end)]
    if any(ndims):
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with "
            f"{ndims[0]} dimension(s) and end with {ndims[1]} dimension(s)."
        )
    start = number_rules.number(start, name, "start", 1)
    end = number_rules.number(end, name, "end", 2)
    if steps is None or isinstance(steps, (bool, float)) or not hasattr(steps, "__index__"):
        kinds = [type(each).__name__ for each in (start, end)]
        kinds += [] if steps is None else [type(steps).__name__]
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({', '.join(kinds)}), "
            "but expected one of:\n * (Number start, Number end, int steps)"
        )
    count = steps.__index__()
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    return start, end, count


@refuses("linspace")
def linspace(
    start: Any, end: Any, steps: Any = None, *, out: Any = None, dtype: dtype | None = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from start to end, both included.

    >>> linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    start, end, count = _steps(start, end, steps, "linspace")
    dtype = dtype and asked_for(dtype, "linspace")
    chosen = out.dtype if out is not None else dtype
    if complex in (start.__class__, end.__class__):
        made = promotion.default_dtype().to_complex()
        if dtype is not None and not dtype.is_complex:
            raise RuntimeError(
                f"torch.linspace(): inferred dtype {C_TYPE_NAMES[made.name]} can't be safely cast "
                f"to passed dtype {SCALAR_TYPE_NAMES[dtype.name]}"
            )
        dtype = dtype or made
    elif chosen is not None and chosen.category < 2:  # bounds are cut before the steps are made
        if chosen is dtypes.bool_:
            raise not_implemented("linspace_cpu", chosen)
        start, end = (number_rules.held_number(each, chosen) for each in (start, end))
    # One number alone is the start, whatever the gap.
    values = (start, end, max(count - 1, 1))
    if out is not None:
        return fills.into(out, "linspace", (count,), values, dtype)
    result = fills.fresh((count,), "linspace", dtype, device)
    return fills.recorded("linspace", result, values, requires_grad)


def logspace(
    start: Any, end: Any, steps: Any = None, base: Any = 10.0, *, out: Any = None,
    dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`base` to the power of `steps` evenly spaced numbers from start to end."""
    start, end, count = _steps(start, end, steps, "logspace")
    dtype = dtype and asked_for(dtype, "logspace")
    if dtype is None and complex in (start.__class__, end.__class__, base.__class__):
        dtype = promotion.default_dtype().to_complex()
    chosen = out.dtype if out is not None else dtype
    if chosen is not None and chosen.category == 1:  # bounds are cut before the steps are made
        start, end = (number_rules.held_number(each, chosen) for each in (start, end))
    values = (start, end, max(count - 1, 1), number_rules.number(base, "logspace", "base", 4))
    if out is not None:
        return fills.into(out, "logspace", (count,), values)
    result = fills.fresh((count,), "logspace", dtype, device)
    return fills.recorded("logspace", result, values, requires_grad)


def __getattr__(name: str) -> Any:
    if name == "range":  # under its own name it would hide Python's in this file
        return range_closed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
