"""Brings flambeau/compat.toml up to what the code has: python tests/recorded/record_compat.py

Keeps     reasons already written stay; a name that came is done, one that went is refused.
Touches   flambeau/compat.toml.
Not here  the names (torch_names.json), the test that holds the table (tests/test_compat.py)."""

import importlib
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "flambeau" / "compat.toml"
HEAD = """\
# Every public name of torch {version}, room by room: done, partly done, or refused, and why.
#
# Brought up to date by tests/recorded/record_compat.py, held to the code by tests/test_compat.py.
# Reasons are written by hand: the script keeps those that are here.
"""
# What a name that is missing most likely is; the first that matches.
REASONS = (
    ((r"^(Callable|Optional|TYPE_CHECKING|DType|BroadcastingList\d|boolean_dispatch|Tensor|Any)$"
     r"|torch_function|_notes$|^(assert_int_or_pair|factory_kwargs|Union|List|Tuple)$"
     r"|^(ABC|abstractmethod|Logger|timedelta|mkdtemp|timer)$"),
     "an import or a helper of torch's own files"),
    (r"^(cudnn|miopen|mkldnn|fbgemm|native)_|^batch_norm_(stats|elemt|gather|backward|update)",
     "internal to torch's own builds"),
    (r"^q_|^q?u?int\d|quant|^qscheme$|int_repr|qparams|moving_avg_obs|^float8|^float4|^bits",
     "no such dtypes here"),
    (r"^sym_|^Sym|^cond$|^vmap$|thread_safe_gen", "belongs to torch.compile and its tracing"),
    (r"sparse|^(hspmm|smm|hsmm|saddmm|sspaddmm|dsmm|values$|ccol_|crow_|col_|row_|coalesce)",
     "sparse tensors are two-dimensional COO only"),
    (r"^(chalf|complex32|ComplexHalf.*)$", "there is no complex dtype of half precision"),
    (r"mkldnn|[xhi]pu|mtia|maia|vulkan|cuda|record_stream|Stream|Event|Accelerator|device_module",
     "no such device here"),
    (r"Storage$|storage_type", "typed storages have one class here, TypedStorage"),
    (r"^(eig|symeig|solve|lstsq|volatile|reinforce)$", "removed from torch, or raises there too"),
    (r"_copy$", "a copying twin of a view, made for torch.func"),
)  # fmt: skip
# What the names are that whole rooms lack, where no name alone says it.
ROOM_REASONS = {
    "torch.accelerator": "no such device here",
    "torch.autograd.profiler": "of the profilers of other devices, or internal to torch's own",
    "torch.compiler": "belongs to torch.compile and its tracing",
    "torch.cpu": "work on a CPU has no streams to choose from",
    "torch.fx": "belongs to torch.compile and its tracing",
    "torch.nn.attention": "there is one attention, of our own",
}
YET = "not there yet"


def served(owner):
    """flambeau's module or class behind torch's `owner`, or None."""
    found = importlib.import_module("flambeau")
    parts = owner.split(".")[1:]
    for depth, part in enumerate(parts, 1):
        following = getattr(found, part, None)
        if following is None:
            try:
                following = importlib.import_module(".".join(["flambeau", *parts[:depth]]))
            except ImportError:
                return None
        found = following
    return found


def reason(owner, name):
    """Why a name is missing."""
    found = (why for pattern, why in REASONS if re.search(pattern, name))
    return ROOM_REASONS.get(owner) or next(found, YET)


def wrapped(names):
    """A TOML list in lines of at most 100 columns."""
    lines = [""]
    for name in names:
        item = f'"{name}",'
        if lines[-1] and len(lines[-1]) + len(item) > 94:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + item
    return "[\n" + "".join(f"    {line}\n" for line in lines if line) + "]"


def main():
    sys.path.insert(0, str(ROOT))
    recorded = json.loads(Path(__file__).with_name("torch_names.json").read_text(encoding="utf-8"))
    old = tomllib.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    text = [HEAD.format(version=recorded["version"])]
    counts = [0, 0, 0]
    for owner, names in recorded["names"].items():
        room = served(owner)
        before = old.get(owner, {})
        present = {name for name in names if room is not None and hasattr(room, name)}
        partial = {n: why for n, why in before.get("partial", {}).items() if n in present}
        gone = [name for name in names if name not in present]
        kept = before.get("refused", {})
        kept = {name: why for why, listed in kept.items() for name in listed}
        whys = {}
        for name in gone:
            whys.setdefault(kept.get(name, reason(owner, name)), []).append(name)
        done = sorted(present - partial.keys())
        text.append(f'["{owner}"]\ndone = {wrapped(done)}\n')
        if partial:
            text.append(f'["{owner}".partial]')
            text += [f'{name} = "{why}"' for name, why in sorted(partial.items())]
            text.append("")
        if whys:
            text.append(f'["{owner}".refused]')
            text += [f'"{why}" = {wrapped(listed)}' for why, listed in sorted(whys.items())]
            text.append("")
        counts = [a + b for a, b in zip(counts, (len(done), len(partial), len(gone)), strict=True)]
    TABLE.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    print("done {}, partial {}, refused {}".format(*counts))


if __name__ == "__main__":
    main()
