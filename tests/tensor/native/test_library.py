"""The native recorder comes at once where it is on disk, else when it pays; imports stay light."""

import ast
import os
import subprocess
import sys
from pathlib import Path

from tree_support import parsed

from flambeau.tensor.native import library

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
import flambeau as torch
import flambeau.nn.functional as F
from flambeau.tensor.native import library

x = torch.ones(4, requires_grad=True)
torch.tanh(x).sum().backward()
assert F.relu(x).tolist() == [1] * 4
held, count = torch.tanh, library.COMPILE_AFTER
kinds = [type(torch.tanh).__name__]
for _ in range(count // 40 + 2):
    total = x
    for _ in range(40):
        total = total + x * 0.5
    assert total.tolist() == [21] * 4
while library.is_awaited():  # it is compiled beside the program
    (x * 0.5).tolist()
total.sum().backward()
y = torch.tanh(x)
assert held(x).tolist() == y.tolist() == torch.Tensor.tanh(x).tolist()
kinds += [type(each).__name__ for each in (torch.tanh, torch.Tensor.tanh, torch.Tensor.__add__)]
print(*kinds)
"""


def run(code, **changes):
    environment = {k: v for k, v in os.environ.items() if k != "FLAMBEAU_NATIVE_RECORDER"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**environment, **changes},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_it_comes_when_it_pays_and_then_at_once(tmp_path):
    native = "builtin_function"
    cache = {"FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")}
    assert run(PROGRAM, **cache)[0] == "function"
    assert run(PROGRAM, **cache) == [native] * 4


def test_afterwards_every_name_is_native(tmp_path):
    found = run(PROGRAM, FLAMBEAU_CACHE_DIR=str(tmp_path / "cache"))
    assert found == ["function", *["builtin_function"] * 3]


WRITTEN = """
import flambeau as torch
from flambeau.tensor import functions
from flambeau.tensor.native import library
assert library.is_awaited()
held = [functions.arange, functions.linspace, functions.eye, torch.relu]
library.library()
print(torch.arange(3).tolist() == [0, 1, 2], torch.linspace(0, 1, 2).tolist() == [0.0, 1.0])
print(torch.eye(1).tolist() == [[1.0]], torch.relu is not held[-1])
"""


def test_names_written_by_hand_stay_when_it_comes(tmp_path):
    """What an operator's rule had asked for is not taken out of the file it is written in."""
    assert run(WRITTEN, FLAMBEAU_CACHE_DIR=str(tmp_path / "cache")) == ["True"] * 4


def test_the_key_of_a_text_covers_what_the_text_is_made_of():
    """Kept objects whose sources are not asked for would outlive a change of what they share."""
    package = ROOT / "flambeau"
    folders = [package / each for each in library._FOLDERS]
    pending = [package / "tensor/native/text/texts.py"]
    seen = set()
    while pending:
        file = pending.pop()
        if file in seen:
            continue
        seen.add(file)
        assert any(file.is_relative_to(folder) for folder in folders), file
        # Of what fills the words a text takes numbers of its own alone.
        for node in parsed(file).body if file.name != "ways.py" else ():
            if isinstance(node, ast.ImportFrom) and node.module.startswith("flambeau."):
                module = ROOT / node.module.replace(".", "/")
                inner = [module / f"{each.name}.py" for each in node.names]
                pending += [each for each in (module.with_suffix(".py"), *inner) if each.exists()]
    assert package / "devices/cpu/runner/words.py" in seen
