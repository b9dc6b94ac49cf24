"""Records torch's gradients for the cases of gradient_cases.py, as gradients.json.

    python tests/recorded/record_gradients.py        (with torch 2.13 installed)

Keeps     the answers in the order of the cases.
Touches   torch; writes gradients.json beside this file.
Not here  the comparison (tests/autograd/test_recorded.py)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from gradient_cases import groups, outcome

if __name__ == "__main__":
    made = {
        name: [[case, outcome(case, torch)] for case in cases] for name, cases in groups().items()
    }
    target = Path(__file__).with_name("gradients.json")
    target.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")
