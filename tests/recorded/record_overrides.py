"""Writes overrides.json: what a __torch_function__ of torch's sees of the cases.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_overrides.py"""

import json
from pathlib import Path

import torch
from override_cases import CASES, outcome

Path(__file__).with_name("overrides.json").write_text(
    json.dumps({case: outcome(case, torch) for case in CASES}, indent=0) + "\n"
)
