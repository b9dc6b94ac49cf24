"""Keys of x[key] in full: what each item means, views first, then tensors of indices.

Keeps     torch's rules: a list is a tuple where it holds anything but numbers; masks become their
          places; 0-dim integers are ints; errors at the line, values of indices included.
Touches   indexing, index_bounds, functions, creation.
Not here  the hot forms (indexing/__init__.py)."""

from __future__ import annotations

import warnings
import weakref
from array import array
from itertools import compress
from typing import Any, Final

from flambeau.base import dtypes, view_rules
from flambeau.base.devices import META
from flambeau.base.errors import helped
from flambeau.base.layout import Layout
from flambeau.engine import callsite, stream
from flambeau.engine.storage import Storage
from flambeau.gradients.recording import record as gradient_record
from flambeau.ops.views.parts import slice_bounds
from flambeau.tensor import conversion, creation, functions, index_bounds, indexing, inplace
from flambeau.tensor.binding import binding
from flambeau.tensor.tensor import Tensor, new_tensor

_WRONG: Final = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
    "indices (got {})"
)
# Up to this many elements of a mask Python looks at them itself.
FEW_PLACES: Final = 1024
# And of so many at most it remembers the places.
MOST_KNOWN: Final = 1 << 16
_EVERYTHING: Final = slice(None)
_WRONG_TENSOR: Final = "tensors used as indices must be long, int, byte or bool tensors"


def plain_slice(key: slice) -> slice:
    """A slice with Python ints or None for bounds."""
    return slice(*[_bound(each) for each in (key.start, key.stop, key.step)])


def _bound(value: Any) -> int | None:
    if value is None or value.__class__ is int:
        return value
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


def step_of(key: slice) -> int:
    """The step; torch's error where it is not positive."""
    step: int = 1 if key.step is None else key.step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    return step


# Views ---------------------------------------------------------------------------------


def consumed(items: Any) -> int:
    """How many dims the items use up."""
    count = 0
    for item in items:
        if item is None or item is Ellipsis or item is True or item is False:
            continue
        is_mask = isinstance(item, Tensor) and item._layout.dtype in (dtypes.bool_, dtypes.uint8)
        count += item._layout.ndim if is_mask else 1
    return count


def basic_form(layout: Layout, items: tuple[Any, ...]) -> indexing.Form:
    """The view that ints, slices, None and ... make; the ints' places are left open."""
    n_dims = consumed(items)
    if n_dims > layout.ndim:
        if layout.ndim == 0 and len(items) == 1 and isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {layout.ndim}")
    shape: list[int] = []
    strides: list[int] = []
    places: list[tuple[int, int, int]] = []
    offset = dim = 0
    skipped = layout.ndim - n_dims
    for item in items:
        if item.__class__ is int:
            places.append((layout.shape[dim], layout.strides[dim], dim))
            dim += 1
        elif item is None:
            place = len(shape)
            step = layout.shape[dim] * layout.strides[dim] if dim < layout.ndim else 1
            shape.insert(place, 1)
            strides.insert(place, step)
        elif item is Ellipsis:
            shape += layout.shape[dim : dim + skipped]
            strides += layout.strides[dim : dim + skipped]
            dim += skipped
            skipped = 0
        else:
            step = step_of(item)
            begin, length = slice_bounds(layout.shape[dim], item.start, item.stop, step)
            shape.append(length)
            strides.append(layout.strides[dim] * step)
            offset += begin * layout.strides[dim]
            dim += 1
    shape += layout.shape[dim:]
    strides += layout.strides[dim:]
    return view_rules.restrided(layout, tuple(shape), tuple(strides)), offset, tuple(places)


