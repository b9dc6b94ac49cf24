"""x[key] and x[key] = value.

Keeps     ints, slices, None and ... give a view, worked out once per layout and form of key (the
          ints in it are offsets, so x[i] in a loop is one form); everything else is read through
          the operator `index` and written through `index_put`.
Touches   indexing.keys (keys with tensors), functions, gradients.recording.record.
Not here  what tensors in a key mean (keys.py), bounds of index values (index_bounds.py)."""

from __future__ import annotations

import sys
from types import EllipsisType, NoneType
from typing import Any, Final

from flambeau.base import view_rules
from flambeau.base.devices import META
from flambeau.base.layout import Layout
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.engine import callsite, run
from flambeau.engine.storage import new_storage
from flambeau.engine.stream import LOCAL
from flambeau.engine.view import UNPLACED
from flambeau.engine.view import View as EngineView
from flambeau.gradients.recording import record as gradient_record
from flambeau.gradients.saved import bump
from flambeau.tensor import functions, number_rules
from flambeau.tensor.arguments import named_type, refusing, taken_over
from flambeau.tensor.arguments.python_data import is_numpy_scalar
from flambeau.tensor.binding import binding, remember
from flambeau.tensor.indexing import keys as index_keys
from flambeau.tensor.tensor import Tensor, new_tensor

_new: Final = object.__new__
_getframe: Final = sys._getframe
_internal: Final = callsite.INTERNAL
_PLAIN: Final = (int, NoneType)
# A view of one form of key: (layout, offset, ((size, stride, dim), ...) of the ints in order).
Form = tuple[Layout, int, tuple[tuple[int, int, int], ...]]
FIRST: Final = "[int]"
MAX_FORMS: Final = 4096
_PLANS: Final[dict[str, Any]] = {}


_gathered: Final = taken_over.member(index_keys.gathered, "__getitem__")


def getitem(self: Tensor, key: Any) -> Any:
    """Part of the tensor: a view for ints, slices, None and ..., else a copy."""
    kind = key.__class__
    layout = self._layout
    memo: dict[Any, Any] = layout.memo
    if kind is int:
        found = memo.get(FIRST)
        if found is None:
            found = first_place(layout)
        seen, size, stride = found
        place = key + size if key < 0 else key
        if not 0 <= place < size:
            raise out_of_bounds(key, 0, size)
        offset = self._offset + place * stride
    else:
        form = key
        places: Any = ()
        if kind is slice:
            start, stop, step = key.start, key.stop, key.step
            if start.__class__ in _PLAIN and stop.__class__ in _PLAIN and step.__class__ in _PLAIN:
                form = (start, stop, step)
            else:
                form = key = index_keys.plain_slice(key)
                form = (key.start, key.stop, key.step)
        elif kind is tuple:
            form, places = _form_of(key)
            if form is None:
                return _gathered(self, key)
        elif kind is not NoneType and kind is not EllipsisType:
            return _gathered(self, key)
        found = memo.get(form)
        if found is None:
            found = _learn(layout, form, key)
        seen, offset, dims = found
        offset += self._offset
        for place, (size, stride, dim) in zip(places, dims, strict=True):
            at = place + size if place < 0 else place
            if not 0 <= at < size:
                raise out_of_bounds(place, dim, size)
            offset += at * stride
    base = self._base
    made = _new(Tensor)
    made._storage = storage = self._storage
    made._layout = seen
    made._offset = offset
    made._place = storage if offset == 0 and seen is storage.layout else UNPLACED
    made._autograd = None
    if base is None:
        made._base = self
        differs = self._autograd is not None
    else:
        made._base = base
        differs = (
            self._autograd is not None or base._autograd is not None or base._rebased is not None
        )
    if self._versions is not None:
        made._versions = self._versions
    if differs:
        return _with_history(self, key, made)
    return made


def _form_of(key: tuple[Any, ...]) -> tuple[Any, Any]:
    """(form, ints) of a key of ints, slices, None and ...; (None, None) of any other."""
    form: list[Any] = []
    places: list[int] = []
    for item in key:
        kind = item.__class__
        if kind is int:
            form.append(int)
            places.append(item)
        elif kind is slice:
            start, stop, step = item.start, item.stop, item.step
            if start.__class__ in _PLAIN and stop.__class__ in _PLAIN and step.__class__ in _PLAIN:
                form.append((start, stop, step))
            else:
                return None, None
        elif kind is NoneType or kind is EllipsisType:
            form.append(item)
        else:
            return None, None
    return (tuple, *form), places


