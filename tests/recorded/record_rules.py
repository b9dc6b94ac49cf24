"""Writes rules.json: torch's promotion tables, strides of elementwise results, and views.

Run it with an interpreter that has torch 2.13:  python tests/recorded/record_rules.py"""

import itertools
import json
import random
from pathlib import Path

import torch

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
NUMBERS = {"bool": True, "int": 1, "float": 1.0, "complex": 1j}


def name(dtype):
    return str(dtype)[6:]


def promotion():
    """Dtypes of pairs: both dimensioned, the first without dims, beside a number."""
    table = {}
    for left, right in itertools.product(DTYPES, DTYPES):
        one, other = getattr(torch, left), getattr(torch, right)
        vector, scalar = torch.empty(2, dtype=other), torch.empty((), dtype=one)
        table[f"{left} {right}"] = [
            name(torch.promote_types(one, other)),
            name(torch.result_type(scalar, vector)),
            torch.can_cast(one, other),
        ]
    for left, number in itertools.product(DTYPES, NUMBERS):
        if left == "float16" and number == "complex":
            continue  # complex32, which we have not
        vector = torch.empty(2, dtype=getattr(torch, left))
        table[f"{left} number {number}"] = name(torch.result_type(vector, NUMBERS[number]))
    for key in [key for key, row in table.items() if "complex32" in row]:
        del table[key]
    return table


def strided(shape, draw):
    """A tensor that broadcasts to `shape`, laid out at random."""
    sizes = [1 if draw.random() < 0.25 else size for size in shape]
    if draw.random() < 0.2:
        sizes = sizes[draw.randint(0, len(sizes)) :]
    order = list(range(len(sizes)))
    if draw.random() < 0.7:
        draw.shuffle(order)
    steps = [draw.choice([1, 1, 1, 2]) for _ in sizes]
    base = torch.empty([sizes[dim] * steps[dim] for dim in order])
    made = base.permute([order.index(dim) for dim in range(len(sizes))])
    made = made[tuple(slice(None, None, step) for step in steps)] if sizes else made
    if draw.random() < 0.15 and sizes and sizes[0]:
        made = made[:1].expand(sizes)
    return made


def geometry(tensor):
    return [list(tensor.shape), list(tensor.stride())]


def attempt(function):
    """Geometry of a view with its offset, or class and first line of the error."""
    try:
        found = function()
        return [*geometry(found), found.storage_offset()]
    except (RuntimeError, IndexError) as error:
        return [type(error).__name__, str(error).split("\n")[0]]


def layouts(draw, count):
    """Operands and their result's geometry, and the geometry of an empty copy of the first."""
    rows = []
    for _ in range(count):
        shape = [draw.choice([0, 1, 2, 3, 3, 4]) for _ in range(draw.randint(0, 4))]
        operands = [strided(shape, draw) for _ in range(draw.randint(1, 3))]
        result = (abs, torch.add, torch.addcmul)[len(operands) - 1](*operands)
        rows.append([
            [geometry(each) for each in operands], geometry(result),
            geometry(torch.empty_like(operands[0])),
        ])  # fmt: skip
    return rows


VIEWS = {
    "view": lambda t, shape: t.view(shape),
    "expand": lambda t, shape: t.expand(shape),
    "transpose": lambda t, a, b: t.transpose(a, b),
    "permute": lambda t, dims: t.permute(dims),
    "squeeze": lambda t, dim: t.squeeze() if dim is None else t.squeeze(dim),
    "unsqueeze": lambda t, dim: t.unsqueeze(dim),
    "select": lambda t, dim, index: t.select(dim, index),
    "diagonal": lambda t, offset, a, b: t.diagonal(offset, a, b),
}


def view_arguments(tensor, draw):
    """One argument list for each view, some of them wrong."""
    n_dims = tensor.dim()
    shape = [draw.choice([1, 2, 3, -1, tensor.numel()]) for _ in range(draw.randint(0, 3))]
    merged = list(tensor.shape)
    if n_dims > 1:
        merged[:2] = [merged[0] * merged[1]]
    some_dim = draw.randint(-n_dims - 1, n_dims)
    order = list(range(n_dims))
    draw.shuffle(order)
    return {
        "view": [draw.choice([shape, merged])],
        "expand": [[draw.choice([2, size]) for size in [3, *tensor.shape]]],
        "transpose": [some_dim, -1],
        "permute": [draw.choice([order, order[:-1], [0] * n_dims])],
        "squeeze": [draw.choice([None, some_dim])],
        "unsqueeze": [some_dim],
        "select": [some_dim, draw.randint(-2, 2)],
        "diagonal": [draw.randint(-2, 2), some_dim, 0],
    }


def views(draw, count):
    rows = []
    for _ in range(count):
        shape = [draw.choice([0, 1, 2, 3, 4]) for _ in range(draw.randint(0, 4))]
        base = strided(shape, draw)
        tensor = base.as_strided(base.shape, base.stride(), 0)
        for view, arguments in view_arguments(tensor, draw).items():
            found = attempt(lambda v=view, t=tensor, a=arguments: VIEWS[v](t, *a))
            if "overflow" not in str(found[1]):
                rows.append([geometry(tensor), view, arguments, found])
    return rows


def main():
    draw = random.Random(20)
    rules = {"promotion": promotion(), "layouts": layouts(draw, 300), "views": views(draw, 120)}
    path = Path(__file__).with_name("rules.json")
    parts = [
        f"{json.dumps(key)}: {{\n"
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rules[key].items())
        + "\n}"
        if isinstance(rules[key], dict)
        else f"{json.dumps(key)}: [\n" + ",\n".join(json.dumps(row) for row in rules[key]) + "\n]"
        for key in rules
    ]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