def steps_of(layout: Layout, items: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """(dim, item) of the items that do something, each on the result of those before it."""
    steps: list[tuple[int, Any]] = []
    dim = 0
    skipped = layout.ndim - consumed(items)
    for item in items:
        if item.__class__ is int:
            steps.append((dim, item))
            continue
        if item is Ellipsis:
            dim += skipped
            skipped = 0
            continue
        if item is None or item != _EVERYTHING:
            steps.append((dim, item))
        dim += 1
    return steps or [(0, Ellipsis)]


def chained(self: Tensor, steps: list[tuple[int, Any]]) -> Tensor:
    """The same view as one operator after the other, so that gradients know each."""
    result = self
    for dim, item in steps:
        result = indexing.getitem(result, (_EVERYTHING,) * dim + (item,) if dim else item)
    return result


# Keys with tensors -----------------------------------------------------------------------


def items_of(key: Any) -> list[Any]:
    """The items of a key: a tuple's, or those of a list that holds more than numbers."""
    if key.__class__ is tuple:
        return list(key)
    if isinstance(key, (tuple, list)) and len(key) < 32 and any(map(_is_item, key)):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
            "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
            "be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
            "error or a different result",
            stacklevel=5,
        )
        return list(key)
    return [key]


def _is_item(each: Any) -> bool:
    """Whether what a list holds is an item of a key rather than a number."""
    if each is None or each is Ellipsis or isinstance(each, (slice, Tensor, list, tuple)):
        return True
    return hasattr(each, "__array_interface__") and bool(each.ndim)


def _item(item: Any) -> Any:
    """One item as an int, a bool, a plain slice, None, ... or a tensor with dims (or a 0-dim
    mask as a bool)."""
    kind = item.__class__
    if kind is int or kind is bool or item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return plain_slice(item)
    if isinstance(item, Tensor):
        return _tensor_item(item)
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if hasattr(item, "__array_interface__"):
        if getattr(item, "ndim", 0) == 0:
            return _number_item(item.item())
        return _tensor_item(creation.tensor(item))
    if isinstance(item, (list, tuple, range)):
        return _sequence_item(item)
    return _number_item(item)


def _number_item(item: Any) -> Any:
    if isinstance(item, bool):
        return item
    if not hasattr(item, "__index__"):
        raise IndexError(_WRONG.format(type(item).__name__))
    return item.__index__()


def _tensor_item(item: Tensor) -> Any:
    layout = item._layout
    if layout.dtype is dtypes.uint8:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
            "instead.",
            stacklevel=6,
        )
        item = functions.convert(item, dtypes.bool_)
        layout = item._layout
    if layout.dtype not in (dtypes.int64, dtypes.int32, dtypes.bool_):
        raise IndexError(helped(_WRONG_TENSOR, given=repr(layout.dtype), fix="index.long()"))
    if layout.ndim == 0:
        return item.item()
    return item


def _sequence_item(item: Any) -> Tensor:
    made = creation.tensor(item if isinstance(item, list) else list(item))
    if made._layout.dtype.category == 2:
        made = functions.convert(made, dtypes.int64)
    return made


class Indexed:
    """A key taken apart: a view of the tensor, and tensors that index some of its dims."""

    __slots__ = ("dims", "indices", "viewed")

    def __init__(self, viewed: Tensor, dims: list[int], indices: list[Tensor]) -> None:
        self.viewed = viewed
        self.dims = tuple(dims)
        self.indices = indices


def taken_apart(self: Tensor, key: Any) -> Indexed:
    """Views of the plain items, then dims and tensors of the others. Masks become places."""
    items = [_item(item) for item in items_of(key)]
    ndim = self._layout.ndim
    n_dims = consumed(items)
    if n_dims > ndim:
        if ndim == 0 and len(items) == 1 and items[0].__class__ is int:
            indexing.first_place(self._layout)
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    plain: list[Any] = []
    where: list[tuple[int, Any]] = []
    dim = 0  # of the view
    skipped = ndim - n_dims
    for item in items:
        if isinstance(item, Tensor):
            where.append((dim, item))
            count = item._layout.ndim if item._layout.dtype is dtypes.bool_ else 1
            plain += [slice(None)] * count
            dim += count
        elif item.__class__ is bool:
            where.append((dim, item))
            plain.append(None)
            dim += 1
        elif item is Ellipsis:
            plain += [slice(None)] * skipped
            dim += skipped
            skipped = 0
        else:
            plain.append(item)
            dim += item.__class__ is not int
    viewed = self
    if any(item != slice(None) for item in plain):
        viewed = indexing.getitem(self, tuple(plain))
    dims: list[int] = []
    indices: list[Tensor] = []
    for at, item in where:
        found = places(viewed._layout, at, item)
        dims += range(at, at + len(found))
        indices += found
    return Indexed(viewed, dims, indices)


