"""Fresh tensors with contents: zeros, ones, full, eye and their kin.

Keeps     contents are recorded, not written: what a program overwrites or only reads once never
          takes memory. A shape seen before costs one lookup and one record.
Touches   creation (shapes, devices), binding (operators of ops.creation).
Not here  numbers in steps (ranges.py), undefined contents and Python data (creation.py), random
          contents (random)."""

from __future__ import annotations

import warnings
from typing import Any, Final

from flambeau.base import promotion, shapes
from flambeau.base.devices import CPU, DEFAULT, META
from flambeau.base.dtypes import asked_for, dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.engine import callsite, run, stream
from flambeau.engine.signature import Signature
from flambeau.engine.storage import Storage, new_storage
from flambeau.gradients import members
from flambeau.ops.define import type_name
from flambeau.tensor import creation, number_rules
from flambeau.tensor import tensor as tensors
from flambeau.tensor.arguments import refuses
from flambeau.tensor.binding import Binding, binding
from flambeau.tensor.tensor import Size, Tensor

MAX_LAYOUTS: Final = 4096
_LAYOUTS: Final[dict[tuple[Any, ...], Layout]] = {}
_SIGNATURES: Final[dict[tuple[Any, ...], Signature]] = {}
make_layout: Final = creation.make_layout


def recorded(
    name: str, result: Layout, values: tuple[Any, ...] = (), requires_grad: bool = False
) -> Tensor:
    """Record operator `name` of ops.creation for a result layout and run-time numbers."""
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
        if result.dtype.category == 3:
            values = _as_reals(values)
        records.append(((signature, slot), values, local.site or callsite.site()))
        if segment.closed:
            run.flush(segment, "recorded while another thread flushed")
    if result.dtype.category == 1:
        _know_bounds(made, name, values)
    if local.inference:
        binding(name).mark_inference(made)
    if requires_grad:
        members.set_requires_grad(made, requires_grad, members.OF_NEW_TENSORS)
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


def into(
    out: Any, name: str, shape: tuple[int, ...], values: tuple[Any, ...] = (),
    element: dtype | None = None,
) -> Tensor:  # fmt: skip
    """Write what `recorded` would make into an out= tensor, which has dtype `element` if that is
    asked for."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if element is not None and out._layout.dtype is not element:
        raise RuntimeError(
            f"dtype {type_name(element)} does not match dtype of out parameter "
            f"({type_name(out._layout)})"
        )
    if out._layout.shape != shape:
        if name == "arange" and out._layout.n_elements != shape[0]:
            warnings.warn(
                f"The number of elements in the out tensor of shape {list(out._layout.shape)} is "
                f"{out._layout.n_elements} which does not match the computed number of elements "
                f"{shape[0]}. Note that this may occur as a result of rounding error. The out "
                f"tensor will be resized to a tensor of shape {shape}.",
                stacklevel=3,
            )
        creation.resize(out, contiguous(shape, out._layout.dtype, out._layout.device))
    made = recorded(name, contiguous(shape, out._layout.dtype, out._layout.device), values)
    return out.copy_(made)


def fresh(size: tuple[Any, ...], name: str, element: dtype | None, where: Any) -> Layout:
    """Row-major layout for a size given as ints or one sequence, remembered."""
    if len(size) == 1 and size[0].__class__ in (tuple, list, Size):
        size = tuple(size[0])
    if element is None:
        element = promotion.default_dtype()
    if where is None:
        where = DEFAULT[0]
    if where is CPU:
        try:
            found = _LAYOUTS.get((size, element))
        except TypeError:  # something unhashable: an error below
            found = None
        # True and 2.0 equal ints, as keys too, but are no sizes.
        # A list is quicker than a generator.
        if found is not None and all([each.__class__ is int for each in size]):  # noqa: C419
            return found
    shape = creation.sizes_of(size, name)
    made = contiguous(shape, asked_for(element, name), creation.chosen_device(where))
    if where is CPU:
        if len(_LAYOUTS) >= MAX_LAYOUTS:
            _LAYOUTS.clear()
        _LAYOUTS[shape, element] = made
    return made


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
        return into(out, "zeros", creation.sizes_of(size, "zeros"), (), dtype)
    return recorded("zeros", fresh(size, "zeros", dtype, device), (), requires_grad)


def ones(
    *size: Any, out: Any = None, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, **named: Any,
) -> Tensor:  # fmt: skip
    """Tensor of ones."""
    if named or not size:
        size = _needs_size(size, named, "ones")
    if out is not None:
        return into(out, "ones", creation.sizes_of(size, "ones"), (), dtype)
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
        held = number_rules.held_number(value, out._layout.dtype)
        return into(out, "full", shape, (held,), dtype)
    if dtype is None:
        dtype = promotion.scalar_dtype(type(value))
    result = fresh((tuple(size),), "full", dtype, device)
    return filled(result, value, requires_grad)


def filled(result: Layout, value: Any, requires_grad: bool = False) -> Tensor:
    """Tensor of a layout with one number everywhere."""
    value = number_rules.held_number(value, result.dtype)
    return recorded("full", result, (value,), requires_grad)


_CONSTANTS: Final = {"zeros": (0,), "ones": (1,), "full": ()}


def _as_reals(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Run-time numbers of a record: a complex number is two."""
    found: list[Any] = []
    for each in values:
        found += (each.real, each.imag) if each.__class__ is complex else (each,)
    return tuple(found)


