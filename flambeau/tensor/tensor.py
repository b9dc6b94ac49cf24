"""Tensor: a view of memory with a dtype, a device and a history.

Keeps     a tensor is its storage, layout and offset; everything else about it is derived or rare.
Touches   engine.view, gradients.
Not here  methods made from operators (methods.py), indexing, printing, conversion."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Self

from flambeau.base.layout import Layout
from flambeau.engine.storage import Storage
from flambeau.engine.view import UNPLACED, View


class Size(tuple[int, ...]):
    """Shape of a tensor: a tuple of ints with torch's name and `numel`.

    >>> Size((2, 3)), Size((2, 3)).numel()
    (torch.Size([2, 3]), 6)
    """

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Self:
        made = tuple.__new__(cls, sizes)
        for place, size in enumerate(made):
            if size.__class__ is not int:
                return cls(_as_ints(tuple(made), place))
        return made

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """Product of the sizes."""
        count = 1
        for size in self:
            count *= size
        return count

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise TypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        return (_size_of, (tuple(self),))  # by a name that does not change


def _size_of(sizes: tuple[int, ...]) -> Size:
    return Size(sizes)


def _as_ints(sizes: tuple[Any, ...], first: int) -> list[int]:
    """Sizes that are no ints themselves, as ints; `first`: where the first of these is."""
    for place, size in enumerate(sizes[first:], first):
        if not hasattr(size, "__index__"):
            raise TypeError(
                f"torch.Size() takes an iterable of 'int' (item {place} is '{type(size).__name__}')"
            )
    return [int(size.__index__()) for size in sizes]


class TensorMeta(type):
    """The class of Tensor. What a program derives from it also gets members that hand calls over
    to its __torch_function__; Tensor's own do not look for one."""

    def mro(cls) -> list[type]:
        order = type.mro(cls)
        if not vars(cls).get("_keeps_members", False):
            from flambeau.tensor.overriding.members import OverridableMembers

            if OverridableMembers not in order:
                order.insert(order.index(Tensor), OverridableMembers)
        return order


class Tensor(View, metaclass=TensorMeta):
    """A multi-dimensional array of one dtype; see the file for what it holds.

    _autograd   None, or gradients.graph's Leaf, Node or Output: what it has of a history
    _base       the tensor this is a view of, never itself a view, or None
    """

    __slots__ = ("__dict__", "__weakref__", "_autograd", "_base")

    _autograd: Any
    _base: Any
    # Rare state: class attributes, kept in the instance's __dict__ where they differ.
    _grad: Any = None
    _versions: Any = None
    _rebased: Any = None
    _creation: Any = None
    _view_recipe: Any = None
    _keeps_members: bool = True
    # numpy asks Tensor first in `array * tensor`.
    __array_priority__: float = 1000

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        from flambeau.tensor import creation

        return creation.legacy_tensor(cls, *arguments, **named)

    def __hash__(self) -> int:
        return id(self)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What the function gives for the arguments as plain tensors, its tensors as `cls`."""
        return _of_subclass()(cls, func, types, args, kwargs or {})

    @classmethod
    def _from_tensor(cls, data: Tensor) -> Any:
        """An instance of a subclass over the tensor's memory, not yet asking for gradients."""
        return empty_like_class(cls, data)

    @staticmethod
    def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
        """A leaf of a subclass over the tensor's memory, as the subclass's `__new__` makes it."""
        made = empty_like_class(cls, data)
        if require_grad:
            made.requires_grad_()
        return made

    if TYPE_CHECKING:
        # Members come from the registry and from tables: methods.py, late_methods.py; these
        # give one Tensor however they are called.
        abs: Callable[..., Tensor]
        all: Callable[..., Tensor]
        any: Callable[..., Tensor]
        argmax: Callable[..., Tensor]
        bernoulli: Callable[..., Tensor]
        ceil: Callable[..., Tensor]
        clamp: Callable[..., Tensor]
        clone: Callable[..., Tensor]
        contiguous: Callable[..., Tensor]
        copy_: Callable[..., Tensor]
        cos: Callable[..., Tensor]
        cumsum: Callable[..., Tensor]
        detach: Callable[..., Tensor]
        diagonal: Callable[..., Tensor]
        div: Callable[..., Tensor]
        double: Callable[..., Tensor]
        eq: Callable[..., Tensor]
        exp: Callable[..., Tensor]
        expand: Callable[..., Tensor]
        expm1: Callable[..., Tensor]
        fill_: Callable[..., Tensor]
        flatten: Callable[..., Tensor]
        flip: Callable[..., Tensor]
        floor: Callable[..., Tensor]
        gather: Callable[..., Tensor]
        ge: Callable[..., Tensor]
        gt: Callable[..., Tensor]
        index_select: Callable[..., Tensor]
        isfinite: Callable[..., Tensor]
        le: Callable[..., Tensor]
        lgamma: Callable[..., Tensor]
        log: Callable[..., Tensor]
        log1p: Callable[..., Tensor]
        log_softmax: Callable[..., Tensor]
        logsumexp: Callable[..., Tensor]
        long: Callable[..., Tensor]
        lt: Callable[..., Tensor]
        masked_fill: Callable[..., Tensor]
        matmul: Callable[..., Tensor]
        mean: Callable[..., Tensor]
        mul: Callable[..., Tensor]
        mul_: Callable[..., Tensor]
        narrow: Callable[..., Tensor]
        ne: Callable[..., Tensor]
        neg: Callable[..., Tensor]
        new_empty: Callable[..., Tensor]
        new_full: Callable[..., Tensor]
        new_ones: Callable[..., Tensor]
        new_tensor: Callable[..., Tensor]
        new_zeros: Callable[..., Tensor]
        permute: Callable[..., Tensor]
        pow: Callable[..., Tensor]
        prod: Callable[..., Tensor]
        reciprocal: Callable[..., Tensor]
        repeat: Callable[..., Tensor]
        reshape: Callable[..., Tensor]
        round: Callable[..., Tensor]
        scatter: Callable[..., Tensor]
        select: Callable[..., Tensor]
        sigmoid: Callable[..., Tensor]
        sign: Callable[..., Tensor]
        sin: Callable[..., Tensor]
        softmax: Callable[..., Tensor]
        sqrt: Callable[..., Tensor]
        squeeze: Callable[..., Tensor]
        sum: Callable[..., Tensor]
        tanh: Callable[..., Tensor]
        to: Callable[..., Tensor]
        transpose: Callable[..., Tensor]
        tril: Callable[..., Tensor]
        triu: Callable[..., Tensor]
        type_as: Callable[..., Tensor]
        unsqueeze: Callable[..., Tensor]
        view: Callable[..., Tensor]
        where: Callable[..., Tensor]
        zero_: Callable[..., Tensor]
        shape: Size
        ndim: int
        requires_grad: bool

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rlshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __rrshift__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...


