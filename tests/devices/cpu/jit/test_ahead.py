"""Texts compiled beside the program; the program may end or fork at any time."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Any

import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.jit.ahead import Ahead
from tests.devices.cpu.native_support import function, in_new_process


def texts(count: int) -> dict[str, str]:
    """Functions that take LLVM some milliseconds each."""
    sums = "".join(f"  %v{k} = add i64 %v{k - 1}, %x\n" for k in range(1, 400))
    return {
        f"test_ahead_{n}": f"define i64 @test_ahead_{n}(i64 %x) {{\n  %v0 = add i64 %x, {n}\n"
        f"{sums}  ret i64 %v399\n}}\n"
        for n in range(count)
    }


IMPORTS = """
import os, time
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.jit.ahead import Ahead
from tests.devices.cpu.jit.test_ahead import texts
"""


@pytest.fixture
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CONFIG, "cache_dir", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_empty_folder")
def test_others_are_compiled_in_between() -> None:
    given = texts(12)
    ahead = Ahead(given)
    one = "define i64 @test_between(i64 %x) {\n  ret i64 %x\n}\n"
    compiled = jit.compile_functions({"test_between": one})
    assert function(compiled["test_between"], ctypes.c_int64, result=ctypes.c_int64)(5) == 5
    until = time.monotonic() + 60
    while not ahead.is_over() and time.monotonic() < until:
        time.sleep(0.01)
    assert ahead.is_over()
    before = jit.STATS.compiled
    assert len(jit.compile_functions(given)) == 12
    assert jit.STATS.compiled == before
    jit.release([*given, "test_between"])


@pytest.mark.usefixtures("_empty_folder")
def test_a_wrong_text_is_left_to_who_needs_it() -> None:
    ahead = Ahead({"test_wrong_ahead": "define nothing"})
    ahead._thread.join(60)
    assert ahead.is_over()
    with pytest.raises(RuntimeError, match="is not LLVM"):
        jit.compile_functions({"test_wrong_ahead": "define nothing"})


def test_the_thread_itself_may_ask() -> None:
    """As a finalizer does that the collector happens to run on it."""
    said: list[bool] = []
    made: list[Ahead] = []

    class Texts(dict[str, str]):
        def items(self) -> Any:
            until = time.monotonic() + 60
            while not made and time.monotonic() < until:
                time.sleep(0.001)
            said.append(made[0].is_over())
            return ()

    made.append(Ahead(Texts()))
    made[0]._thread.join(60)
    assert said == [False]
    assert made[0].is_over()


def test_a_program_ends_in_the_middle(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    code = IMPORTS + (
        "ahead = Ahead(texts(200))\n"
        f"while not os.listdir({str(folder)!r}):\n"
        "    time.sleep(0.005)\n"
        "print('end')\n"
    )
    folder.mkdir(mode=0o700)
    assert in_new_process(code, FLAMBEAU_CACHE_DIR=str(folder)) == "end\n"
    assert 1 <= len(list(folder.glob("*.kernel"))) < 200


def test_a_child_goes_on_without_the_thread(tmp_path: Path) -> None:
    code = IMPORTS + (
        "given = texts(30)\n"
        "ahead = Ahead(given)\n"
        "if (child := os.fork()) == 0:\n"
        "    assert ahead.is_over()\n"
        "    assert len(jit.compile_functions(given)) == 30\n"
        "    os._exit(0)\n"
        "print(os.waitpid(child, 0)[1], len(jit.compile_functions(given)))\n"
    )
    assert in_new_process(code, FLAMBEAU_CACHE_DIR=str(tmp_path / "cache")) == "0 30\n"
