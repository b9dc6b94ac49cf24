"""What bad input gets: torch's class and first sentence, at its line; nothing else changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import bad_input_support as cases
import pytest

import flambeau as torch
from flambeau.engine import stream

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "tests" / "recorded" / "bad_input.json").read_text())


@pytest.mark.parametrize("case", cases.CASES)
def test_bad_input_gets_torchs_error(case: str) -> None:
    """Class and first sentence as recorded from torch; tensors keep their values, work pending
    before the error is done, the next operation works."""
    x = torch.arange(3.0)
    pending = x * 2
    x.add_(1)
    names = {"torch": torch, "x": x, "w": torch.ones(3, requires_grad=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert cases.outcome(torch, case) == RECORDED[case]
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one was seen above
            eval(case, names)
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert pending.tolist() == [0.0, 2.0, 4.0]
    assert names["w"].tolist() == [1.0] * 3
    assert (x + 1).sum().item() == 9.0


def test_errors_come_at_their_line_not_at_the_flush() -> None:
    x = torch.arange(3.0)
    stream.current().synchronize("a test")
    for wrong in (
        lambda: x[torch.tensor([0, 3])],
        lambda: torch.gather(x, 0, torch.tensor([-4])),
        lambda: torch.nn.functional.embedding(torch.tensor([2]), torch.ones(2, 2)),
        lambda: x.scatter_(0, torch.tensor([3]), 1.0),
        lambda: x.index_add_(0, torch.tensor([3]), torch.ones(1)),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            wrong()
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_an_index_in_range_stays_pending() -> None:
    """Bounds that follow from how an index was made are not looked for in memory."""
    x = torch.rand(10)
    index = x.argmax() % 5
    y = x[index.reshape(1)]
    assert y._storage.segment is not None
    assert y.item() == x.tolist()[int(index)]


# The surroundings ---------------------------------------------------------------------------


def script(text: str, **environment: str | None) -> tuple[str, str]:
    """What a program says, and says of errors, under these variables (None: without it)."""
    names = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name, value in environment.items():
        if value is None:
            names.pop(name, None)
        else:
            names[name] = value
    done = subprocess.run(
        [sys.executable, "-c", text], env=names, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, done.stderr


COMPUTE = """
import flambeau as torch
x = torch.ones(40)
print(torch.tanh(x * 0).sum().item() + x.sum().item())
print((torch.exp(x * 0) @ x).item())
"""
ANSWER = "40.0\n40.0\n"


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """Kernels are compiled anew; it is said once."""
    file = tmp_path / "home"
    file.write_text("not a folder")
    said, errors = script(COMPUTE, HOME=str(file), XDG_CACHE_HOME=None, FLAMBEAU_CACHE_DIR=None)
    assert said == ANSWER
    assert errors.count("flambeau keeps no compiled kernels between runs") == 1
    assert "FLAMBEAU_CACHE_DIR" in errors


def test_no_home_at_all(tmp_path: Path) -> None:
    said, _ = script(COMPUTE, HOME=None, XDG_CACHE_HOME=str(tmp_path), FLAMBEAU_CACHE_DIR=None)
    assert said == ANSWER
    assert list((tmp_path / "flambeau").glob("*.kernel"))


def test_a_relative_cache_folder_is_where_the_process_started(tmp_path: Path) -> None:
    """A program that changes its folder leaves nothing in another."""
    for name in ("start", "other"):
        (tmp_path / name).mkdir()
    start = f"import os; os.chdir({str(tmp_path / 'start')!r})\n"
    go_on = COMPUTE.replace("x = ", f"os.chdir({str(tmp_path / 'other')!r})\nx = ")
    assert script(start + go_on, FLAMBEAU_CACHE_DIR="cache") == (ANSWER, "")
    assert list((tmp_path / "start" / "cache").glob("*.kernel"))
    assert not list((tmp_path / "other").iterdir())


def test_a_cache_folder_others_can_write(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    said, errors = script(COMPUTE, FLAMBEAU_CACHE_DIR=str(folder))
    assert said == ANSWER
    assert errors.count("flambeau keeps no compiled kernels") == 1
    assert "can be written by other users" in errors
    assert not list(folder.iterdir())


def test_a_cache_of_rubbish(tmp_path: Path) -> None:
    """Truncated and foreign files are compiled over, without a word."""
    folder = tmp_path / "cache"
    assert script(COMPUTE, FLAMBEAU_CACHE_DIR=str(folder)) == (ANSWER, "")
    files = sorted(folder.glob("*.kernel"))
    assert files
    for number, file in enumerate(files):
        content = file.read_bytes()
        file.write_bytes((b"", content[:-7], content[:40] + b"x" * 50, b"\0" * 5000)[number % 4])
    assert script(COMPUTE, FLAMBEAU_CACHE_DIR=str(folder)) == (ANSWER, "")
    assert script(COMPUTE, FLAMBEAU_CACHE_DIR=str(folder)) == (ANSWER, "")


def test_import_changes_nothing() -> None:
    """No threads, no signal handlers, no files, no heavy modules; the generator stays as it was."""
    text = """
import os, random, signal, sys, threading, warnings
files = set(os.listdir("/proc/self/fd"))
handlers = [signal.getsignal(n) for n in range(1, 32)]
random.seed(1); state = random.getstate()
interval, limit, filters = sys.getswitchinterval(), sys.getrecursionlimit(), list(warnings.filters)
hooks = sys.excepthook, sys.unraisablehook, sys.displayhook, list(sys.meta_path)
import flambeau
assert set(os.listdir("/proc/self/fd")) == files
assert handlers == [signal.getsignal(n) for n in range(1, 32)]
assert random.getstate() == state
assert (interval, limit) == (sys.getswitchinterval(), sys.getrecursionlimit())
assert hooks == (sys.excepthook, sys.unraisablehook, sys.displayhook, list(sys.meta_path))
assert warnings.filters == filters
assert threading.active_count() == 1
with open("/proc/self/status") as lines:
    assert "Threads:\\t1\\n" in lines.read()
for heavy in ("numpy", "llvmlite", "torch", "multiprocessing", "asyncio"):
    assert heavy not in sys.modules, heavy
print("same")
"""
    # Where Python keeps no bytecode, a finder that does is put before Python's own.
    said, errors = script(text, PYTHONDONTWRITEBYTECODE=None, PYTHONPYCACHEPREFIX=None)
    assert (said, errors) == ("same\n", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [("FLAMBEAU_THREADS", "many"), ("FLAMBEAU_VECTOR_BITS", "100"), ("FLAMBEAU_THREADS", "-1")],
)
def test_switches_that_mean_nothing(name: str, value: str) -> None:
    text = f"""
try:
    import flambeau
    flambeau.ones(3).sum().item()
except ValueError as error:
    print("{name}" in str(error) and "{value}" in str(error))
"""
    assert script(text, **{name: value})[0] == "True\n"
