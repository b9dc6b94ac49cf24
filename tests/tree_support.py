"""Every file of the tree, read and parsed once for all tests that look at it.

Keeps     paths and contents as they were at first sight.
Touches   nothing: it reads.
Not here  what is asked of the files (test_layout.py, test_layers.py)."""

import ast
import gc
from functools import cache


@cache
def text_of(path):
    """The file's text."""
    return path.read_text(encoding="utf-8")


@cache
def parsed(path):
    """The file's tree. All its nodes stay: looking for garbage among them is most of the work."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text_of(path))
    finally:
        if is_collecting:
            gc.enable()


def statements(path):
    """Every statement of the file, inner ones too: a tenth of what walking all nodes takes."""
    waiting = [parsed(path)]
    while waiting:
        node = waiting.pop()
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, part, ())
            if isinstance(inner, list):
                waiting += inner
        if isinstance(node, ast.stmt):
            yield node
