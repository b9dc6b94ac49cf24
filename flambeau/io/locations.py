"""Where the storages of a file go: map_location.

Keeps     torch's rules: a device for all, a dict from the file's locations, or a function that is
          asked for each storage.
Touches   tensor's storages, devices.
Not here  the files."""

from __future__ import annotations

from typing import Any

from flambeau.base.devices import META, Device
from flambeau.base.errors import helped
from flambeau.base.layout import contiguous
from flambeau.tensor import creation
from flambeau.tensor.public.typed.storages import TypedStorage, UntypedStorage

_ON_CPU = (
    "If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)
_ABSENT = ("cuda", "xpu")
_UNREGISTERED = ("hpu", "privateuseone")


def restored(storage: TypedStorage, location: str, map_location: Any) -> TypedStorage:
    """The storage where it is wanted; `location` is where the file says it was."""
    if map_location is None:
        return _placed(storage, location)
    if isinstance(map_location, dict):
        return _placed(storage, map_location.get(location, location))
    if isinstance(map_location, (str, Device)):
        return _placed(storage, str(map_location))
    found = map_location(storage.untyped(), location)
    if found is None:
        return _placed(storage, location)
    if not isinstance(found, UntypedStorage):
        raise TypeError(
            helped(
                "TypedStorage.__init__ received an invalid combination of arguments.",
                given=f"a map_location that returned a {type(found).__name__}",
                expected="an UntypedStorage, or None for where the file says",
            )
        )
    return TypedStorage.of(found, storage.dtype)


def _placed(storage: TypedStorage, location: str) -> TypedStorage:
    kind = str(location).partition(":")[0]
    if kind == "cpu":
        return storage
    if kind == "meta":
        given = contiguous((len(storage),), storage.dtype, META)
        return TypedStorage(creation.empty_layout(given))
    if kind in _ABSENT:
        name = kind.upper()
        raise RuntimeError(
            f"Attempting to deserialize object on a {name} device but torch.{kind}.is_available() "
            f"is False. {_ON_CPU}"
        )
    if kind in _UNREGISTERED:
        raise RuntimeError(f"The {kind.upper()} device module is not registered. {_ON_CPU}")
    if kind == "mps":
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage "
        f"(tagged with {location})"
    )
