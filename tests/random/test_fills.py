"""Every fill against draws recorded from torch 2.13: values, and the state afterwards."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.random import fills, fills_sampled
from flambeau.random.generator import Generator

RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "random.json").read_text())
FORMATS = {"float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i",
           "int16": "h", "int8": "b", "uint8": "B", "bool": "B"}  # fmt: skip


def by_name(name: str) -> dtype:
    return dtypes.bool_ if name == "bool" else dtypes.by_name(name)


def packed(values: list[float], element: dtype) -> bytes:
    """Values in the dtype's storage format; all of the recorder's inputs but 0.05 and the like
    are exact, and those round alike."""
    if element is dtypes.bfloat16:
        bits = [struct.unpack("<I", struct.pack("<f", value))[0] for value in values]
        return b"".join(struct.pack("<H", (b + 0x7FFF + ((b >> 16) & 1)) >> 16) for b in bits)
    return struct.pack(f"<{len(values)}{FORMATS[element.name]}", *values)


def inputs(name: str, count: int, element: dtype) -> ctypes.Array[ctypes.c_char]:
    values = RECORDED["inputs"][name]
    data = packed([values[i % len(values)] for i in range(count)], element)
    return ctypes.create_string_buffer(data, len(data) + 512)


class Case:
    """One recorded draw, repeated here."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.draw, self.count, self.rest = recorded["draw"], recorded["count"], recorded["rest"]
        self.element = by_name(recorded["dtype"])
        self.wanted = zlib.decompress(base64.b64decode(recorded["values"]))
        self.state = recorded["state"]
        self.generator = Generator().manual_seed(recorded["seed"])
        one = ctypes.create_string_buffer(64)
        for _ in range(recorded["before"]):
            fills.fill_normal(self.generator, ctypes.addressof(one), 1, dtypes.float32)
        # The guard bytes behind the result must stay as they are.
        self.guarded = ctypes.create_string_buffer(b"\xa5" * (len(self.wanted) + 512))
        self.address = ctypes.addressof(self.guarded)

    def run(self) -> bytes:
        DRAWS[self.draw](self)
        raw = self.guarded.raw[:-1]
        assert raw[len(self.wanted) :] == b"\xa5" * 512, "wrote past the end"
        return raw[: len(self.wanted)]

    def common(self) -> tuple[Any, ...]:
        return self.generator, self.address, self.count, self.element


def simple(fill: Callable[..., None]) -> Callable[[Case], None]:
    return lambda case: fill(*case.common(), *case.rest)


def from_input(fill: Callable[..., None], name: str) -> Callable[[Case], None]:
    def run(case: Case) -> None:
        source = inputs(name, case.count, case.element)
        fill(*case.common(), ctypes.addressof(source), *case.rest)

    return run


def draw_random(case: Case) -> None:
    low, high = case.rest if case.rest else (None, None)
    fills.fill_integers(*case.common(), fills.random_bounds(case.element, low, high))


def draw_bernoulli(case: Case) -> None:
    fills.fill_bernoulli(case.generator, case.address, case.count, *case.rest)
    spread(case)


def draw_bernoulli_each(case: Case) -> None:
    # The 16-bit formats' chances are rounded to them, then compared as float32.
    kind = dtypes.float64 if case.element is dtypes.float64 else dtypes.float32
    rounded = unpacked(bytes(inputs("chances", case.count, case.element)), case.element)
    data = packed(rounded[: case.count], kind)
    source = ctypes.create_string_buffer(data, len(data) + 512)
    address = ctypes.addressof(source)
    fills.fill_bernoulli_each(case.generator, case.address, case.count, address, kind)
    spread(case)


def spread(case: Case) -> None:
    """Bytes 0 and 1 as the case's dtype, what the tensor room's cast does."""
    values = [float(byte) for byte in case.guarded.raw[: case.count]]
    ctypes.memmove(case.address, packed(values, case.element), len(case.wanted))


def draw_binomial(case: Case) -> None:
    counts = inputs("counts", case.count, case.element)
    chances = inputs("chances", case.count, case.element)
    addresses = ctypes.addressof(counts), ctypes.addressof(chances)
    fills_sampled.fill_binomial(*case.common(), *addresses)


def draw_dirichlet(case: Case) -> None:
    shapes = inputs("shapes", 6 * case.count, case.element)
    fills_sampled.fill_dirichlet(
        case.generator, case.address, case.count, 6, case.element, ctypes.addressof(shapes)
    )


def draw_multinomial(case: Case) -> None:
    kind = dtypes.float64 if case.element is dtypes.float64 else dtypes.float32
    weights = inputs("weights", 7 * case.count, kind)
    fills_sampled.fill_multinomial(
        case.generator, case.address, case.count, 7, *case.rest, kind, ctypes.addressof(weights)
    )


DRAWS: dict[str, Callable[[Case], None]] = {
    "uniform": simple(fills.fill_uniform),
    "normal": simple(fills.fill_normal),
    "strided_normal": lambda case: fills.fill_normal(*case.common(), *case.rest, contiguous=False),
    "exponential": simple(fills_sampled.fill_exponential),
    "geometric": simple(fills_sampled.fill_geometric),
    "cauchy": simple(fills_sampled.fill_cauchy),
    "log_normal": simple(fills_sampled.fill_log_normal),
    "random": draw_random,
    "permutation": lambda case: fills.fill_permutation(case.generator, case.address, case.count),
    "bernoulli": draw_bernoulli,
    "bernoulli_each": draw_bernoulli_each,
    "poisson": from_input(fills_sampled.fill_poisson, "rates"),
    "binomial": draw_binomial,
    "gamma": from_input(fills_sampled.fill_gamma, "shapes"),
    "dirichlet": draw_dirichlet,
    "multinomial": draw_multinomial,
    "rrelu": from_input(fills_sampled.fill_rrelu_noise, "mixed"),
}


def unpacked(data: bytes, element: dtype) -> list[float]:
    if element is dtypes.bfloat16:
        bits = struct.unpack(f"<{len(data) // 2}H", data)
        return [struct.unpack("<f", struct.pack("<I", b << 16))[0] for b in bits]
    size = element.itemsize
    kind = FORMATS[element.name]
    return list(struct.unpack(f"<{len(data) // size}{kind}", data[: len(data) // size * size]))


@pytest.mark.parametrize(
    "recorded",
    RECORDED["cases"],
    ids=lambda c: f"{c['draw']}-{c['dtype']}-{c['count']}-{c['rest']}-{c['before']}",
)
def test_draw(recorded: dict[str, Any]) -> None:
    """Bytes equal torch's; so does the state."""
    case = Case(recorded)
    got = case.run()
    assert got == case.wanted, differences(got, case.wanted, case.element)
    state = case.generator.state_bytes()
    assert hashlib.sha256(state).hexdigest()[:16] == recorded["state"]


def differences(got: bytes, wanted: bytes, element: dtype) -> str:
    pairs = zip(unpacked(got, element), unpacked(wanted, element), strict=True)
    different = [(i, g, w) for i, (g, w) in enumerate(pairs) if g != w]
    return f"{len(different)} differ: {different[:5]}"
