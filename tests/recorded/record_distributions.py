"""Records torch's answers about its distributions: python tests/recorded/record_distributions.py

Keeps     distributions.json holds what distribution_cases.py asks, nothing else.
Touches   tests/recorded/distributions.json.
Not here  the cases (distribution_cases.py)."""

import json
from pathlib import Path

import torch
from distribution_cases import CASES, answers


def main():
    found = {f"{name}({text})": answers(torch, name, text)
             for name, texts in CASES.items() for text in texts}  # fmt: skip
    path = Path(__file__).with_name("distributions.json")
    path.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    print(len(found))


if __name__ == "__main__":
    main()
