"""Records torch's public names, room by room: python tests/recorded/torch_names.py

Keeps     torch_names.json holds names only, from the torch that runs this script.
Touches   tests/recorded/torch_names.json.
Not here  the table made from it (docs/conf.py)."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import torch

ROOMS = [
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
    "torch.optim", "torch.optim.lr_scheduler", "torch.autograd", "torch.utils.data",
    "torch.linalg", "torch.fft", "torch.special",
]  # fmt: skip


def names_of(owner):
    """Public names of a module or class, other modules left out."""
    offered = getattr(owner, "__all__", None) if owner is not torch else None
    names = offered or [name for name in dir(owner) if not name.startswith("_")]
    return sorted(name for name in names if not isinstance(getattr(owner, name, None), ModuleType))


def main():
    rooms = {}
    for room in ROOMS:
        owner = torch.Tensor if room == "torch.Tensor" else importlib.import_module(room)
        rooms[room] = names_of(owner)
    recorded = {"version": torch.__version__.split("+")[0], "names": rooms}
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(recorded, indent=0) + "\n", encoding="utf-8")
    print({room: len(names) for room, names in rooms.items()})


if __name__ == "__main__":
    main()