def places(layout: Layout, at: int, item: Any) -> list[Tensor]:
    """Integer tensors for one item: itself, or the places where a mask is true."""
    if item.__class__ is bool:
        return [creation.tensor([0] if item else [], dtype=dtypes.int64)]
    if item._layout.dtype is not dtypes.bool_:
        return [item]
    mask = item._layout.shape
    for number, size in enumerate(mask):
        if size != layout.shape[at + number]:
            raise IndexError(
                f"The shape of the mask {list(mask)} at index {number} does not match the shape of "
                f"the indexed tensor {list(layout.shape)} at index {at + number}"
            )
    return _places_of(item)


# Places of masks that nobody has written since: (version, layout, offset, places).
_KNOWN: Final[weakref.WeakKeyDictionary[Storage, tuple[Any, ...]]] = weakref.WeakKeyDictionary()


def _places_of(mask: Tensor) -> list[Tensor]:
    """Places of what is true in a mask, a tensor a dim; looked for once a write."""
    layout, storage = mask._layout, mask._storage
    is_counted = index_bounds.is_counted(mask)
    known = _KNOWN.get(storage) if is_counted else None
    if known is not None and known[:3] == (storage.version, layout, mask._offset):
        return known[3]
    version = storage.version
    if layout.n_elements <= FEW_PLACES and layout.device is not META:
        made = _few_places(mask)
    else:
        found = nonzero(mask)
        made = [functions.select(found, 1, number) for number in range(layout.ndim)]
    if is_counted and layout.n_elements <= MOST_KNOWN:
        _KNOWN[storage] = version, layout, mask._offset, made
    return made


