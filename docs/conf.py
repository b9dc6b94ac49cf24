"""Sphinx's settings, and what fills the generated parts of the pages while HTML is built.

Keeps     what can be counted is counted at build time and stands nowhere else.
Touches   the package (its names), CHANGELOG.md, tests/recorded/torch_names.json.
Not here  the pages' own text."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the tree these pages describe, installed or not

project = "flambeau"
author = "flambeau contributors"
copyright = author
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "flambeau"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 3
nitpicky = True


def setup(app: Any) -> None:
    """Sphinx calls this first."""
    app.connect("source-read", fill_page)


def fill_page(_app: Any, name: str, source: list[str]) -> None:
    """Replace the markers in a page's text."""
    if name == "coming_from_torch":
        source[0] = source[0].replace("<!-- table of names -->", table_of_names())
    if name == "changelog":
        text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        source[0] = source[0].replace("<!-- changelog -->", text.split("\n", 1)[1])


def served(owner: str) -> Any:
    """flambeau's module or class behind torch's `owner`, or None."""
    parts = owner.split(".")[1:]
    found: Any = importlib.import_module("flambeau")
    for depth, part in enumerate(parts, 1):
        following = getattr(found, part, None)
        if following is None:
            try:
                following = importlib.import_module(".".join(["flambeau", *parts[:depth]]))
            except ImportError:
                return None
        found = following
    return found


def table_of_names() -> str:
    """One row a room of torch's: how many of its public names are here, and which are not."""
    recorded = json.loads((ROOT / "tests/recorded/torch_names.json").read_text(encoding="utf-8"))
    rows = ["| names of | in torch | here | not yet |", "|---|---|---|---|"]
    for owner, names in recorded["names"].items():
        found = served(owner)
        missing = [name for name in names if found is None or not hasattr(found, name)]
        listed = ", ".join(f"<code>{name}</code>" for name in missing)
        if len(missing) > 12:
            listed = f"<details><summary>{len(missing)} names</summary>{listed}</details>"
        rows.append(f"| `{owner}` | {len(names)} | {len(names) - len(missing)} | {listed} |")
    return f"Names of torch {recorded['version']}.\n\n" + "\n".join(rows) + "\n"
