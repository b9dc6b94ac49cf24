"""Bytecode kept where Python keeps none: found again, renewed with its source, never trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Imports a package under the loader and prints which of its modules were compiled. Python is
# kept from writing only then: flambeau itself need not be compiled for it.
SCRIPT = """
import sys
from importlib.machinery import SourceFileLoader
from flambeau.base import bytecode
sys.dont_write_bytecode = sys.argv[1] == "keeps nothing"
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "_Finder"]
compiled = []
plain = SourceFileLoader.source_to_code
def counted(self, data, path, **kwargs):
    if self.name == "sample.part":
        compiled.append(self.name)
    return plain(self, data, path, **kwargs)
SourceFileLoader.source_to_code = counted
import sample
bytecode.install(sample.__spec__)
import sample.part
print(sample.part.value, sorted(compiled))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two modules."""
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "__init__.py").write_text("name = 'sample'\n")
    (folder / "part.py").write_text("value = 1\n")
    return folder


def imported(package: Path, python: str = "keeps nothing") -> str:
    """What SCRIPT prints in a process of its own."""
    environment = dict(
        os.environ,
        PYTHONPATH=f"{ROOT}{os.pathsep}{package.parent}",
        FLAMBEAU_CACHE_DIR=str(package.parent / "cache"),
    )
    for name in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", SCRIPT, python]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def kept(package: Path) -> list[Path]:
    """Files of the package's own pack, the one that speaks of it."""
    found = (package.parent / "cache").glob("*.code")
    return [each for each in found if bytes(package) in each.read_bytes()]


def test_the_second_process_compiles_nothing(package: Path) -> None:
    """Only what was seen before."""
    assert imported(package) == "1 ['sample.part']"
    assert imported(package) == "1 []"
    assert not (package / "__pycache__").exists()


def test_a_changed_source_is_compiled_anew(package: Path) -> None:
    """By its time or its size."""
    imported(package)
    (package / "part.py").write_text("value = 22\n")
    assert imported(package) == "22 ['sample.part']"
    assert imported(package) == "22 []"


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "empty"])
def test_a_damaged_file_is_no_file(package: Path, damage: str) -> None:
    """And is replaced."""
    imported(package)
    (path,) = kept(package)
    content = path.read_bytes()
    path.write_bytes(
        {
            "cut": content[:-5],
            "flipped": content[:-9] + bytes([content[-9] ^ 255]) + content[-8:],
            "foreign": b"something else",
            "empty": b"",
        }[damage]
    )
    assert imported(package) == "1 ['sample.part']"
    assert imported(package) == "1 []"


def test_a_folder_that_others_may_write_is_not_used(package: Path) -> None:
    """Nor is anything written to it."""
    cache = package.parent / "cache"
    imported(package)
    cache.chmod(0o777)
    before = sorted(cache.iterdir())
    assert imported(package) == "1 ['sample.part']"
    assert sorted(cache.iterdir()) == before


def test_python_keeps_its_own_where_it_may(package: Path) -> None:
    """Nothing is added to what Python does."""
    imported(package, python="keeps its own")
    assert imported(package, python="keeps its own") == "1 []"
    assert (package / "__pycache__").exists()
    assert not kept(package)


def test_old_files_go(package: Path) -> None:
    """Packs of other places and interpreters are bounded in number."""
    cache = package.parent / "cache"
    cache.mkdir(mode=0o700)
    for number in range(30):
        (cache / f"{number}.code").write_bytes(b"old")
        os.utime(cache / f"{number}.code", (number, number))
    imported(package)
    assert len(list(cache.glob("*.code"))) <= 17
    assert kept(package)