def _few_places(mask: Tensor) -> list[Tensor]:
    """Places of what is true in a small mask, a tensor a dim: Python finds them, so that no other
    count of them is another operator."""
    values = conversion.flat_values(mask)
    flat = list(compress(range(len(values)), values))
    made: list[Tensor] = []
    sizes = mask._layout.shape
    for dim in reversed(range(len(sizes))):
        size, here = sizes[dim], flat
        if dim:
            here, flat = [place % size for place in flat], [place // size for place in flat]
        index = creation.from_bytes(array("q", here).tobytes(), (len(here),), dtypes.int64)
        index_bounds.know(index, 0, max(size - 1, 0))
        made.append(index)
    return made[::-1]


def nonzero(mask: Tensor) -> Tensor:
    """Places of the elements that are not 0, a row each; runs what is pending to count them."""
    count = int(functions.count_nonzero(mask).item())
    found: Tensor = functions.nonzero_static(mask.detach(), size=count)
    index_bounds.know(found, 0, max(mask._layout.shape, default=1) - 1)
    return found


def _rows(self: Tensor, key: Tensor) -> Tensor:
    """x[indices] for one integer tensor: what functions.index does, its signature remembered."""
    layout = self._layout
    signature: Any = layout.memo.get((_rows, key._layout))
    size = layout.shape[0]
    is_known = signature is not None
    if not is_known or index_bounds.first_outside(key, -size, size) is not None:
        made: Tensor = functions.index(self, (key,), (0,))
        if not is_known and made._layout.device is not META:
            bound = binding("index")
            layout.memo[_rows, key._layout] = bound.signature(
                bound.taken_apart([self, (key,), (0,)])
            )
        return made
    local = stream.LOCAL.stream
    site = local.site or callsite.site()
    (storage,) = stream.record(local, signature, (self, key), (), site)
    made = new_tensor(storage, signature.out_layout)
    base = self._base
    if local.grad_enabled and (
        self._autograd is not None or (base is not None and base._autograd is not None)
    ):
        plan = binding("index").gradient_plan
        plan.attach(signature.attributes, (self, (key,)), made, site)
    elif local.inference:
        binding("index").mark_inference(made)
    if layout.dtype.category == 1:
        index_bounds.follow("index", {"input": self}, made)
    return made


def gathered(self: Tensor, key: Any) -> Tensor:
    """x[key] for keys with tensors, lists or bools."""
    is_plain = isinstance(key, Tensor) and key._layout.dtype is dtypes.int64
    if is_plain and key._layout.shape and self._layout.shape:
        return _rows(self, key)
    found = taken_apart(self, key)
    if not found.indices:
        viewed = found.viewed
        return functions.alias(viewed) if viewed is self else viewed
    return functions.index(found.viewed, found.indices, found.dims)


# Writing -----------------------------------------------------------------------------------


def put(self: Tensor, key: Any, value: Any) -> None:
    """x[key] = value, a tensor or a number of its dtype, for keys with tensors, lists or bools."""
    is_tensor = isinstance(value, Tensor)
    source: Any = value
    is_mask = isinstance(key, Tensor) and key._layout.dtype is dtypes.bool_
    is_whole = is_mask and key._layout.shape == self._layout.shape != ()
    if is_whole and _masked(self, key, source):
        return
    found = taken_apart(self, key)
    viewed = found.viewed
    if not found.indices:
        if is_tensor:
            indexing.copy_into(viewed, indexing.without_leading_ones(source, viewed._layout.ndim))
        else:
            viewed.fill_(source)
        return
    if not is_tensor:
        source = functions.full((), source, dtype=self._layout.dtype, device=self._layout.device)
    elif source._layout.ndim == 0 and source._layout.dtype is not self._layout.dtype:
        source = functions.convert(source, self._layout.dtype)
    ndim = len(viewed._layout.shape) - len(found.dims)
    ndim += max(index._layout.ndim for index in found.indices)
    source = indexing.without_leading_ones(source, ndim)
    _index_put(viewed, found.indices, source, found.dims)


def _index_put(
    target: Tensor, indices: list[Tensor], source: Tensor, dims: tuple[int, ...]
) -> None:
    """functions.index_put_, its signature remembered for what has no history and shares nothing."""
    key = (_index_put, tuple([each._layout for each in indices]), source._layout, dims)
    memo = target._layout.memo
    signature: Any = memo.get(key)
    tensors = [target, *indices, source]
    sizes = target._layout.shape
    is_plain = (
        signature is not None
        and target._autograd is target._base is source._autograd is source._base is None
        and all(each._storage is not target._storage for each in tensors[1:])
        and all(
            index_bounds.first_outside(index, -sizes[dim], sizes[dim]) is None
            for dim, index in zip(dims, indices, strict=True)
        )
    )
    if is_plain:
        site = stream.LOCAL.stream.site or callsite.site()
        inplace.write(signature, tensors, (), site, (target,))
        gradient_record.bump(target, site)
        return
    functions.index_put_(target, indices, source, False, dims=dims)
    if signature is None:
        bound = binding("index_put")
        call = bound.taken_apart(bound.arranged((target, indices, source, False), {"dims": dims}))
        if len(memo) > 4096:
            memo.clear()
        memo[key] = bound.signatures.get(("inplace", *call.key))


def _masked(self: Tensor, mask: Tensor, source: Any) -> bool:
    """x[mask] = one value, without counting the places: masked_fill_. False: not one value."""
    if isinstance(source, Tensor):
        if source._layout.ndim:
            return False
        if source._layout.dtype is not self._layout.dtype:
            source = functions.convert(source, self._layout.dtype)
    functions.masked_fill_(self, mask, source)
    return True
