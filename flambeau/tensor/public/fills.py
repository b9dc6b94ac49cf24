"""Fresh tensors with contents: zeros, ones, full, arange, linspace, logspace, eye and their kin.

Keeps     contents are recorded, not written: what a program overwrites or only reads once never
          takes memory. A shape seen before costs one lookup and one record.
Touches   creation (shapes, devices), binding (operators of ops.creation).
Not here  undefined contents and Python data (creation.py), random contents (random)."""

from __future__ import annotations

import ctypes
import math
import warnings
from typing import Any, Final

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.devices import META
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.engine import callsite, run, stream
from flambeau.engine.signature import Signature
from flambeau.engine.storage import Storage, new_storage
from flambeau.gradients import members
from flambeau.tensor import creation
from flambeau.tensor import tensor as tensors
from flambeau.tensor.binding import Binding, binding
from flambeau.tensor.public import number_rules
from flambeau.tensor.tensor import Size, Tensor

MAX_LAYOUTS: Final = 4096
_LAYOUTS: Final[dict[tuple[Any, ...], Layout]] = {}
_SIGNATURES: Final[dict[tuple[Any, ...], Signature]] = {}
make_layout: Final = creation.make_layout


def recorded(
    name: str, result: Layout, values: tuple[Any, ...] = (), requires_grad: bool = False
) -> Tensor:
    """Record operator `name` of ops.creation for a result layout and run-time numbers."""
    if result.dtype.category == 3 and name in _CONSTANTS:
        return _complex_filled(result, complex(*values or _CONSTANTS[name]), requires_grad)
    key = (name, result, *[each.__class__ for each in values]) if values else (name, result)
    signature = _SIGNATURES.get(key)
    if signature is None:
        signature = _signature(binding(name), result, values)
        if len(_SIGNATURES) >= MAX_LAYOUTS:
            _SIGNATURES.clear()
        _SIGNATURES[key] = signature
    local = stream.LOCAL.stream
    if result.device is META:
        made = tensors.new_tensor(new_storage(result), result)
    else:
        segment = local.segment
        records = segment.records
        is_heavy = signature.out_bytes > stream.HEAVY_BYTES
        if signature is segment.armed or is_heavy or len(records) >= segment.limit:
            segment = local.cut(signature)
            records = segment.records
        fresh = segment.fresh
        storage = Storage()
        storage.layout = result
        storage.version = 0
        storage.segment = segment
        storage.slot = slot = len(fresh)
        fresh.append(storage)
        made = tensors.new_tensor(storage, result)
        records.append(((signature, slot), values, local.site or callsite.site()))
        if segment.closed:
            run.flush(segment, "recorded while another thread flushed")
    if result.dtype.category == 1:
        _know_bounds(made, name, values)
    if local.inference:
        binding(name).mark_inference(made)
    if requires_grad:
        members.set_requires_grad(made, True)
    return made


_EXACT: Final = 2**53


def _know_bounds(made: Tensor, name: str, values: tuple[Any, ...]) -> None:
    """Note the range of integers that are about to index something, perhaps."""
    if name == "arange":
        start, step = values
        end = start + step * (made._layout.n_elements - 1)
        made._storage.bounds = (0, start, end) if step > 0 else (0, end, start)
    elif name in _CONSTANTS:
        (value,) = values or _CONSTANTS[name]
        if -_EXACT < value < _EXACT:
            made._storage.bounds = (0, int(value), int(value))


def _signature(bound: Binding, result: Layout, values: tuple[Any, ...]) -> Signature:
    return bound.signature(bound.taken_apart([result, *values]))


def into(out: Any, name: str, shape: tuple[int, ...], values: tuple[Any, ...] = ()) -> Tensor:
    """Write what `recorded` would make into an out= tensor."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out._layout.shape != shape:
        from flambeau.tensor import inplace

        inplace.resize_for_out(out, shape)
    made = recorded(name, contiguous(shape, out._layout.dtype, out._layout.device), values)
    return out.copy_(made)


def fresh(size: tuple[Any, ...], name: str, element: dtype | None, where: Any) -> Layout:
    """Row-major layout for a size given as ints or one sequence, remembered."""
    if len(size) == 1 and size[0].__class__ in (tuple, list, Size):
        size = tuple(size[0])
    if element is None:
        element = promotion.default_dtype()
    if where is None:
        try:
            found = _LAYOUTS.get((size, element))
        except TypeError:  # something unhashable: an error below
            found = None
        # True and 2.0 equal ints, as keys too, but are no sizes.
        if found is not None and all([each.__class__ is int for each in size]):  # noqa: C419
            return found
    shape = creation.sizes_of(size, name)
    made = contiguous(shape, checked_dtype(element, name), creation.chosen_device(where))
    if where is None:
        if len(_LAYOUTS) >= MAX_LAYOUTS:
            _LAYOUTS.clear()
        _LAYOUTS[shape, element] = made
    return made


def checked_dtype(element: Any, name: str) -> dtype:
    """The dtype, or torch's TypeError."""
    if not isinstance(element, dtype):
        raise TypeError(
            f"{name}(): argument 'dtype' must be torch.dtype, not {type(element).__name__}"
        )
    return element


