"""Small programs whose results tests/tensor compares with what torch says.

Keeps     a case is one line of tensor_cases.txt: statements, then an expression; names: torch, np,
          copy, pickle and the tensors of SETUP, made anew for each case.
Touches   nothing.
Not here  recording (record_tensor.py), comparing (tests/tensor/test_recorded.py)."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

SETUP = (
    "x = torch.arange(12.).reshape(3, 4)",
    "v = torch.arange(3.)",
    "z = torch.tensor(1.)",
    "y = torch.arange(120).reshape(2, 3, 4, 5)",
    "i = torch.zeros(3, dtype=torch.int64)",
    "T = torch.tensor",
    "w = torch.arange(12.).reshape(3, 4).requires_grad_(True)",
    "s = slice",
)


def groups() -> dict[str, tuple[str, ...]]:
    """The cases of tensor_cases.txt by their headings."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
            found[heading] = []
        elif line and not line.startswith("#"):
            found[heading].append(line)
    return {name: tuple(cases) for name, cases in found.items()}


GROUPS = groups()


def outcome(case: str, torch: Any) -> str:
    """What a case gives: its repr, or the exception's class and first line."""
    import numpy as np

    names: dict[str, Any] = {"torch": torch, "np": np, "copy": copy, "pickle": pickle}
    head, _, tail = case.rpartition("; ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line in SETUP:
                exec(line, names)
            exec(head, names)
            return repr(eval(tail, names))
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
