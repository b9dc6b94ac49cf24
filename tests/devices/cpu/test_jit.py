"""Compiling, loading and releasing kernels; what object files may hold."""

from __future__ import annotations

import ctypes
import math
import threading
import warnings
from pathlib import Path

import pytest

from flambeau.base.config import CONFIG
from flambeau.devices.cpu import features, jit
from flambeau.devices.cpu.jit import object_cache
from flambeau.devices.cpu.jit.image import Image
from tests.devices.cpu.native_support import function, in_new_process, multiply_add, named

COUNTER = iter(range(10**9))

ADD = """
define i64 @{name}(i64 %x) {{
  %y = add i64 %x, NUMBER
  ret i64 %y
}}
"""


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(CONFIG, "cache_dir", str(tmp_path / "cache"))
    return tmp_path / "cache"


def adder(number: int) -> tuple[str, str]:
    return named("test_add", ADD.replace("NUMBER", str(number)))


def call(address: int, value: int) -> object:
    return function(address, ctypes.c_int64, result=ctypes.c_int64)(value)


def test_compiles_once_then_loads_then_remembers(empty_folder: Path) -> None:
    texts = dict(adder(1000 + k) for k in range(5))
    start = jit.STATS.compiled, jit.STATS.loaded
    first = jit.compile_functions(texts)
    assert (jit.STATS.compiled, jit.STATS.loaded) == (start[0] + 5, start[1])
    assert [call(first[name], 7) for name in texts] == [1007 + k for k in range(5)]
    assert jit.compile_functions(texts) == first
    assert (jit.STATS.compiled, jit.STATS.loaded) == (start[0] + 5, start[1])
    assert len(list(empty_folder.glob("*.kernel"))) == 5

    jit.release(texts)
    again = jit.compile_functions(texts)
    assert (jit.STATS.compiled, jit.STATS.loaded) == (start[0] + 5, start[1] + 5)
    assert [call(again[name], 7) for name in texts] == [1007 + k for k in range(5)]


def test_code_stays_until_the_last_name_of_its_link_is_released(empty_folder: Path) -> None:
    (one, one_text), (two, two_text) = adder(1), adder(2)
    found = jit.compile_functions({one: one_text, two: two_text})
    jit.release([one, "never heard of"])
    assert call(found[two], 5) == 7
    jit.release([two])


@pytest.mark.parametrize("damage", ["truncate", "other", "empty image"])
def test_damaged_files_are_compiled_again(empty_folder: Path, damage: str) -> None:
    name, text = adder(3)
    jit.compile_functions({name: text})
    jit.release([name])
    (path,) = empty_folder.glob("*.kernel")
    if damage == "truncate":
        path.write_bytes(path.read_bytes()[:-3])
    elif damage == "other":
        path.write_bytes(b"something else")
    else:
        object_cache.ObjectCache(empty_folder).store(path.stem, b"\1" * 40)
    compiled = jit.STATS.compiled
    assert call(jit.compile_functions({name: text})[name], 1) == 4
    assert jit.STATS.compiled == compiled + 1
    jit.release([name])
    assert call(jit.compile_functions({name: text})[name], 1) == 4
    assert jit.STATS.compiled == compiled + 1
    jit.release([name])


def test_another_cpu_level_or_llvm_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {jit._key("name", "text"), jit._key("name", "other text")}
    with monkeypatch.context() as patch:
        patch.setattr(features, "cpu_identity", lambda: "another CPU")
        keys.add(jit._key("name", "text"))
    with monkeypatch.context() as patch:
        patch.setattr(jit, "_llvm_identity", lambda: "another LLVM")
        keys.add(jit._key("name", "text"))
    with monkeypatch.context() as patch:
        patch.setattr(CONFIG, "codegen_level", 3)
        keys.add(jit._key("name", "text"))
    assert len(keys) == 5


