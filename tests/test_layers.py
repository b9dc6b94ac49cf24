"""Rooms are stacked: a file imports from its own room and from those below, never upwards.

Imports inside functions count, and so do imports for type checkers only: a type that a lower room
needs to name is defined there (as a Protocol, if need be), or the rooms are cut wrongly.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest
from tree_support import parsed

PACKAGE = Path(__file__).resolve().parents[1] / "flambeau"

# Lowest first; rooms on one line stand beside each other and may use each other.
LAYERS = (
    ("base",),
    ("ops",),
    ("codegen",),
    ("devices",),
    ("engine",),
    ("gradients",),
    ("tensor",),
    ("autograd", "func", "nn", "optim", "utils", "random", "linalg", "fft", "special", "amp", "io",
     "cpu", "distributed", "distributions", "sparse", "backends", "cuda", "jit", "multiprocessing",
     "onnx", "profiler", "signal", "hub", "fx", "ao", "_dynamo",
     "_higher_order_ops", "_subclasses"),
    ("testing", "debug", "cli"),
)  # fmt: skip
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

# Files at the root are thin tables of names and may import all; only tools import them.
ROOT = "(root)"
RANK[ROOT] = RANK["cli"]

DEPENDENCIES = {"llvmlite", "numpy"}
# file -> package of flambeau[test] that it imports at first use: the oracle tests measure by
TEST_ONLY = {"codegen/exact_reader/functions.py": "mpmath"}
# file -> package of an extra that it imports at first use, and names where it is not installed
EXTRAS = {
    "hub/progress.py": "tqdm",
    "linalg/lapack.py": "scipy_openblas32",
    "utils/tensorboard/embedding.py": "tensorboard",
    "utils/tensorboard/summary.py": "tensorboard",
    "utils/tensorboard/writer.py": "tensorboard",
}
IMPORTERS = {"import_module", "__import__"}
# The oracle that measures ulps reads formulas with mpmath; only tests import it.
ORACLE = "codegen/exact_*.py"


def files():
    return sorted(p for p in PACKAGE.rglob("*.py") if "cli/path" not in p.as_posix())


def room_of(dotted):
    """The room a dotted name under flambeau lies in: 'flambeau.nn.init' -> 'nn'."""
    parts = dotted.split(".")
    if len(parts) > 1 and (PACKAGE / parts[1]).is_dir():
        return parts[1]
    return ROOT


@cache
def imports_of(path, package=PACKAGE):
    """[(line, dotted name)] of all the file imports, functions and type checking included."""
    return list(_imports_of(path, package))


def _imports_of(path, package):
    here = [package.name, *path.relative_to(package).with_suffix("").parts]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = here[: -node.level] if node.level else []
            dotted = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{dotted}.{alias.name}"
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) in IMPORTERS
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, str(node.args[0].value)


def upward_imports(path):
    """What is wrong with one file: a list of sentences."""
    own = path.relative_to(PACKAGE).parts
    room = own[0] if len(own) > 1 else ROOT
    if room == ROOT:
        return []
    wrong = []
    for line, name in imports_of(path):
        if name.split(".")[0] != "flambeau":
            continue
        imported = room_of(name)
        if RANK.get(imported, 0) > RANK[room]:
            wrong.append(f"{path.relative_to(PACKAGE)}:{line} ({room}) imports {name}")
    return wrong


def test_every_room_has_its_place():
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert rooms - RANK.keys() == set()


def test_imports_only_point_down():
    assert [sentence for path in files() for sentence in upward_imports(path)] == []


def test_an_upward_import_would_be_seen(tmp_path):
    """The check itself: in functions, under TYPE_CHECKING, relative, and by name."""
    package = tmp_path / "flambeau"
    file = package / "base" / "low.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from flambeau.engine.planning.plan import Plan\n"
        "def f():\n    import flambeau.tensor.tensor\n    from ..nn import init\n"
        "    from . import shapes\n    importlib.import_module('flambeau.cli')\n"
    )
    assert {name for _, name in imports_of(file, package)} == {
        "typing.TYPE_CHECKING",
        "flambeau.engine.planning.plan.Plan",
        "flambeau.tensor.tensor",
        "flambeau.nn.init",
        "flambeau.base.shapes",
        "flambeau.cli",
    }
    assert RANK[room_of("flambeau.engine.planning.plan.Plan")] > RANK["base"]
    assert room_of("flambeau.Tensor") == ROOT


def test_only_declared_packages_are_imported():
    foreign = {
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for path in files()
        for line, name in imports_of(path)
        if name.split(".")[0] not in DEPENDENCIES | {"flambeau"} | sys.stdlib_module_names
        and name != TEST_ONLY.get(path.relative_to(PACKAGE).as_posix())
        and name.split(".")[0] != EXTRAS.get(path.relative_to(PACKAGE).as_posix())
        and not (name.split(".")[0] == "mpmath" and path.match(ORACLE))
    }
    assert foreign == set()


@pytest.mark.parametrize("package", sorted(DEPENDENCIES))
def test_heavy_packages_wait_for_first_need(package):
    """No file imports NumPy or LLVM while it is being imported itself."""
    early = []
    for path in files():
        for node in module_level(parsed(path)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            if any(name.split(".")[0] == package for name in names):
                early.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert early == []


def module_level(tree):
    """Statements that run at import: everything outside functions and TYPE_CHECKING blocks."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))
