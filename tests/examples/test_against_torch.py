"""The examples' first 20 losses, under real torch and under flambeau.

Real torch lives in an environment of its own: FLAMBEAU_TORCH_PYTHON names its Python. Without it
these tests are skipped; .ci/run sets it and fails if they were.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "examples" / "losses_of.py"
TORCH_PYTHON = os.environ.get("FLAMBEAU_TORCH_PYTHON")
EXAMPLES = ["linear_regression", "digits", "char_gpt"]
STEPS = 20

pytestmark = [
    pytest.mark.skipif(not TORCH_PYTHON, reason="FLAMBEAU_TORCH_PYTHON names no Python with torch"),
    pytest.mark.timeout(600),
]


# torch without its vector code, and MKL without its own.
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"}


def losses(command, name, dtype, threads, **changes):
    """The losses that one side computes in a process of its own."""
    done = subprocess.run(
        [*command, str(SCRIPT), name, dtype, str(STEPS), str(threads)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **changes, "PYTHONPATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["version"], answer["losses"]


def real_torch(name, dtype, threads, **changes):
    version, found = losses([TORCH_PYTHON], name, dtype, threads, **changes)
    assert version.startswith("2.13.0")
    assert "flambeau" not in version
    return found


def ours(name, dtype, threads=2):
    version, found = losses([sys.executable, "-m", "flambeau", "run"], name, dtype, threads)
    assert version == "2.13.0+flambeau.0.1"
    return found


def spread(left, right):
    """The largest relative difference."""
    assert len(left) == len(right) == STEPS
    return max(abs(a - b) / abs(b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("name", EXAMPLES)
def test_float64(name):
    difference = spread(ours(name, "float64"), real_torch(name, "float64", 1))
    assert difference <= 1e-9


@pytest.mark.parametrize("name", EXAMPLES)
def test_float32(name):
    """Within three times what torch itself differs between its plain kernels on 1 thread and its
    fast ones on 2, at least 1e-5. Thread counts alone say little: both round alike, and on some
    processors torch's losses are further from those of float64 than ours."""
    plain, fast = real_torch(name, "float32", 1, **PLAIN), real_torch(name, "float32", 2)
    allowed = max(1e-5, 3 * spread(fast, plain))
    assert spread(ours(name, "float32"), fast) <= allowed


@pytest.mark.parametrize("name", EXAMPLES)
def test_our_bits_do_not_depend_on_threads(name):
    assert ours(name, "float32", 1) == ours(name, "float32", 2)
