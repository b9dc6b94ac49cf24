"""Containers: modules and parameters in sequences and dictionaries.

Keeps     what is in them is registered, under its index or key; order of insertion is the order of
          parameters, state and calls.
Touches   module.
Not here  parameters' containers (parameter_container.py)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Self

from flambeau.nn.modules.keys import list_key, named_pairs
from flambeau.nn.modules.module import Module
from flambeau.nn.modules.naming import indented
from flambeau.nn.modules.parameter_container import ParameterDict, ParameterList

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

Container = Module


class _Numbered(Module):
    """Modules in an order, the names of which are their places."""

    def _key_at(self, index: Any) -> str:
        return list_key(index, len(self))

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._key_at(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key_at(index), module)

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            for key in list(self._modules.keys())[index]:
                delattr(self, key)
        else:
            delattr(self, self._key_at(index))
        self._modules = OrderedDict(
            (str(number), module) for number, module in enumerate(self._modules.values())
        )

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def pop(self, key: Any) -> Any:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def _insert(self, index: int, module: Any) -> None:
        modules = self._modules
        for place in range(len(modules), index, -1):
            modules[str(place)] = modules[str(place - 1)]
        modules[str(index)] = module


class Sequential(_Numbered):
    """Modules called one after the other, each with the result of the one before.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    >>> model(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _key_at(self, index: Any) -> str:
        place = int(super()._key_at(index))  # the user may have chosen other names
        return next(islice(self._modules.keys(), place, None))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def _other(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)!s} is "
                "given."
            )
        return other

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *self._other(other))

    def __iadd__(self, other: Any) -> Self:
        for module in list(self._other(other)):
            self.append(module)
        return self

    def _count(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def __mul__(self, other: Any) -> Sequential:
        return Sequential(*(list(self) * self._count(other)))

    __rmul__ = __mul__

    def __imul__(self, other: Any) -> Self:
        for module in list(self) * (self._count(other) - 1):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self._modules)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        self._insert(index + count if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(_Numbered):
    """Modules in a list.

    >>> import flambeau as torch
    >>> len(torch.nn.ModuleList(torch.nn.Identity() for _ in range(3)))
    3
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return super().__getitem__(index)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        self.extend(modules)
        return self

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        combined = ModuleList()
        for module in chain(self, other):
            combined.append(module)
        return combined

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`."""
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        offset = len(self)
        for number, module in enumerate(modules):
            self.add_module(str(offset + number), module)
        return self

    def __repr__(self) -> str:
        """Equal neighbours are shown once, with their number."""
        texts = [repr(module) for module in self]
        if not texts:
            return self._get_name() + "()"
        runs: list[list[Any]] = []
        for number, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = number
            else:
                runs.append([number, number, text])
        lines = [
            indented(
                f"({first}): {text}"
                if first == last
                else f"({first}-{last}): {last - first + 1} x {text}"
            )
            for first, last, text in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules in a dictionary.

    >>> import flambeau as torch
    >>> list(torch.nn.ModuleDict({"a": torch.nn.Tanh(), "b": torch.nn.ReLU()}))
    ['a', 'b']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """Names of the modules."""
        return self._modules.keys()

    def items(self) -> Any:
        """(name, module) pairs."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        if isinstance(modules, (ModuleDict, Mapping)):
            for key, module in modules.items():
                self[key] = module
            return
        for key, module in named_pairs("ModuleDict", modules):
            self[key] = module
