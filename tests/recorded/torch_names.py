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
    "torch.linalg", "torch.fft", "torch.special", "torch.distributions",
    "torch.distributions.constraints", "torch.distributions.transforms", "torch.sparse",
    "torch.func", "torch.cuda", "torch.amp", "torch.random", "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize", "torch.utils.checkpoint", "torch.utils.tensorboard",
    "torch.autograd.functional", "torch.jit", "torch.profiler", "torch.signal.windows",
    "torch.overrides", "torch.functional", "torch.hub", "torch.futures", "torch.serialization",
    "torch.autograd.forward_ad", "torch.autograd.graph", "torch.autograd.profiler",
    "torch.testing", "torch.distributed", "torch.multiprocessing", "torch.fx", "torch.onnx",
    "torch.compiler", "torch.accelerator", "torch.cpu", "torch.storage", "torch.types",
    "torch.optim.swa_utils", "torch.nn.attention", "torch.nn.parallel",
    "torch.nn.utils.parametrizations", "torch.nn.utils.prune", "torch.nn.utils.fusion",
    "torch.nn.utils.stateless", "torch.utils.benchmark", "torch.utils.dlpack",
    "torch.utils.hooks", "torch.distributions.kl",
]  # fmt: skip


# Of the names that torch takes over from its C++ part, those its documents speak of.
DOCUMENTED = {
    "AcceleratorError", "Event", "Generator", "OutOfMemoryError", "Size", "Stream",
    "default_generator", "device", "dtype", "finfo", "get_autocast_dtype", "get_default_dtype",
    "get_num_interop_threads", "get_num_threads", "iinfo", "is_autocast_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "layout", "memory_format",
    "set_flush_denormal", "set_num_interop_threads", "set_num_threads",
}  # fmt: skip


def leaked(name):
    """Whether a name of torch itself is one of its C++ part's internal ones."""
    internal = name in dir(torch._C) and name not in dir(torch._C._VariableFunctions)
    return internal and name not in DOCUMENTED


def names_of(owner):
    """Public names of a module or class, other modules and leaked internals left out."""
    names = getattr(owner, "__all__", None) or [n for n in dir(owner) if not n.startswith("_")]
    if owner is torch:
        names = [name for name in names if not leaked(name)]
    kept = {name for name in names if not isinstance(getattr(owner, name, None), ModuleType)}
    return sorted(kept)


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
