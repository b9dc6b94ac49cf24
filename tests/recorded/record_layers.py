"""Records torch's answers to layer_cases.py: run it with torch 2.13 installed.

    python tests/recorded/record_layers.py

Keeps     one answer a case, as data.
Touches   torch; writes layers.json beside this file.
Not here  the comparison (tests/nn/test_recorded.py)."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from layer_cases import Answers

if __name__ == "__main__":
    target = Path(__file__).with_name("layers.json")
    target.write_text(json.dumps(Answers(torch).all(), indent=0) + "\n", encoding="utf-8")
