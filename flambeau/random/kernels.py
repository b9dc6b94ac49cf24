"""Compiles the fills at first use and calls them.

Keeps     a fill runs at once, on the calling thread, holding its generator's lock: another thread
          with the same generator waits, as in torch. Long fills come in pieces, so that Python
          can handle signals in between.
Touches   native/ and devices.cpu.jit at first use, ctypes.
Not here  what the arguments mean (native/), the checks (fills.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from flambeau.random.generator import Generator

Kernel = Callable[[bytes, int, int, int], None]

_FORM: Final = (ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
# One call keeps the GIL: giving it up costs more than a small fill. The other gives it up.
_SHORT: Final = ctypes.PYFUNCTYPE(None, *_FORM)
_LONG: Final = ctypes.CFUNCTYPE(None, *_FORM)
_LONG_ELEMENTS: Final = 4096
# A multiple of sixteen, so that a cut changes nothing of a normal fill's blocks; some 20 ms.
PIECE_ELEMENTS: Final = 1 << 22

_kernels: dict[str, tuple[Kernel, Kernel]] = {}


def kernel(name: str) -> tuple[Kernel, Kernel]:
    """The fill called `name`, for short runs and for long ones."""
    from flambeau.devices.cpu.jit import compile_functions
    from flambeau.random.native.catalogue import text_of

    full_name, text = text_of(name)
    address = compile_functions({full_name: text})[full_name]
    found = _kernels[name] = (_SHORT(address), _LONG(address))
    return found


def run(
    name: str,
    generator: Generator,
    arguments: Struct,
    address: int,
    count: int,
    *values: float,
) -> None:
    """Fill `count` elements at `address`. `arguments` packs the state's address, the target,
    the count and the `values`: the dtype's code and the fill's own words."""
    found = _kernels.get(name) or kernel(name)
    packed = arguments.pack(generator.address, address, count, *values)
    with generator.lock:
        found[count > _LONG_ELEMENTS](packed, 0, 1, 0)


def pieces(count: int) -> Iterator[tuple[int, int]]:
    """(first element, how many) of each piece; none but a whole fill is under sixteen."""
    first = 0
    while count - first >= 2 * PIECE_ELEMENTS:
        yield first, PIECE_ELEMENTS
        first += PIECE_ELEMENTS
    yield first, count - first