def test_nothing_is_kept_where_the_folder_is_not_ours(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "_warned", False)
    empty_folder.mkdir()
    empty_folder.chmod(0o777)
    name, text = adder(4)
    with pytest.warns(UserWarning, match="keeps no compiled kernels"):
        assert call(jit.compile_functions({name: text})[name], 1) == 5
    jit.release([name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(jit.compile_functions({name: text})[name], 1) == 5
    jit.release([name])
    assert not list(empty_folder.iterdir())


def test_constants_tables_calls_and_branches() -> None:
    """What needs relocations: pool constants, arrays, addresses in arrays, a switch, functions
    inside the text and outside it, in libc and in libm."""
    name, text = named(
        "test_relocations",
        """
@table = private constant [4 x double] [double 0.5, double 1.5, double 2.5, double 3.5]
@inner = internal constant i64 40
@pointers = private constant [2 x ptr] [ptr @inner, ptr @helper]
declare i64 @labs(i64)
declare double @cbrt(double)
define internal i64 @helper(i64 %x) noinline {{
  %y = mul i64 %x, 3
  ret i64 %y
}}
define double @{name}(i64 %n, double %x) {{
entry:
  %at = getelementptr double, ptr @table, i64 %n
  %constant = load double, ptr %at
  %scaled = fmul double %constant, 0x3FF123456789ABCD
  %minus = sub i64 0, %n
  %positive = call i64 @labs(i64 %minus)
  %root = call double @cbrt(double %x)
  %value_at = load ptr, ptr @pointers
  %forty = load volatile i64, ptr %value_at
  %slot = getelementptr ptr, ptr @pointers, i64 1
  %indirect = load volatile ptr, ptr %slot
  %tripled = call i64 %indirect(i64 %positive)
  switch i64 %n, label %other [ i64 0, label %a  i64 1, label %b  i64 2, label %c
                                i64 3, label %d  i64 4, label %e  i64 5, label %f ]
a: br label %join
b: br label %join
c: br label %join
d: br label %join
e: br label %join
f: br label %join
other: br label %join
join:
  %chosen = phi i64 [10, %a], [21, %b], [35, %c], [41, %d], [57, %e], [60, %f], [99, %other]
  %sum1 = add i64 %chosen, %tripled
  %sum2 = add i64 %sum1, %forty
  %whole = sitofp i64 %sum2 to double
  %sum3 = fadd double %whole, %scaled
  %sum4 = fadd double %sum3, %root
  ret double %sum4
}}
""",
    )
    address = jit.compile_functions({name: text})[name]
    native = function(address, ctypes.c_int64, ctypes.c_double, result=ctypes.c_double)
    factor = float.fromhex("0x1.123456789abcdp+0")
    for n, chosen in enumerate((10, 21, 35, 41)):
        expected = float(chosen + 3 * n + 40) + (n + 0.5) * factor + 3.0
        assert math.isclose(native(n, 27.0), expected, rel_tol=1e-15)  # type: ignore[arg-type]


def test_vectors_of_512_bits_run_everywhere() -> None:
    name, text = named(
        "test_wide",
        """
define void @{name}(ptr %at) {{
  %v = load <16 x float>, ptr %at, align 4
  %w = fmul <16 x float> %v, splat (float 3.0)
  store <16 x float> %w, ptr %at, align 4
  ret void
}}
""",
    )
    data = (ctypes.c_float * 16)(*range(16))
    function(jit.compile_functions({name: text})[name], ctypes.c_void_p)(ctypes.addressof(data))
    assert list(data) == [3.0 * k for k in range(16)]


def test_fused_multiply_add_only_where_written() -> None:
    name, text = named(
        "test_no_contraction",
        """
define double @{name}(double %x, double %y, double %z) {{
  %p = fmul double %x, %y
  %s = fadd double %p, %z
  ret double %s
}}
""",
    )
    native = function(
        jit.compile_functions({name: text})[name], *[ctypes.c_double] * 3, result=ctypes.c_double
    )
    x = 1.0 + 2.0**-30
    assert native(x, x, -(1.0 + 2.0**-29)) == x * x - (1.0 + 2.0**-29) == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define void @{name}() { ret i32 0 }", "is not LLVM"),
        ("define void @another() { ret void }", "does not define"),
        (
            (
                "@state = global i64 1 define i64 @{name}() "
                "{ %x = load i64, ptr @state  store i64 2, ptr @state  ret i64 %x }"
            ),
            "variable data",
        ),
        (
            (
                "declare void @no_such_function_anywhere() define void @{name}() "
                "{ call void @no_such_function_anywhere()  ret void }"
            ),
            "no_such_function_anywhere, which this process does not have",
        ),
    ],
)
def test_what_cannot_be_a_kernel_says_why(text: str, message: str, empty_folder: Path) -> None:
    name = f"test_wrong_{next(COUNTER)}"
    with pytest.raises(RuntimeError, match=message):
        jit.compile_functions({name: text.replace("{name}", name)})
    assert call(jit.compile_functions(dict([adder(9)]))[adder(9)[0]], 1) == 10