# Like another tensor -------------------------------------------------------------------


def like(
    input: Any, name: str, element: dtype | None, where: Any, memory_format: Any = None
) -> Layout:
    """Layout of a *_like function's result: the input's order of dims unless told."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    given = input._layout
    device = given.device if where is None else creation.chosen_device(where)
    element = given.dtype if element is None else asked_for(element, name)
    if memory_format is not None and not str(memory_format).endswith("preserve_format"):
        return shapes.in_format(contiguous(given.shape, element, device), memory_format)
    if given.is_contiguous:
        return contiguous(given.shape, element, device)
    return make_layout(given.shape, shapes.like_strides(given), element, device)


def empty_like(
    input: Tensor, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Tensor of another one's shape and strides with undefined contents."""
    given = like(input, "empty_like", dtype, device, memory_format)
    return creation.empty_layout(given, requires_grad)


def zeros_like(
    input: Tensor, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Zeros of another tensor's shape, dtype and order of dims."""
    given = like(input, "zeros_like", dtype, device, memory_format)
    return recorded("zeros", given, (), requires_grad)


def ones_like(
    input: Tensor, *, dtype: dtype | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Ones of another tensor's shape, dtype and order of dims."""
    given = like(input, "ones_like", dtype, device, memory_format)
    return recorded("ones", given, (), requires_grad)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """One number everywhere, in another tensor's shape, dtype and order of dims."""
    given = like(input, "full_like", dtype, device, memory_format)
    value = number_rules.number(fill_value, "full_like", "fill_value", 2)
    return filled(given, value, requires_grad)


def new_zeros(
    self: Tensor, *sizes: Any, size: Any = None, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Zeros in this tensor's dtype on its device."""
    given = _new(self, sizes, size, "new_zeros", dtype, device)
    return recorded("zeros", given, (), requires_grad)


def new_ones(
    self: Tensor, *sizes: Any, size: Any = None, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Ones in this tensor's dtype on its device."""
    given = _new(self, sizes, size, "new_ones", dtype, device)
    return recorded("ones", given, (), requires_grad)


def new_empty(
    self: Tensor, *sizes: Any, size: Any = None, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Undefined contents in this tensor's dtype on its device."""
    given = _new(self, sizes, size, "new_empty", dtype, device)
    return creation.empty_layout(given, requires_grad)


def new_empty_strided(
    self: Tensor, size: Any, stride: Any, dtype: dtype | None = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Undefined contents of given shape and strides in this tensor's dtype on its device."""
    return creation.empty_strided(
        size, stride, dtype=dtype or self._layout.dtype, device=device or self._layout.device,
        requires_grad=requires_grad,
    )  # fmt: skip


def new_full(
    self: Tensor, size: Any, fill_value: Any, *, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """One number everywhere in this tensor's dtype on its device."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            "new_full(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    given = _new(self, (tuple(size),), None, "new_full", dtype, device)
    value = number_rules.number(fill_value, "new_full", "fill_value", 2)
    return filled(given, value, requires_grad)


def _new(
    self: Tensor, sizes: Any, size: Any, name: str, element: dtype | None, where: Any
) -> Layout:
    given = self._layout
    if size is not None:
        if not isinstance(size, (tuple, list)):
            raise TypeError(
                f"{name}(): argument 'size' must be tuple of ints, not {type(size).__name__}"
            )
        sizes = (size,)
    elif not sizes:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if where is None and given.device is META:
        where = META
    return fresh(sizes, name, element or given.dtype, where)


def new_tensor(
    self: Tensor, data: Any, *, dtype: dtype | None = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A copy of data in this tensor's dtype on its device."""
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than tensor.new_tensor(sourceTensor).",
            stacklevel=2,
        )
        made = data.detach().clone().to(dtype or self._layout.dtype)
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


@refuses("eye")
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
        return into(out, "eye", (rows, columns), (), dtype)
    return recorded("eye", fresh((rows, columns), "eye", dtype, device), (), requires_grad)
