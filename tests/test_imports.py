"""What importing flambeau loads: few modules, no operator, nothing that only some programs need."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {
    "numpy", "llvmlite", "mpmath", "inspect", "ast", "dataclasses", "traceback", "tokenize", "dis",
    "hashlib", "pathlib", "tempfile", "zipfile", "pickle", "subprocess", "difflib", "sysconfig",
    "multiprocessing", "json", "logging",
}  # fmt: skip
# Rooms that a program may not need, and what only planning and compiling need.
LATE = (
    "flambeau.ops.", "flambeau.codegen", "flambeau.nn", "flambeau.optim", "flambeau.random",
    "flambeau.utils", "flambeau.io", "flambeau.debug", "flambeau.cli",
    "flambeau.engine.planning.plan", "flambeau.engine.planning.lowering",
    "flambeau.devices.cpu.jit", "flambeau.devices.cpu.runner",
    "flambeau.gradients.backward", "flambeau.tensor.public",
)  # fmt: skip
OPERATORS_TABLES = {"flambeau.ops.define", "flambeau.ops.names"}
MOST_MODULES = 72


def loaded(code):
    """Modules that a program has after its end, beyond those Python starts with."""
    show = "import sys; before = set(sys.modules)\n{}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", show.format(code)], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def late(modules):
    return {m for m in modules if m.startswith(LATE)} - OPERATORS_TABLES


def test_importing_flambeau_is_light():
    found = loaded("import flambeau")
    assert found & HEAVY == set()
    assert late(found) == set()
    assert len([m for m in found if m.startswith("flambeau")]) <= MOST_MODULES


def test_a_sum_needs_no_other_operators_and_no_compiler():
    code = "import flambeau as torch; x = torch.ones(3); assert (x + x).sum().item() == 6"
    loaded(code)  # compiles what is not on disk
    found = loaded(code)
    assert found & {"numpy", "llvmlite", "mpmath"} == set()
    operators = {m for m in found if m.startswith("flambeau.ops.") and m.count(".") == 3}
    assert operators == {
        "flambeau.ops.creation.constants", "flambeau.ops.elementwise.arithmetic",
        "flambeau.ops.reduction.sums",
    }  # fmt: skip
    assert not any(m.startswith("flambeau.codegen.nest_text") for m in found)


def test_importing_the_rooms_loads_no_layer_and_no_optimizer():
    found = loaded("import flambeau.nn, flambeau.optim, flambeau.nn.functional")
    assert found & {"numpy", "llvmlite"} == set()
    assert not any(m.startswith(("flambeau.nn.modules.", "flambeau.optim.")) for m in found)
