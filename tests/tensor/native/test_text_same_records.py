"""The native recorder writes down what the closures write down, record by record."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).with_name("records_support.py")
ROOT = Path(__file__).resolve().parents[3]


def written(native, seed, count):
    environment = {
        **os.environ,
        "FLAMBEAU_NATIVE_RECORDER": native,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, str(SUPPORT), str(seed), str(count)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("seed", [100, 300])
def test_random_programs(seed):
    native, closures = written("1", seed, 12), written("0", seed, 12)
    program = ""
    for mine, theirs in zip(native, closures, strict=True):
        program = mine if mine.startswith("---") else program
        assert mine == theirs, program
    assert sum("MulBackward0" in line for line in native) > 3
