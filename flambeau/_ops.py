"""torch.ops: operators by namespace and name, those of torch's own library and of programs.

Keeps     torch.ops.aten.add.Tensor(x, y) is torch.add(x, y): an overload is a name for the public
          function, which takes the arguments of all of them.
Touches   the root's names, nn.functional, Tensor; library.py enters what programs define.
Not here  how a program defines an operator (library.py), what operators mean (ops/)."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.tensor import Tensor

__all__ = ["OpOverload", "OpOverloadPacket"]


class OpOverload:
    """One overload of an operator; called, it is the operator."""

    def __init__(self, packet: OpOverloadPacket, name: str, function: Callable[..., Any]) -> None:
        self.overloadpacket = packet
        self.namespace = packet.namespace
        self._overloadname = name
        self._function = function
        self.__name__ = f"{packet.__name__}.{name}"
        self.__module__ = packet.__module__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def name(self) -> str:
        """Namespace and name, as dispatchers write them."""
        ending = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{ending}"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.name()}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator under its name, with its overloads as attributes.

    function   what all overloads are; None where each has its own
    """

    def __init__(self, namespace: str, name: str, function: Callable[..., Any] | None) -> None:
        self.namespace = namespace
        self.__name__ = name
        self.__module__ = f"torch.ops.{namespace}"
        self._function = function
        self._overloads: dict[str, OpOverload] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        function = self._function or next(iter(self._overloads.values()))
        return function(*arguments, **named)

    def __getattr__(self, name: str) -> OpOverload:
        known = self.__dict__.get("_overloads", {})
        if name not in known:
            if name.startswith("__") or self.__dict__.get("_function") is None:
                raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
            known[name] = OpOverload(self, name, self._function)  # type: ignore[arg-type]
        found: OpOverload = known[name]
        return found

    def add(self, name: str, function: Callable[..., Any]) -> OpOverload:
        """Enter an overload of its own."""
        made = self._overloads[name] = OpOverload(self, name, function)
        return made

    def overloads(self) -> list[str]:
        """Names of the overloads that have been asked for or defined."""
        return list(self._overloads) or ["default"]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _OpNamespace(ModuleType):
    """The operators of one library: torch.ops.NAME."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self._own_name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        own = self.__dict__["_own_name"]
        function = _of_torch(name) if own in ("aten", "prims") else None
        if function is None or name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' '{own}' object has no attribute '{name}'")
        packet = OpOverloadPacket(own, name, function)
        setattr(self, name, packet)
        return packet

    def packet(self, name: str) -> OpOverloadPacket:
        """The operator of that name, made where there is none."""
        found = self.__dict__.get(name)
        if found is None:
            found = OpOverloadPacket(self.__dict__["_own_name"], name, None)
            setattr(self, name, found)
        made: OpOverloadPacket = found
        return made


_NAMESPACES: Final[dict[str, _OpNamespace]] = {}


def namespace(name: str) -> Any:
    """torch.ops.NAME.

    >>> import flambeau as torch
    >>> torch.ops.aten.add.Tensor(torch.ones(2), 1), str(torch.ops.aten.add.Tensor)
    (tensor([2., 2.]), 'aten.add.Tensor')
    """
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
    if name == "load_library":
        return load_library
    if name not in _NAMESPACES:
        _NAMESPACES[name] = _OpNamespace(name)
    return _NAMESPACES[name]


def load_library(path: str) -> None:
    """Raises: a library of operators in C++ is built against torch's own tensors."""
    raise OSError(
        f"Could not load this library: {path}\n"
        "  flambeau  has no C++ of torch's, against which such libraries are built\n"
        "  fix       write the operator in tensor operators, or see torch.library.custom_op"
    )


def _to_copy(input: Tensor, **named: Any) -> Tensor:
    rest = {name: value for name, value in named.items() if value is not None}
    for name in ("layout", "pin_memory"):
        rest.pop(name, None)
    return input.to(copy=True, **rest)


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def _index(input: Tensor, indices: Any) -> Any:
    return input[tuple(slice(None) if each is None else each for each in indices)]


def _rows(name: str) -> Callable[..., Any]:
    """softmax or log_softmax as the operators behind them are called."""

    def computed(input: Tensor, dim: int, half_to_float: bool = False) -> Any:
        from flambeau.nn import functional

        return getattr(functional, name)(input.float() if half_to_float else input, dim)

    return computed


# Operators that torch's public functions are made from, by what does the same here.
_BEHIND: Final[dict[str, Callable[..., Any]]] = {
    "_to_copy": _to_copy,
    "_pin_memory": lambda input, device=None: input.pin_memory(),
    "_unsafe_view": lambda input, size: input.reshape(size),
    "_softmax": _rows("softmax"),
    "_log_softmax": _rows("log_softmax"),
    "alias": lambda input: input.view_as(input),
    "index": _index,
    "lift": lambda input: input,
    "lift_fresh": lambda input: input,
    "lift_fresh_copy": lambda input: input.clone(),
    "slice": _slice,
}
# Prefixes of names that are rooms in Python.
_PREFIXES: Final = ("linalg_", "fft_", "special_")


def _of_torch(name: str) -> Callable[..., Any] | None:
    """The public function or method behind an operator of torch's own library."""
    if name in _BEHIND:
        return _BEHIND[name]
    import flambeau
    from flambeau.nn import functional

    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return getattr(getattr(flambeau, prefix[:-1]), name[len(prefix) :], None)
    for owner in (flambeau, functional, Tensor):
        found = getattr(owner, name, None)
        if callable(found) and not isinstance(found, (type, ModuleType)):
            return found  # type: ignore[no-any-return]
    return _unavailable(name) if name.startswith("_") and not name.startswith("__") else None


def _unavailable(name: str) -> Callable[..., Any]:
    """What stands for an inner operator of torch's: programs name them beside what they do."""

    def refused(*arguments: Any, **named: Any) -> Any:
        raise NotImplementedError(
            helped(
                f"aten::{name}: flambeau has no such operator",
                expected="a public function: inner operators are torch's own",
                fix="call the public function that it stands behind",
            )
        )

    return refused
