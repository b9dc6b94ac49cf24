"""The programs in examples/, as a newcomer runs them; shorter where they would take long."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def run(tmp_path):
    """Run an example in an empty folder; returns what it printed."""

    def run_example(name, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", "flambeau", "run", str(ROOT / "examples" / name), *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    return run_example


def test_linear_regression_finds_the_line(run, tmp_path):
    done = run("linear_regression.py", "--out", "line.txt")
    slope, offset = map(float, re.search(r"y = (\S+) x \+ (\S+)", done.stdout).groups())
    assert abs(slope - 3) < 0.2
    assert abs(offset - 1) < 0.5
    assert (tmp_path / "line.txt").read_text().startswith("y = ")


def test_digits_reads_97_of_100(run, tmp_path):
    done = run("digits.py", "--seeds", "1", "--out", "pictures")
    (score,) = re.findall(r"test accuracy ([\d.]+)%,", done.stdout)
    assert float(score) >= 97
    assert "920/920" in done.stderr  # the progress bar
    for name in ("digits_training.png", "digits_answers.png"):
        picture = (tmp_path / "pictures" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 10_000


def test_char_gpt_learns_and_writes(run):
    done = run("char_gpt.py", "--steps", "50", "--length", "40")
    losses = [float(found) for found in re.findall(r"loss (\d+\.\d+)", done.stdout + done.stderr)]
    first, last = losses[0], losses[-1]
    assert first > 3.8  # near log(68) = 4.2: nothing learnt yet
    assert last < first - 1.0
    assert "ROSALIND" in done.stdout


@pytest.mark.parametrize("name", ["linear_regression.py", "digits.py", "char_gpt.py"])
def test_help(run, name):
    done = run(name, "--help")
    for option in ("--steps", "--seed", "--out"):
        assert option in done.stdout
