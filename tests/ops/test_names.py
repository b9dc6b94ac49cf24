"""The table of operators' names says what the operators say."""

import subprocess
import sys
from pathlib import Path

import pytest

from flambeau.ops import REGISTRY, names
from flambeau.ops.define import Elementwise, operator

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "recorded" / "record_names.py"


def run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def test_the_table_is_up_to_date():
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(RECORD.parent)!r}]\n"
        "import record_names\n"
        "print(record_names.text(record_names.operators()), end='')"
    )
    done = run(code)
    present = (ROOT / "flambeau" / "ops" / "names.py").read_text(encoding="utf-8")
    assert done.stdout == present, "run python tests/recorded/record_names.py"


def test_one_file_is_imported_for_one_operator():
    code = (
        "import sys; from flambeau.ops import REGISTRY; REGISTRY['add']\n"
        "print(*[m for m in sys.modules if m.startswith('flambeau.ops.') and m.count('.') == 3])"
    )
    done = run(code)
    assert done.stdout.split() == ["flambeau.ops.elementwise.arithmetic"]


def test_the_registry_holds_what_the_table_names():
    assert set(names.FILES) <= set(REGISTRY)
    assert "add" in REGISTRY
    assert "no_such_operator" not in REGISTRY
    assert REGISTRY.get("no_such_operator") is None
    with pytest.raises(KeyError):
        REGISTRY["no_such_operator"]


def test_a_program_may_register_operators_of_its_own():
    class Twice(Elementwise):
        """Its operand, doubled."""

        def formula(self, k, input):
            return k.add(input, input)

    operator("twice_for_a_test", aliases=("twice_again",))(Twice)
    try:
        assert "twice_for_a_test" in REGISTRY.added()
        assert "twice_for_a_test" in set(REGISTRY)
        with pytest.raises(ValueError, match="defined twice"):
            operator("twice_for_a_test")(Twice)
        with pytest.raises(ValueError, match="defined twice"):
            operator("sinh")(Twice)  # flambeau's, imported or not
    finally:
        del REGISTRY["twice_for_a_test"]
