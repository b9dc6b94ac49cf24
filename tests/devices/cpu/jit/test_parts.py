"""Which functions of a module's text may be shared with others, and what tells them apart."""

from __future__ import annotations

import pytest

from flambeau.devices.cpu.jit.parts import Module

INNER = "define internal i64 @inner(i64 %x) {\n  %y = add i64 %x, 1\n  ret i64 %y\n}\n"
OUTER = "define internal i64 @outer(i64 %x) {\n  %y = call i64 @inner(i64 %x)\n  ret i64 %y\n}\n"
MAIN = "define i64 @main(i64 %x) {\n  %y = call i64 @outer(i64 %x)\n  ret i64 %y\n}\n"


def test_internal_functions_are_shared_and_the_entry_is_not() -> None:
    assert Module(INNER + OUTER + MAIN).digests.keys() == {"inner", "outer"}


def test_a_digest_covers_what_is_called() -> None:
    one = Module(INNER + OUTER + MAIN).digests
    other = Module(INNER.replace("%x, 1", "%x, 2") + OUTER + MAIN).digests
    assert one["inner"] != other["inner"]
    assert one["outer"] != other["outer"]
    assert Module("declare void @abort()\n" + MAIN + OUTER + INNER).digests == one


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("@table = private constant i64 3\n", "%y = load i64, ptr @table"),
        ("!0 = !{i32 1}\n", "%y = load i64, ptr null, !nontemporal !0"),
        ("", "%y = call i64 @main(i64 %x)"),
        ("", "%y = call i64 @outer(i64 %x)"),
    ],
)
def test_what_hangs_on_its_module_is_not_shared(head: str, line: str) -> None:
    inner = INNER.replace("%y = add i64 %x, 1", line)
    module = Module(head + inner + OUTER + MAIN)
    assert not module.digests
    assert module.text_without(()).count("define internal") == 2


def test_what_the_process_has_may_be_used() -> None:
    inner = INNER.replace("%y = add i64 %x, 1", "%y = call i64 @labs(i64 %x)")
    assert "inner" in Module("declare i64 @labs(i64)\n" + inner).digests
    inner = INNER.replace("%y = add i64 %x, 1", "%y = load i64, ptr @environ")
    assert "inner" in Module("@environ = external global i8\n" + inner).digests


def test_a_function_may_call_itself() -> None:
    inner = INNER.replace("%y = add i64 %x, 1", "%y = call i64 @inner(i64 %x)")
    assert Module(inner + MAIN).digests.keys() == {"inner"}


def test_known_functions_are_declared_and_the_others_can_be_taken_out() -> None:
    module = Module(INNER + OUTER + MAIN)
    text = module.text_without({"inner"})
    assert "declare hidden i64 @inner(i64 %x) \n" in text
    assert 'define hidden i64 @outer(i64 %x) section ".text.outer" {\n' in text
    assert MAIN in text
    assert "define internal" not in text


def test_functions_on_one_line_stay_where_they_are() -> None:
    text = "define internal i64 @one(i64 %x) { ret i64 %x }\n" + MAIN
    module = Module(text)
    assert not module.digests
    assert sorted(module.text_without(()).split("\n")) == sorted(text.split("\n"))