@functools.cache
def _of_subclass() -> Callable[..., Any]:
    from flambeau.tensor.overriding import results

    return results.of_subclass


# A Tensor with nothing set: past the old constructor.
empty_tensor: Final = functools.partial(object.__new__, Tensor)


def new_tensor(storage: Storage, layout: Layout) -> Tensor:
    """A tensor over a whole storage, without history."""
    made: Tensor = empty_tensor()
    made._storage = storage
    made._layout = layout
    made._offset = 0
    made._place = storage if layout is storage.layout else UNPLACED
    made._autograd = None
    made._base = None
    return made


_RESULT_TYPES: dict[str, Any] = {}
# Of names that are data: no class that a checker could know.
_named_tuple: Any = collections.namedtuple  # noqa: PYI024


def _result_text(self: Any) -> str:
    parts = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
    return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(parts) + ")"


def _result_parts(self: Any) -> tuple[Any, ...]:
    # Pickles find no class by its name: another process may not have made it yet.
    return result_tuple, (type(self).__name__, self._fields, tuple(self))


def result_class(name: str, fields: tuple[str, ...]) -> Any:
    """A class of named tuples as torch.return_types has it."""
    kind = _RESULT_TYPES.get(name)
    if kind is None:
        kind = _named_tuple(name, fields)
        kind.__module__ = "torch.return_types"
        kind.__repr__ = _result_text
        kind.__reduce__ = _result_parts
        _RESULT_TYPES[name] = kind
    return kind


def is_result(value: Any) -> bool:
    """Whether it is a named tuple as torch.return_types has them."""
    return _RESULT_TYPES.get(type(value).__name__) is type(value)


def result_maker(name: str) -> Any:
    """What makes, of a tuple, the named tuple that a file of torch's names: a plain tuple where
    nothing in this process has given such a one yet, and its fields are not known."""
    kind = _RESULT_TYPES.get(name)
    return lambda values, _=None: kind._make(values) if kind is not None else tuple(values)


def result_tuple(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """A named tuple as torch.return_types has it."""
    return result_class(name, fields)(*values)


def empty_like_class(kind: type[Tensor], data: Tensor) -> Any:
    """An instance of a subclass over a tensor's memory, without history."""
    made = object.__new__(kind)
    made._storage = data._storage
    made._layout = data._layout
    made._offset = data._offset
    made._place = data._place if data._place is data._storage else UNPLACED
    made._autograd = None
    made._base = None
    return made


def as_class(data: Tensor, kind: Any) -> Any:
    """An instance of a subclass over a tensor's memory, with its history. The tensor is fresh:
    nothing else refers to it."""
    made = empty_like_class(kind, data)
    made._autograd, made._base = data._autograd, data._base
    made.__dict__.update(data.__dict__)
    return made
