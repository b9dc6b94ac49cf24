"""Members that subclasses of Tensor get before Tensor's own: they look for a __torch_function__.

Keeps     Tensor's own members are what a __torch_function__ is shown, and look for nothing: members
          of plain tensors cost what they did. A mode needs them watched on Tensor itself, from the
          first one on.
Touches   own_members, tensor.arguments.taken_over.
Not here  members made from operators and those of rooms that are imported late: these ask
          themselves (arguments.refusing)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from flambeau.tensor import own_members
from flambeau.tensor.arguments import taken_over
from flambeau.tensor.tensor import Tensor

_OWN: Final[Any] = Tensor
# Members under another name of theirs.
_SHOWN: Final = {"nelement": "numel", "ndimension": "dim"}
_READ: Final = (
    "size", "stride", "is_contiguous", "contiguous", "data_ptr", "item", "numpy", "view",
    "__getitem__", "__setitem__",
)  # fmt: skip
# What is made by other members, which ask, and what asks itself.
_LEFT: Final = frozenset(("__iter__", "to", "type_as"))


class OverridableMembers:
    """Stands before Tensor in the order of a subclass's bases."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        own: Any = self
        if not own.dim():
            raise TypeError("iteration over a 0-d tensor")
        return iter(own.unbind(0))


def _asked(public_api: Any, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a member gives, by whoever takes it over or as it is."""
    found = taken_over.dispatched(
        public_api, name, taken_over.relevant(arguments, named), arguments, named,
        taken_over.is_python(name),
    )  # fmt: skip
    return public_api(*arguments, **named) if found is taken_over.NOBODY else found


def _method(name: str) -> Callable[..., Any]:
    shown = _SHOWN.get(name, name)

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        public_api = getattr(_OWN, shown)
        return _asked(public_api, f"torch.Tensor.{shown}", (self, *arguments), named)

    method.__name__ = method.__qualname__ = name
    return method


class _Property:
    """A property of Tensor that looks for a __torch_function__."""

    def __init__(self, own: property, name: str) -> None:
        self._own = own
        self._name = f"torch.Tensor.{name}"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self._own
        return _reached(self._own.__get__, f"{self._name}.__get__", (instance,))

    def __set__(self, instance: Any, value: Any) -> None:
        _reached(self._own.__set__, f"{self._name}.__set__", (instance, value))

    def __delete__(self, instance: Any) -> None:
        _reached(self._own.__delete__, f"{self._name}.__delete__", (instance,))


def _reached(public_api: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """What a property's getter, setter or deleter gives; the tensor alone is asked."""
    is_mode = taken_over.present_mode() is not None
    found = taken_over.dispatched(public_api, name, arguments[:1], arguments, {}, is_mode)
    return public_api(*arguments) if found is taken_over.NOBODY else found


class _Watched:
    """A method of Tensor itself, once modes are used: asks, where it is called on a tensor."""

    stays = True

    def __init__(self, own: Any, name: str) -> None:
        self._own = own
        self._method = _method(name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self._own
        if taken_over.MODES:
            return partial(self._method, instance)
        return self._own.__get__(instance, owner)


def _methods() -> list[str]:
    names = [*own_members.METHODS, *_READ]
    return [name for name in names if name not in _LEFT]


def _install() -> None:
    for name in _methods():
        setattr(OverridableMembers, name, _method(name))
    for name in own_members.PROPERTIES:
        setattr(OverridableMembers, name, _Property(vars(Tensor)[name], name))


def watch() -> None:
    """Let modes see members of plain tensors; once is enough."""
    if isinstance(vars(Tensor)["size"], _Watched):
        return
    for name in own_members.PROPERTIES:
        setattr(Tensor, name, vars(OverridableMembers)[name])
    for name in _methods():
        setattr(Tensor, name, _Watched(getattr(_OWN, name), name))


_install()
