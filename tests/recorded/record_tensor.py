"""Records what torch gives for the cases of tensor_cases.py, as tensor.json.

    python tests/recorded/record_tensor.py        (with torch 2.13 installed)

Keeps     repr of the result, or the exception's class and first line.
Touches   torch; writes tensor.json beside this file.
Not here  the comparison (tests/tensor/test_recorded.py)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tensor_cases import GROUPS, outcome


def main() -> None:
    """Write the file."""
    made = {
        name: [[case, outcome(case, torch)] for case in cases] for name, cases in GROUPS.items()
    }
    path = Path(__file__).with_name("tensor.json")
    path.write_text(json.dumps(made, indent=0) + "\n")


if __name__ == "__main__":
    main()
