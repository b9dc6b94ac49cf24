"""Writes short_time.json: what torch answers to the calls of short_time_cases.py.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_short_time.py"""

import json
from pathlib import Path

import torch
from short_time_cases import answers


def main():
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers(torch).items())
    path = Path(__file__).with_name("short_time.json")
    path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
