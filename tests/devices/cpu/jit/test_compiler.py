"""Functions that texts share are compiled once, and run the same from wherever they came."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import jit
from flambeau.devices.cpu.jit import compiler
from tests.devices.cpu.native_support import function, named

ROOT = """
declare double @cbrt(double)
define internal fastcc double @root(double %x) noinline {{
  %r = call double @cbrt(double %x)
  %s = fmul double %r, 0x3FF199999999999A
  ret double %s
}}
define internal fastcc double @twice(double %x, ptr %f) noinline {{
  %r = call fastcc double %f(double %x)
  %s = fadd double %r, %r
  ret double %s
}}
define double @{name}(double %x) {{
  %plus = fadd double %x, PLUS
  %y = call fastcc double @twice(double %plus, ptr @root)
  ret double %y
}}
"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts as LLVM gets them."""
    monkeypatch.setattr(CONFIG, "cache_dir", str(tmp_path / "cache"))
    texts: list[str] = []
    emit = compiler._emit

    def noted(name: str, text: str) -> bytes:
        texts.append(text)
        return emit(name, text)

    monkeypatch.setattr(compiler, "_emit", noted)
    monkeypatch.setattr(compiler, "_parts", {})
    return texts


def run(text: str, value: float) -> float:
    name, text = named("test_shared", text)
    native = function(
        jit.compile_functions({name: text})[name], ctypes.c_double, result=ctypes.c_double
    )
    result = native(value)
    jit.release([name])
    assert isinstance(result, float)
    return result


def test_a_shared_function_is_compiled_once(compiled: list[str]) -> None:
    assert run(ROOT.replace("PLUS", "1.0"), 26.0) == pytest.approx(6.6)
    assert run(ROOT.replace("PLUS", "2.0"), 25.0) == pytest.approx(6.6)
    first, second = compiled
    assert "define hidden fastcc double @root" in first
    assert "declare hidden fastcc double @root" in second
    assert second.count("ret double") == 1


def test_a_function_of_the_same_name_is_another_one(compiled: list[str]) -> None:
    assert run(ROOT.replace("PLUS", "1.0"), 26.0) == pytest.approx(6.6)
    other = ROOT.replace("0x3FF199999999999A", "2.0")
    assert run(other.replace("PLUS", "1.0"), 26.0) == pytest.approx(12.0)
    assert "define hidden fastcc double @root" in compiled[1]
    assert "declare hidden fastcc double @twice" in compiled[1]


def test_an_image_holds_only_what_its_function_reaches(compiled: list[str]) -> None:
    padding = "\n".join(f"  %p{k} = fmul double %x, {k}.5" for k in range(3)) + "\n"
    stores = "".join(f"  store volatile double %p{k % 3}, ptr %at\n" for k in range(400))
    large = ROOT.replace("PLUS", "1.0").replace(
        "  %plus =", f"  %at = alloca double\n{padding}{stores}  %plus ="
    )
    name, text = named("test_large", large)
    first = compiler.compiled_image(name, text)
    name, text = named("test_small", ROOT.replace("PLUS", "2.0"))
    second = compiler.compiled_image(name, text)
    assert len(first.code) > 2000
    assert len(second.code) < 500


def test_parts_are_forgotten_before_they_are_many(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "_MAX_PARTS", 1)
    for plus in (1.0, 2.0):
        assert run(ROOT.replace("PLUS", str(plus)), 27.0 - plus) == pytest.approx(6.6)
    assert all("define hidden fastcc double @root" in text for text in compiled)