def _needs_size(size: tuple[Any, ...], named: dict[str, Any], name: str) -> tuple[Any, ...]:
    """The size, which may be called by name too; torch's errors for other names."""
    if "size" in named:
        size = (tuple(named.pop("size")),)
    if named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return size


def zeros(
    *size: Any, out: Any = None, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, **named: Any,
) -> Tensor:  # fmt: skip
    """Tensor of zeros.

    >>> zeros(2, 3).shape
    torch.Size([2, 3])
    """
    if named or not size:
        size = _needs_size(size, named, "zeros")
    if out is not None:
        return into(out, "zeros", creation.sizes_of(size, "zeros"))
    return recorded("zeros", fresh(size, "zeros", dtype, device), (), requires_grad)


def ones(
    *size: Any, out: Any = None, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, **named: Any,
) -> Tensor:  # fmt: skip
    """Tensor of ones."""
    if named or not size:
        size = _needs_size(size, named, "ones")
    if out is not None:
        return into(out, "ones", creation.sizes_of(size, "ones"))
    return recorded("ones", fresh(size, "ones", dtype, device), (), requires_grad)


def full(
    size: Any, fill_value: Any, *, out: Any = None, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Tensor of one number everywhere; its dtype follows from the number unless given.

    >>> full((2,), 3).dtype, full((2,), True).dtype
    (torch.int64, torch.bool)
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    value = number_rules.number(fill_value, "full", "fill_value", 2)
    if out is not None:
        shape = creation.sizes_of((tuple(size),), "full")
        return into(out, "full", shape, (number_rules.held_number(value, out._layout.dtype),))
    if dtype is None:
        dtype = promotion.scalar_dtype(type(value))
    result = fresh((tuple(size),), "full", dtype, device)
    return filled(result, value, requires_grad)


def filled(result: Layout, value: Any, requires_grad: bool = False) -> Tensor:
    """Tensor of a layout with one number everywhere."""
    value = number_rules.held_number(value, result.dtype)
    if value.__class__ is complex:
        return _complex_filled(result, value, requires_grad)
    return recorded("full", result, (value,), requires_grad)


_CONSTANTS: Final = {"zeros": (0,), "ones": (1,), "full": ()}


def _complex_filled(result: Layout, value: complex, requires_grad: bool) -> Tensor:
    """Complex numbers are no run-time numbers of a record: the memory is written at once."""
    made = creation.empty_layout(result)
    if result.device is not META and result.n_elements:
        raw = creation.packed([value], result.dtype) * result.span
        ctypes.memmove(made._storage.block.address, raw, len(raw))
    if requires_grad:
        members.set_requires_grad(made, True)
    return made


# Like another tensor -------------------------------------------------------------------


def _like(
    input: Any, name: str, element: dtype | None, where: Any, memory_format: Any = None
) -> Layout:
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    given = input._layout
    device = given.device if where is None else creation.chosen_device(where)
    if element is None:
        element = given.dtype
    if given.is_contiguous and memory_format is None:
        return contiguous(given.shape, element, device)
    text = str(memory_format)
    if "channels_last" in text:
        order = (0, *range(2, given.ndim), 1)
        return make_layout(given.shape, shapes.packed_strides(given.shape, order), element, device)
    if text.endswith("contiguous_format"):
        return contiguous(given.shape, element, device)
    return make_layout(given.shape, shapes.like_strides(given), element, device)


def empty_like(
    input: Tensor, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Tensor of another one's shape and strides with undefined contents."""
    given = _like(input, "empty_like", dtype, device, memory_format)
    return creation.empty_layout(given, requires_grad)


def zeros_like(
    input: Tensor, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Zeros of another tensor's shape, dtype and order of dims."""
    given = _like(input, "zeros_like", dtype, device, memory_format)
    return recorded("zeros", given, (), requires_grad)


def ones_like(
    input: Tensor, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Ones of another tensor's shape, dtype and order of dims."""
    given = _like(input, "ones_like", dtype, device, memory_format)
    return recorded("ones", given, (), requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """One number everywhere, in another tensor's shape, dtype and order of dims."""
    given = _like(input, "full_like", dtype, device, memory_format)
    value = number_rules.number(fill_value, "full_like", "fill_value", 2)
    return filled(given, value, requires_grad)


def new_zeros(
    self: Tensor, *size: Any, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Zeros in this tensor's dtype on its device."""
    given = _new(self, size, "new_zeros", dtype, device)
    return recorded("zeros", given, (), requires_grad)


def new_ones(
    self: Tensor, *size: Any, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Ones in this tensor's dtype on its device."""
    given = _new(self, size, "new_ones", dtype, device)
    return recorded("ones", given, (), requires_grad)


def new_empty(
    self: Tensor, *size: Any, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Undefined contents in this tensor's dtype on its device."""
    return creation.empty_layout(_new(self, size, "new_empty", dtype, device), requires_grad)


def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """One number everywhere in this tensor's dtype on its device."""
    given = _new(self, (tuple(size),), "new_full", dtype, device)
    value = number_rules.number(fill_value, "new_full", "fill_value", 2)
    return filled(given, value, requires_grad)


def _new(self: Tensor, size: Any, name: str, element: dtype | None, where: Any) -> Layout:
    given = self._layout
    if where is None and given.device is META:
        where = META
    return fresh(size, name, element or given.dtype, where)


def new_tensor(
    self: Tensor, data: Any, *, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A copy of data in this tensor's dtype on its device."""
    if isinstance(data, Tensor):
        made = data.detach().clone().to(dtype or data._layout.dtype)
        return made.requires_grad_(True) if requires_grad else made
    return creation.tensor(
        data, dtype=dtype or self._layout.dtype, device=device or self._layout.device,
        requires_grad=requires_grad,
    )  # fmt: skip


def scalar_tensor(
    s: Any, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A number as a tensor without dims, in the default dtype unless told."""
    value = number_rules.number(s, "scalar_tensor", "s", 1)
    return filled(fresh(((),), "scalar_tensor", dtype, device), value, requires_grad)


# Ranges --------------------------------------------------------------------------------


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
    return math.ceil((end - start) / step)  # type: ignore[no-any-return]


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
    if checked_dtype(dtype, "arange").category in (0, 3):
        name = promotion.SCALAR_TYPE_NAMES[dtype.name]
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{name}'")
    count = count_of(start, end, step, dtype)
    values = (start, step) if dtype.is_floating_point else (int(start), int(step))
    if out is not None:
        return into(out, "arange", (count,), values)
    return recorded("arange", fresh((count,), "arange", dtype, device), values, requires_grad)


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
    result = fresh((count,), "range", dtype, named.get("device"))
    return recorded("arange", result, (start, step), named.get("requires_grad", False))


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


def linspace(
    start: Any, end: Any, steps: Any = None, *, out: Any = None, dtype: dtype | None = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from start to end, both included.

    >>> linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    start, end, count = _steps(start, end, steps, "linspace")
    chosen = out.dtype if out is not None else dtype
    if chosen is not None and chosen.category < 2:  # bounds are cut before the steps are made
        start, end = int(start), int(end)
    # One number alone is the start, whatever the gap.
    values = (start, end, max(count - 1, 1))
    if out is not None:
        return into(out, "linspace", (count,), values)
    result = fresh((count,), "linspace", dtype, device)
    return recorded("linspace", result, values, requires_grad)


def logspace(
    start: Any, end: Any, steps: Any = None, base: Any = 10.0, *, out: Any = None,
    dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """`base` to the power of `steps` evenly spaced numbers from start to end."""
    start, end, count = _steps(start, end, steps, "logspace")
    values = (start, end, max(count - 1, 1), number_rules.number(base, "logspace", "base", 4))
    if out is not None:
        return into(out, "logspace", (count,), values)
    result = fresh((count,), "logspace", dtype, device)
    return recorded("logspace", result, values, requires_grad)


def eye(
    n: Any, m: Any = None, *, out: Any = None, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """n rows of m columns (n unless given) with ones on the diagonal."""
    rows = number_rules.integer(n, "eye", "n", 1)
    columns = rows if m is None else number_rules.integer(m, "eye", "m", 2)
    for letter, count in (("n", rows), ("m", columns)):
        if count < 0:
            raise RuntimeError(
                helped(
                    f"{letter} must be greater or equal to 0, got {count}",
                    fix="a size of 0 or more",
                )
            )
    if out is not None:
        return into(out, "eye", (rows, columns))
    return recorded("eye", fresh((rows, columns), "eye", dtype, device), (), requires_grad)


def __getattr__(name: str) -> Any:
    if name == "range":  # under its own name it would hide Python's in this file
        return range_closed
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
