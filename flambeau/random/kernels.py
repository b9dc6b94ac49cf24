"""Compiles the fills at first use and calls them.

Keeps     a fill runs at once, on the calling thread, holding its generator's lock: another thread
          with the same generator waits, as in torch. Long fills come in pieces, so that Python
          can handle signals in between.
Touches   native/ and devices.cpu.jit at first use, ctypes.
Not here  what the arguments mean (native/), the checks (fills.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
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
    from flambeau.devices.cpu.jit import LateText, compile_functions

    def make() -> str:
        from flambeau.random.native.catalogue import text_of

        return text_of(name, kernel_name)

    kernel_name = f"random_{name}"
    address = compile_functions({kernel_name: LateText(make, ("random/native",))})[kernel_name]
    found = _kernels[name] = (_SHORT(address), _LONG(address))
    return found


def run(
    name: str,
    generator: Generator,
    arguments: Struct,
    address: int,
    count: int,
    itemsize: int,
    *values: float,
) -> None:
    """Fill `count` elements at `address`. `arguments` packs the state's address, the target,
    the count and the `values`: the dtype's code and the fill's own words."""
    while count >= 2 * PIECE_ELEMENTS and itemsize:
        run(name, generator, arguments, address, PIECE_ELEMENTS, itemsize, *values)
        address += PIECE_ELEMENTS * itemsize
        count -= PIECE_ELEMENTS
    found = _kernels.get(name) or kernel(name)
    packed = arguments.pack(generator.address, address, count, *values)
    with generator.lock:
        found[count > _LONG_ELEMENTS](packed, 0, 1, 0)


def run_from(
    name: str,
    generator: Generator,
    arguments: Struct,
    addresses: tuple[int, ...],
    count: int,
    itemsize: int,
    *values: float,
) -> None:
    """The same with inputs: `addresses` are the target's and theirs, all of one item size.

    The fill's words are the dtype's code (the first of `values`), the inputs, the other values.
    """
    while True:
        many = PIECE_ELEMENTS if count >= 2 * PIECE_ELEMENTS else count
        target, *inputs = addresses
        run(name, generator, arguments, target, many, 0, values[0], *inputs, *values[1:])
        count -= many
        if not count:
            return
        addresses = tuple(address + many * itemsize for address in addresses)
