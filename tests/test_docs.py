"""What is written is run: doctests of every module, code blocks of README and docs, their links."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import flambeau

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\S+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)+)/?`")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    """Every module of the package, but those that do something when they are imported."""
    for found in pkgutil.walk_packages(flambeau.__path__, "flambeau."):
        if not found.name.endswith("__main__") and ".cli.path" not in found.name:
            yield found.name


def page_name(path):
    return path.relative_to(ROOT).as_posix()


def run_examples(text, name, names):
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    report = []
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.failures == 0, "".join(report)
    names.update(test.globs)


@pytest.mark.parametrize("name", sorted(modules()))
def test_docstrings(name):
    module = importlib.import_module(name)
    names = {"flambeau": flambeau, "torch": flambeau}
    report = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=names):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_code_blocks(page, tmp_path, monkeypatch):
    """```python blocks run in order in one namespace; ```pycon blocks also show their output."""
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    names = {"__name__": "__page__"}
    for found in BLOCK.finditer(text):
        language, code = found.groups()
        line = text[: found.start()].count("\n") + 2
        if language == "pycon":
            run_examples(code, f"{page_name(page)}:{line}", names)
        elif language == "python":
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    targets = [link for link in LINK.findall(text) if "://" not in link]
    lost = [link for link in targets if not (page.parent / link).exists()]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_paths_lead_somewhere(page):
    """`engine/run.py` has to be there, wherever a page begins to count."""
    named = set(PATH.findall(page.read_text(encoding="utf-8")))
    lost = [path for path in named if not any(found.exists() for found in candidates(path))]
    assert lost == []


def candidates(path):
    """Where a path that a page names may lie: in the repository, or in a room of the package."""
    rooms = (room for room in (ROOT / "flambeau").rglob("*/") if room.name != "__pycache__")
    return (folder / path for folder in (ROOT, ROOT / "flambeau", *rooms))