def test_images_survive_packing() -> None:
    image = Image(b"code" * 9, 16, ((8, 4), (16, 12)), ((24, "memcpy"), (32, "syscall")))
    assert Image.unpack(image.pack()) == image
    plain = Image(b"\xc3", 0, (), ())
    assert Image.unpack(plain.pack()) == plain
    for end in range(len(image.pack())):
        with pytest.raises(ValueError, match="image"):
            Image.unpack(image.pack()[:end])


def test_threads_compile_at_once() -> None:
    texts = [dict(adder(500 + k) for k in range(start, start + 6)) for start in range(0, 8, 2)]
    found: list[dict[str, int]] = []

    def work(mine: dict[str, str]) -> None:
        found.append(jit.compile_functions(mine))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    merged: dict[str, int] = {}
    for one in found:
        for name, address in one.items():
            assert merged.setdefault(name, address) == address


def test_a_warm_process_never_imports_llvm(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tests.devices.cpu import native_support\n"
        "from array import array\n"
        "from flambeau.devices.cpu import jit, runner\n"
        "data = native_support.Words(8)\n"
        "arguments = array('q', [data.address, 1, 5])\n"
        "native_support.run_single(native_support.multiply_add(), arguments, 8, 8)\n"
        "print(list(data.words), jit.STATS.compiled, 'llvmlite' in sys.modules)\n"
    )
    folder = str(tmp_path / "cache")
    assert in_new_process(code, FLAMBEAU_CACHE_DIR=folder).split("] ")[1] == "2 True\n"
    assert in_new_process(code, FLAMBEAU_CACHE_DIR=folder).split("] ")[1] == "0 False\n"
    assert multiply_add()


def test_a_kept_function_needs_no_text(empty_folder: Path) -> None:
    name, text = adder(3)
    made = []

    def make() -> str:
        made.append(name)
        return text

    late = {name: jit.LateText(make, ("codegen",))}
    assert jit.load_functions(late) is None
    for _ in range(3):
        assert call(jit.compile_functions(late)[name], 1) == 4
        jit.release([name])
    assert len(made) == 1
    found = jit.load_functions(late)
    assert found is not None
    assert call(found[name], 2) == 5
    jit.release([name])
    other = {name: jit.LateText(make, ("base",))}  # of other sources
    assert jit.load_functions(other) is None


def test_sources_are_told_apart() -> None:
    assert jit.sources_identity(("codegen",)) != jit.sources_identity(("base",))
    assert jit.sources_identity(("no_such_folder",)) == ""


def test_sources_written_after_they_were_imported_have_no_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What runs is not what the files say now."""
    unremembered = jit.sources_identity.__wrapped__
    assert unremembered(("base",)) == jit.sources_identity(("base",)) != ""
    monkeypatch.setattr(jit, "IMPORTED_AT", 0.0)
    assert unremembered(("base",)) == ""
