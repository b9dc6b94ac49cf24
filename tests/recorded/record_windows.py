"""Writes windows.json: torch.signal.windows in float64 by the call that makes them.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_windows.py"""

import json
from pathlib import Path

import torch

CALLS = [
    f"w.{call}{more}, dtype=f64)"
    for name, settings in {
        "bartlett": "", "blackman": "", "cosine": "", "exponential": ", tau=2.5",
        "gaussian": ", std=1.7", "general_cosine": ", a=[0.4, 0.3, 0.2, 0.1]",
        "general_hamming": ", alpha=0.6", "hamming": "", "hann": "", "kaiser": ", beta=5.0",
        "nuttall": "",
    }.items()
    for call in (f"{name}({count}{settings}" for count in (1, 2, 7, 10))
    for more in ("", ", sym=False")
] + ["w.exponential(6, center=1.5, sym=False, dtype=f64)"]  # fmt: skip


def main():
    scope = {"w": torch.signal.windows, "f64": torch.float64}
    found = {call: eval(call, scope).tolist() for call in CALLS}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    path = Path(__file__).with_name("windows.json")
    path.write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
