"""Sphinx's settings, and what fills the generated parts of the pages while HTML is built.

Keeps     what can be counted is counted at build time and stands nowhere else.
Touches   flambeau/compat.toml, CHANGELOG.md, tests/recorded/torch_names.json.
Not here  the pages' own text."""

from __future__ import annotations

import json
import sys
import tomllib
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


def table_of_names() -> str:
    """One row a room of torch's: how many of its public names are done, partial, and refused."""
    table = tomllib.loads((ROOT / "flambeau/compat.toml").read_text(encoding="utf-8"))
    recorded = json.loads((ROOT / "tests/recorded/torch_names.json").read_text(encoding="utf-8"))
    rows = ["| names of | done | partly | refused |", "|---|---|---|---|"]
    for owner, room in table.items():
        partial = [f"<code>{name}</code>: {why}" for name, why in room.get("partial", {}).items()]
        refused = [
            f"{why}: " + ", ".join(f"<code>{name}</code>" for name in names)
            for why, names in room.get("refused", {}).items()
        ]
        count = sum(len(names) for names in room.get("refused", {}).values())
        rows.append(
            f"| `{owner}` | {len(room['done'])} | {folded(partial, len(partial))} | "
            f"{folded(refused, count)} |"
        )
    return f"Names of torch {recorded['version']}.\n\n" + "\n".join(rows) + "\n"


def folded(lines: list[str], count: int) -> str:
    """Lines of a cell behind their number, opened by a click."""
    if not lines:
        return "0"
    return f"<details><summary>{count}</summary>{'<br>'.join(lines)}</details>"