def first_place(layout: Layout) -> Any:
    """View of one place of the first dim: (layout, size, stride)."""
    if not layout.ndim:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` "
            "in C++ to convert a 0-dim tensor to a number"
        )
    seen = view_rules.restrided(layout, layout.shape[1:], layout.strides[1:])
    found = layout.memo[FIRST] = (seen, layout.shape[0], layout.strides[0])
    return found


def _learn(layout: Layout, form: Any, key: Any) -> Form:
    """Work a form out and remember it."""
    items = key if key.__class__ is tuple else (key,)
    found = index_keys.basic_form(layout, items)
    memo = layout.memo
    if len(memo) >= MAX_FORMS:
        memo.clear()
    memo[form] = found
    return found


def out_of_bounds(index: int, dim: int, size: int) -> IndexError:
    """torch's error."""
    return IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")


def _with_history(self: Tensor, key: Any, made: Tensor) -> Tensor:
    """The view with its place in the graph: one node an item of the key, as torch has it."""
    kind = key.__class__
    dim = 0
    if kind is tuple:
        steps = index_keys.steps_of(self._layout, key)
        if len(steps) != 1:
            return index_keys.chained(self, steps)
        dim, key = steps[0]
        kind = key.__class__
    if kind is int:
        name, attributes = "select", {"dim": dim, "index": key}
    elif kind is slice:
        name = "slice"
        attributes = {"dim": dim, "start": key.start, "end": key.stop, "step": key.step or 1}
    elif key is None:
        name, attributes = "unsqueeze", {"dim": dim}
    else:
        name, attributes = "alias", {}
    plan = _PLANS.get(name)
    if plan is None:
        plan = _PLANS[name] = binding(name).gradient_plan
    local = LOCAL.stream
    site = local.site or callsite.site()
    if local.grad_enabled and self._base is None and self._rebased is None:
        plan.attach(attributes, (self,), made, site)  # nothing of a family to look at
    else:
        gradient_record.attach_view(plan, attributes, self, made, site)
    return made


# Writing -------------------------------------------------------------------------------


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write into part of the tensor."""
    kind = value.__class__
    if kind is float or kind is int or kind is Tensor:
        found = _located(self._layout, key)
        if found is not None and _written_fast(self, found[0], found[1] + self._offset, value):
            return
    _assign(self, key, value)


# Not it but _assign is refused, so that hot writes are no deeper.
setitem.refuses = True  # type: ignore[attr-defined]


def _assigned(self: Tensor, key: Any, value: Any) -> None:
    if not isinstance(value, Tensor):
        value = number_of(value, self)  # looked at before the key is
    if key is False:
        return
    target: Any = functions.unsqueeze(self, 0) if key is True else _view_to_write(self, key)
    if target is None:
        index_keys.put(self, key, value)
    elif isinstance(value, Tensor):
        copy_into(target, without_leading_ones(value, target._layout.ndim))
    else:
        target.fill_(value)


_assign: Final = taken_over.member(refusing(_assigned, "__setitem__", True), "__setitem__")


def _located(layout: Layout, key: Any) -> tuple[Layout, int] | None:
    """Layout and relative offset of the view that a hot form of key names."""
    kind = key.__class__
    if kind is int:
        first: Any = layout.memo.get(FIRST) or first_place(layout)
        seen, size, stride = first
        place = key + size if key < 0 else key
        if not 0 <= place < size:
            raise out_of_bounds(key, 0, size)
        return seen, place * stride
    if kind is slice:
        key = (key,)
    elif kind is not tuple:
        return None
    form, places = _form_of(key)
    if form is None:
        return None
    known: Any = layout.memo.get(form) or _learn(layout, form, key)
    seen, offset, dims = known
    for place, (size, stride, dim) in zip(places, dims, strict=True):
        at = place + size if place < 0 else place
        if not 0 <= at < size:
            raise out_of_bounds(place, dim, size)
        offset += at * stride
    return seen, offset


def _view_to_write(self: Tensor, key: Any) -> Tensor | None:
    """The view that a key without tensors names, or None."""
    kind = key.__class__
    is_one = kind is int or kind is slice or key is None or key is Ellipsis
    if not is_one and (kind is not tuple or _form_of(key)[0] is None):
        return None
    return getitem(self, key)


def without_leading_ones(value: Tensor, ndim: int) -> Tensor:
    """The value without dims of size 1 in front that the target does not have."""
    shape = value._layout.shape
    if len(shape) <= ndim:
        return value
    first = 0
    while first < len(shape) - ndim and shape[first] == 1:
        first += 1
    return functions.view(value, shape[first:]) if first else value


def copy_into(target: Tensor, source: Tensor) -> None:
    """target[...] = source, broadcast; torch's error where it does not fit."""
    if source._layout.shape != target._layout.shape:
        view_rules.expanded(source._layout, target._layout.shape)
    if source._storage is target._storage and source._layout.n_elements:
        from flambeau.tensor import inplace

        if source._layout.shape == target._layout.shape:  # a broadcast one reads before it writes
            inplace.check_overlap(target, (source,))
        source = functions.clone(source)  # read first, then write
    target.copy_(source)


def number_of(value: Any, target: Tensor) -> Any:
    """A value to assign as a number the target's dtype holds; torch's TypeError for others."""
    element = target._layout.dtype
    if isinstance(value, (int, float, complex)) or (
        is_numpy_scalar(value) and hasattr(value, "__index__")
    ):
        number = number_rules.number(value, "fill_", "value", 1)
        is_narrow = element.is_floating_point and element.compute is not element
        if is_narrow and number.__class__ is not complex:
            return float(number)  # beyond them is infinity, or the largest there is
        return number_rules.held_number(number, element)
    raise TypeError(
        f"can't assign a {named_type(value)} to a torch.{SCALAR_TYPE_NAMES[element.name]}Tensor"
    )


def _written_fast(self: Tensor, seen: Layout, offset: int, value: Any) -> bool:
    """Record a write into the view (seen, offset) where no gradient and nothing else has to be
    looked at; False: take the long way."""
    storage = self._storage
    base = self._base
    if (
        self._autograd is not None
        or self._versions is not None
        or storage.external is not None
        or (base is not None and (base._autograd is not None or base._rebased is not None))
    ):
        return False
    storage.external = None  # an unset slot is slow to read
    kind = value.__class__
    is_number = kind is float or kind is int
    if is_number:
        key: Any = kind
        if not (-6e4 < value < 6e4 and seen.dtype.category == 2):
            number_of(value, self)
    else:
        other = value._base
        if value._autograd is not None or (other is not None and other._autograd is not None):
            return False
        if value._storage is storage:
            return _stays(self, seen, offset, value)
        key = value._layout
    signature: Any = seen.memo.get(key)
    if signature is None:
        signature = _write_signature(seen, value, is_number)
        if signature is None:
            return False
        seen.memo[key] = signature
    local = LOCAL.stream
    segment = local.segment
    records = segment.records
    if signature is segment.armed or len(records) >= segment.limit:
        segment = local.cut(signature)
        records = segment.records
    if offset == 0 and seen is storage.layout:
        slot = storage.slot if storage.segment is segment else segment.touch(self)
    else:
        target = _new(EngineView)
        target._storage = storage
        target._layout = seen
        target._offset = offset
        slot = segment.touch(target)
    frame = _getframe(2)
    code = frame.f_code
    site = callsite.site() if _internal.get(code, True) else (code, frame.f_lasti)
    if is_number:
        records.append(((signature, slot), (value,), site))
    else:
        place = value._place
        slot_in = place.slot if place.segment is segment else segment.touch(value)
        records.append(((signature, slot, slot_in), (), site))
    storage.version += 1
    storage.write_site = site
    if segment.closed:
        run.flush(segment, "recorded while another thread flushed")
    return True


def _stays(self: Tensor, seen: Layout, offset: int, value: Tensor) -> bool:
    """Whether the value lies where it is written to: `x[i] += 1` assigns the view that it has
    written. Nothing moves, and the write is counted."""
    is_there = value._layout is seen and value._offset == offset
    if is_there:
        bump(self)
    return is_there


def _write_signature(seen: Layout, value: Any, is_number: bool) -> Any:
    """Signature of the in-place write, or None where the general path must look closer."""
    from flambeau.tensor import inplace

    if seen.device is META:
        return None
    target = new_tensor(new_storage(seen), seen)
    if not is_number:
        value = new_tensor(new_storage(value._layout), value._layout)
        if len(value._layout.shape) > seen.ndim:
            return None
        if value._layout.shape != seen.shape:
            view_rules.expanded(value._layout, seen.shape)
    bound = binding("fill" if is_number else "copy")
    call = bound.taken_apart(bound.arranged((target, value), {}))
    key = ("inplace", *call.key)
    signature = bound.signatures.get(key)
    if signature is None:
        signature = inplace.inplace_signature(bound, call, seen)
        remember(bound.signatures, key, signature)
    return signature


__all__ = ["getitem", "setitem"]
