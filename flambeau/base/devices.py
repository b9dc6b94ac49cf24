"""Device names: parsing, identity, torch's errors. No driver is touched.

Keeps     one object per (type, index); identity is equality inside flambeau; the device of
          tensors made without one, which `with device:` chooses for its block.
Touches   nothing.
Not here  which devices exist and what they can do (flambeau.devices)."""

from __future__ import annotations

from typing import Final, Self

from flambeau.base.errors import helped

# The device types torch 2.13 parses, in the order of its error message.
TYPES: Final = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga",
    "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class Device:
    """A device by name. `str()` is torch's spelling; `==` compares type and index.

    >>> device("cuda:1"), str(device("cpu")), device("meta").type
    (device(type='cuda', index=1), 'cpu', 'meta')
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __new__(  # noqa: PYI034 - the one of its type and index, made once
        cls, type: object, index: int | None = None
    ) -> Device:
        return device(type, index)

    def __init__(self, type: object, index: int | None = None) -> None:
        pass

    def __repr__(self) -> str:
        tail = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{tail})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[object, ...]:
        return (device, (self.type, self.index))

    def __enter__(self) -> Self:
        """Tensors made without a device are of this one until the block ends."""
        _replaced.append(DEFAULT[0])
        DEFAULT[0] = self
        return self

    def __exit__(self, *error: object) -> None:
        DEFAULT[0] = _replaced.pop()

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self


_INTERNED: dict[tuple[str, int | None], Device] = {}


def _interned(kind: str, index: int | None) -> Device:
    made = object.__new__(Device)
    made.type = kind
    made.index = index
    return _INTERNED.setdefault((kind, index), made)


def device(kind: object, index: int | None = None) -> Device:
    """Device from a name such as "cpu" or "cuda:0", an index, or a device.

    Raises   RuntimeError: no such type, or a bad index. TypeError: neither text, int nor device.
    """
    if isinstance(kind, Device):
        return kind if index is None else device(kind.type, index)
    if isinstance(kind, int) and not isinstance(kind, bool):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if not isinstance(kind, str):
        raise TypeError(
            helped(
                "device() received an invalid combination of arguments - got "
                f"({type(kind).__name__}), but expected one of:",
                expected="a device or its name",
            )
        )
    if index is not None and not isinstance(index, int):
        raise TypeError(
            f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}"
        )
    name, colon, tail = kind.partition(":")
    if name not in TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(TYPES)} device type at start of device string: {kind}"
        )
    if colon:
        if index is not None:
            raise RuntimeError(
                "type (string) must not include an index because index was passed explicitly: "
                f"{kind}"
            )
        if not tail.isdecimal() or (len(tail) > 1 and tail[0] == "0"):
            raise RuntimeError(f"Invalid device string: '{kind}'")
        index = int(tail)
    if index is not None and index < 0:
        raise RuntimeError(f"Device index must not be negative, got {index}")
    found = _INTERNED.get((name, index))
    return found if found is not None else _interned(name, index)


CPU: Final = device("cpu")
META: Final = device("meta")

# Device of tensors made without one, and those that the blocks entered so far have replaced.
DEFAULT: Final = [CPU]
_replaced: Final[list[Device]] = []
