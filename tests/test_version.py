"""flambeau.version has the names and values of torch's CPU build."""

import subprocess
import sys

from flambeau import version


def test_names_and_values():
    assert version.__version__ == "2.13.0+flambeau.0.1"
    assert [version.cuda, version.hip, version.rocm, version.xpu] == [None] * 4
    assert version.debug is False
    assert version.git_version is None or len(version.git_version) == 40


def test_facts_name_what_we_stand_on():
    facts = version.facts()
    assert {"git", "llvmlite", "numpy", "python", "system", "processors"} == set(facts)


def test_import_brings_nothing_heavy():
    code = (
        "import flambeau, flambeau.version, sys; "
        "print([m for m in ('numpy', 'llvmlite', 'torch', 'subprocess') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
