"""Generator: seeds, states, errors, copies; torch.random's functions over the default one."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading

import pytest

from flambeau import random as flambeau_random
from flambeau.base import dtypes
from flambeau.random import fills
from flambeau.random.generator import Generator, default_generator


def normal(generator: Generator) -> float:
    buffer = (ctypes.c_double * 8)()
    fills.fill_normal(generator, ctypes.addressof(buffer), 1, dtypes.float64)
    return buffer[0]


def words(generator: Generator, count: int = 5) -> tuple[int, ...]:
    return fills.draw_words(generator, count)


def test_default_seed_is_torchs() -> None:
    assert Generator().initial_seed() == 67280421310721
    assert str(Generator().device) == "cpu"
    assert Generator("cpu").initial_seed() == Generator(None).initial_seed()


def test_first_words_of_seed_42() -> None:
    """mt19937's published stream for this seed (NumPy's RandomState(42) too)."""
    assert words(Generator().manual_seed(42), 3) == (1608637542, 3421126067, 4083286876)


@pytest.mark.parametrize("seed", [0, 5, -1, -(2**63), 2**63, 2**64 - 1])
def test_initial_seed_is_64_bits(seed: int) -> None:
    assert Generator().manual_seed(seed).initial_seed() == seed % 2**64


def test_stream_depends_on_the_low_half_of_the_seed() -> None:
    assert words(Generator().manual_seed(9)) == words(Generator().manual_seed(9 + 2**32))


def test_seed_draws_from_the_system() -> None:
    generator = Generator()
    first, second = generator.seed(), generator.seed()
    assert first != second
    assert generator.initial_seed() == second


@pytest.mark.parametrize("seed", [-(2**63) - 1, 2**64])
def test_seed_out_of_range(seed: int) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        Generator().manual_seed(seed)


@pytest.mark.parametrize(("seed", "name"), [(True, "bool"), (1.5, "float"), ("a", "str")])
def test_seed_of_a_wrong_type(seed: object, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"manual_seed expected a long, but got {name}"):
        Generator().manual_seed(seed)  # type: ignore[arg-type]


def test_failed_seed_changes_nothing() -> None:
    generator = Generator().manual_seed(4)
    before = generator.state_bytes()
    with pytest.raises(ValueError, match="Overflow"):
        generator.manual_seed(2**70)
    assert generator.state_bytes() == before


@pytest.mark.parametrize(
    ("device", "says"),
    [("cuda", "Cannot get CUDA generator"), ("meta", "META device type not an accelerator"),
     (3, "Cannot access accelerator device"), ("tpu", "Expected one of cpu, cuda")],
)  # fmt: skip
def test_other_devices(device: object, says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        Generator(device)


def test_what_cpu_generators_lack() -> None:
    generator = Generator()
    with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
        generator.get_offset()
    with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
        generator.set_offset(4)
    with pytest.raises(NotImplementedError, match="graphsafe_get_state is not supported"):
        generator.graphsafe_get_state()


@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 1000])
@pytest.mark.parametrize("normals", [0, 1, 2])
def test_state_continues_the_stream(drawn: int, normals: int) -> None:
    """From anywhere, with and without a cached normal."""
    generator = Generator().manual_seed(2)
    fills.skip_words(generator, drawn)
    for _ in range(normals):
        normal(generator)
    state = generator.state_bytes()
    wanted = normal(generator), words(generator), normal(generator)
    other = Generator()
    other.set_state_bytes(state)
    assert other.initial_seed() == 2
    assert other.state_bytes() == state
    assert (normal(other), words(other), normal(other)) == wanted


def test_state_after_seeding_is_untwisted() -> None:
    """Seeded lazily or by the first fill: the same bytes, left 1, next 0."""
    generator = Generator().manual_seed(77)
    state = generator.state_bytes()
    assert struct.unpack_from("<QiiQ", state) == (77, 1, 1, 0)
    fills.skip_words(generator, 0)
    assert generator.state_bytes() == state


def changed(offset: int, form: str, value: int) -> bytes:
    state = bytearray(Generator().state_bytes())
    struct.pack_into(form, state, offset, value)
    return bytes(state)


@pytest.mark.parametrize(
    "state",
    [bytes(5056), changed(8, "<i", 0), changed(8, "<i", 625), changed(12, "<i", 0),
     changed(16, "<Q", 700), changed(24, "<Q", 2**40)],
)  # fmt: skip
def test_invalid_states(state: bytes) -> None:
    generator = Generator().manual_seed(6)
    before = generator.state_bytes()
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        generator.set_state_bytes(state)
    assert generator.state_bytes() == before


def test_state_of_a_wrong_size() -> None:
    says = (
        "Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 9"
    )
    with pytest.raises(RuntimeError, match=says):
        Generator().set_state_bytes(bytes(9))


def test_seeding_forgets_the_cached_normal() -> None:
    generator = Generator().manual_seed(1)
    first = normal(generator)
    generator.manual_seed(1)
    assert normal(generator) == first


@pytest.mark.parametrize(
    "copied",
    [Generator.clone_state, copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))],
)
def test_copies_go_on_by_themselves(copied) -> None:  # type: ignore[no-untyped-def]
    """Clones and pickles carry the cached normal and share nothing."""
    generator = Generator().manual_seed(5)
    normal(generator)
    other = copied(generator)
    assert other.state_bytes() == generator.state_bytes()
    assert normal(other) == normal(generator)
    words(other)
    assert other.state_bytes() != generator.state_bytes()


def test_default_generator() -> None:
    assert flambeau_random.default_generator is default_generator
    assert flambeau_random.manual_seed("12") is default_generator
    assert flambeau_random.initial_seed() == 12
    assert flambeau_random.seed() == flambeau_random.initial_seed()
    with pytest.raises(ValueError, match="invalid literal for int"):
        flambeau_random.manual_seed("twelve")


def test_fork_puts_the_stream_back() -> None:
    flambeau_random.manual_seed(3)
    normal(default_generator)
    before = default_generator.state_bytes()
    with contextlib.suppress(KeyError), flambeau_random.fork_rng():
        words(default_generator)
        raise KeyError
    assert default_generator.state_bytes() == before
    with flambeau_random.fork_rng(enabled=False):
        words(default_generator)
    assert default_generator.state_bytes() != before


def test_fork_of_other_devices() -> None:
    with flambeau_random.fork_rng(devices=[], device_type="xpu"):
        pass
    says = "Torch not compiled with CUDA enabled"
    with pytest.raises(AssertionError, match=says), flambeau_random.fork_rng(devices=[0]):
        pass


def test_seeding_and_states_load_no_llvm() -> None:
    code = (
        "import sys, flambeau.random as r; r.manual_seed(1); r.default_generator.state_bytes();"
        "sys.exit(any(m.split('.')[0] in ('llvmlite', 'numpy') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_another_thread_draws() -> None:
    """The child finds the default generator unlocked and whole."""
    done = threading.Event()

    def draw() -> None:
        while not done.is_set():
            words(default_generator, 100_000)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(10)  # a child that hangs must not outlive the test
                words(default_generator, 3)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()
