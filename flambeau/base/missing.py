"""What a name that is not there says: that it is not there yet, and what is near it.

Keeps     a missing name raises AttributeError (`hasattr` is False), and ImportError where
          `from torch import name` asked for it; looking for near names costs nothing until the
          message is read, so `hasattr` stays cheap.
Touches   sys.modules and the caller's code object, compat.toml; read only.
Not here  serving `import torch` (cli/stand_in.py)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from opcode import opmap
from types import FrameType, ModuleType
from typing import Any

# Rooms whose names a program may look for in the wrong place: torch's own, nothing internal.
_PUBLIC = (
    "flambeau",
    "flambeau.nn",
    "flambeau.nn.functional",
    "flambeau.nn.init",
    "flambeau.nn.utils",
    "flambeau.optim",
    "flambeau.optim.lr_scheduler",
    "flambeau.autograd",
    "flambeau.utils.data",
    "flambeau.linalg",
    "flambeau.fft",
    "flambeau.special",
)
_IMPORT_FROM = opmap["IMPORT_FROM"]
_SETTINGS = "it sets up a compiler that has to be asked; here fusion is always on"
# Whole modules of torch's: why there are none, or few of their names, and what does their work.
_MODULES = {
    "torch._inductor": (_SETTINGS, "delete the line, or ask hasattr(torch, '_inductor') before"),
    "torch._C": ("it is torch's own C++", "the public name that it stands behind"),
    "torch.ao": ("there are no quantized dtypes", "the model as it is, or in bfloat16"),
    "torch.quantization": ("there are no quantized dtypes", "the model as it is, or in bfloat16"),
    "torch.export": (
        "programs are run, not traced",
        "torch.save(model.state_dict(), path), and export from PyTorch: files go both ways",
    ),
    "torch.utils.cpp_extension": (
        "extensions in C++ are built against torch's own tensors",
        "write it in tensor operators: they are fused into one loop",
    ),
}


def _absent_module(name: str) -> list[str]:
    """Why there is no such module, and what to do, where that is known."""
    while name:
        if name in _MODULES:
            why, instead = _MODULES[name]
            return [f"  because   {why}", f"  fix       {instead}"]
        name = name.rpartition(".")[0]
    return []


def torch_name(module_name: str) -> str:
    """The name under which a PyTorch program knows one of flambeau's modules.

    >>> torch_name("flambeau.nn.functional")
    'torch.nn.functional'
    """
    return "torch" + module_name.removeprefix("flambeau")


def near_names(name: str, candidates: Iterable[str], limit: int = 4) -> list[str]:
    """Candidates that `name` may have been meant for, the likeliest first.

    >>> near_names("Conv3D", ["Conv3d", "Conv2d", "Linear", "Tanh"])
    ['Conv3d', 'Conv2d']
    """
    import difflib

    public = [other for other in candidates if not other.startswith("_") and other != name]
    same = [candidate for candidate in public if candidate.lower() == name.lower()]
    close = difflib.get_close_matches(name, public, n=limit, cutoff=0.65)
    return list(dict.fromkeys(same + close))[:limit]


def refusal(room: str, name: str) -> str | None:
    """Why compat.toml says a name is not there, where it says more than that."""
    import tomllib
    from pathlib import Path

    table = Path(__file__).resolve().parents[1] / "compat.toml"
    refused = tomllib.loads(table.read_text(encoding="utf-8")).get(room, {}).get("refused", {})
    reasons = [why for why, names in refused.items() if name in names]
    return reasons[0] if reasons and reasons[0] != "not there yet" else None


class _Explanation:
    """An exception's text, written when it is read: most missing names are only asked after."""

    def __init__(self, module_name: str, name: str, names: Iterable[str] | None) -> None:
        self.module_name = module_name
        self.name = name
        self.names = names

    def __str__(self) -> str:
        where, name = torch_name(self.module_name), self.name
        lines = [
            f"module {where!r} has no attribute {name!r}",
            f"  flambeau  has no {where}.{name} yet",
        ]
        why = refusal(where, name)
        if why:
            lines.append(f"  because   {why}")
        absent = _absent_module(f"{where}.{name}")
        if absent:
            return "\n".join([*lines, *absent])
        elsewhere = [
            f"{torch_name(other)}.{name}"
            for other in _PUBLIC
            if other != self.module_name and name in vars(sys.modules.get(other, object))
        ]
        if elsewhere:
            lines.append(f"  it is at  {', '.join(elsewhere)}")
        if self.names is None:
            module = sys.modules.get(self.module_name)
            self.names = dir(module) if module is not None else ()
        near = near_names(name, self.names)
        if near:
            lines.append(f"  near it   {', '.join(f'{where}.{other}' for other in near)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def missing_name(module_name: str, name: str, names: Iterable[str] | None = None) -> Exception:
    """The error for a name that a module does not have, of the class its caller expects.

    Call it from a module's `__getattr__`: whoever asked that module decides. Python turns an
    AttributeError under `from module import name` into an ImportError of its own words, so there
    the ImportError is made here."""
    explanation = _Explanation(module_name, name, names)
    if not name.startswith("__") and _asked_by_import_from(module_name):
        module = sys.modules.get(module_name)
        return ImportError(explanation, name=module_name, path=getattr(module, "__file__", None))
    return AttributeError(explanation, name=name)


def _asked_by_import_from(module_name: str) -> bool:
    """Whether the first frame outside the module and this file stands at an IMPORT_FROM."""
    frame: FrameType | None = sys._getframe(1)
    passed = (module_name, torch_name(module_name), __name__)
    while frame is not None and frame.f_globals.get("__name__") in passed:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM


def module_getattr(module_name: str, names: Iterable[str] | None = None) -> Callable[[str], object]:
    """A `__getattr__` for one of flambeau's modules; `names` are what it offers besides dir().

    Write `__getattr__ = module_getattr(__name__)` at the end of the module. A module that also
    loads names lazily ends its own `__getattr__` with `raise missing_name(__name__, name)`."""

    def __getattr__(name: str) -> object:
        raise missing_name(module_name, name, names)

    return __getattr__


def lazy_names(
    package: str,
    where: Mapping[str, str],
    modules: Iterable[str] = (),
    served: Callable[[object, str], object] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are found when they are used.

    where     name -> the file beside it that has it
    modules   files that are names themselves
    served    (what was found, name) -> what the package offers

    Write `__getattr__, __dir__ = lazy_names(__name__, _WHERE)` at the end of the package."""
    names = sorted({*where, *modules})

    def __getattr__(name: str) -> object:
        if name in where:
            found: object = getattr(import_module(f"{package}.{where[name]}"), name)
            found = found if served is None else served(found, name)
        elif name in names:
            found = import_module(f"{package}.{name}")
        else:
            raise missing_name(package, name, names)
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__, lambda: list(names)


_NAMESPACE: Any = vars(ModuleType)["__dict__"]


class _LazyPackage(ModuleType):
    """A package whose names are found when used, and all at once by who reads its `__dict__`."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        names: dict[str, Any] = _NAMESPACE.__get__(self)
        for name in names["__dir__"]():
            if name not in names:
                with suppress(AttributeError):
                    names[name] = getattr(self, name)
        return names


def full_when_listed(package: str) -> None:
    """Let `vars(package)` and `package.__dict__[name]` find the names that were not used yet.

    Call it in a package with a `__getattr__` and a `__dir__`. Its attributes are a little slower
    to read thereafter."""
    sys.modules[package].__class__ = _LazyPackage


def missing_module(name: str, siblings: Iterable[str]) -> ModuleNotFoundError:
    """The error for `import torch.x` where flambeau has no such module."""
    parent, _, last = name.rpartition(".")
    lines = [f"No module named {name!r}", f"  flambeau  has no module {name} yet"]
    absent = _absent_module(name)
    near = [] if absent else near_names(last, siblings)
    lines += absent
    if near:
        lines.append(f"  near it   {', '.join(f'{parent}.{other}' for other in near)}")
    return ModuleNotFoundError("\n".join(lines), name=name)
