"""Random programs over the registry: views, in-place writes, shared storages, odd values.

A program is a function of a seed: the same choices every time it is run, whatever the switches.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import flambeau as torch
import flambeau.debug
from flambeau.ops.define import REGISTRY, Elementwise
from flambeau.tensor import functions

SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-40, -1e-42, 0.5, 3.0]
DTYPES = ["float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool"]
DTYPES += ["complex64", "complex128"]
FLAT_SHAPES = [(), (1,), (5,), (33,)]
SHAPES = [*FLAT_SHAPES, (3, 4), (4, 1), (1, 4), (7, 40), (2, 3, 5), (40, 33), (0, 4), (1100,)]
# Elementwise operators of one and of two tensors, by name; learnt from the registry.
_SKIPPED = {"fill", "copy"}


def _tensor_operators(count: int) -> list[str]:
    from flambeau.tensor.binding import binding

    names = []
    for name, operator in REGISTRY.items():
        if not isinstance(operator, Elementwise) or name in _SKIPPED or not operator.function:
            continue
        required = [p for p in binding(name).parameters if p.kind in ("Tensor", "Operand")]
        optional = [p for p in binding(name).parameters if p not in required]
        if len(required) == count and all(p.default is not _absent() for p in optional):
            names.append(name)
    return sorted(names)


def _absent() -> Any:
    from flambeau.tensor.binding import ABSENT

    return ABSENT


UNARY = _tensor_operators(1)
BINARY = _tensor_operators(2)
REDUCTIONS = ["sum", "mean", "amax", "amin", "argmax", "var", "prod", "any"]


def make(choice: random.Random, shape: tuple[int, ...], dtype: str) -> Any:
    """A tensor in memory with ordinary and special values."""
    count = 1
    for size in shape:
        count *= size
    values: list[Any]
    if dtype == "bool":
        values = [choice.random() < 0.5 for _ in range(count)]
    elif dtype.startswith(("int", "uint")):
        values = [choice.randrange(0, 7) for _ in range(count)]
    else:

        def number() -> float:
            return choice.choice(SPECIAL) if choice.random() < 0.1 else choice.uniform(-3, 3)

        values = [number() for _ in range(count)]
        if dtype.startswith("complex"):
            values = [complex(each, number()) for each in values]
    flat = torch.tensor(values, dtype=getattr(torch, dtype))
    return functions.view(flat, shape) if shape != (count,) else flat


class Program:
    """Runs a seeded list of steps over a pool of tensors; errors are results too."""

    def __init__(
        self, seed: int, n_steps: int, between: Callable[[int], None] | None = None
    ) -> None:
        self.choice = random.Random(seed)
        self.n_steps = n_steps
        self.between = between
        self.pool: list[Any] = []
        self.log: list[str] = []

    def run(self) -> list[Any]:
        """The pool at the end."""
        choice = self.choice
        shape = choice.choice(SHAPES)
        for _ in range(3):
            dtype = choice.choice(DTYPES[:2] if choice.random() < 0.6 else DTYPES)
            own_shape = shape if choice.random() < 0.7 else choice.choice(SHAPES)
            self.pool.append(make(choice, own_shape, dtype))
        for number in range(self.n_steps):
            if self.between is not None:
                self.between(number)
            self._step()
        return self.pool

    def _step(self) -> None:
        choice = self.choice
        kind = choice.choices(
            [
                "unary",
                "binary",
                "number",
                "reduce",
                "view",
                "inplace",
                "drop",
                "convert",
                "positions",
                "choose",
                "join",
            ],
            [4, 6, 3, 3, 4, 3, 1, 1, 2, 2, 2],
        )[0]
        try:
            made = getattr(self, "_" + kind)()
        except (RuntimeError, TypeError, IndexError, NotImplementedError, ValueError) as error:
            self.log.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
            return
        if made is not None:
            self.pool.append(made)

    def _any(self) -> Any:
        return self.choice.choice(self.pool)

    def _unary(self) -> Any:
        name = self.choice.choice(UNARY)
        self.log.append(name)
        return getattr(functions, name)(self._any())

    def _binary(self) -> Any:
        name = self.choice.choice(BINARY)
        self.log.append(name)
        return getattr(functions, name)(self._any(), self._any())

    def _join(self) -> Any:
        """Pieces of one tensor or several side by side, or one behind the other."""
        choice = self.choice
        first = self._any()
        pieces = [
            choice.choice([first, first * 2, self._any()]) for _ in range(choice.randint(2, 4))
        ]
        dim = choice.randint(0, max(0, first.ndim - 1))
        name = choice.choice(["cat", "stack"])
        self.log.append(f"{name} {len(pieces)} {dim}")
        return getattr(torch, name)(pieces, dim)

    def _number(self) -> Any:
        name = self.choice.choice(["add", "mul", "sub", "div", "pow", "maximum"])
        number = self.choice.choice([2, 0.5, -1.25, 3, 0])
        self.log.append(f"{name} {number}")
        return getattr(functions, name)(self._any(), number)

    def _reduce(self) -> Any:
        name = self.choice.choice(REDUCTIONS)
        source = self._any()
        dims = range(source.ndim)
        dim = self.choice.choice([None, *dims]) if source.ndim else None
        if name == "prod" and source.is_complex():
            name = "sum"  # a complex product has as many statements as its length has bits
        self.log.append(f"{name} {dim}")
        if dim is None:
            return getattr(functions, name)(source)
        return getattr(functions, name)(source, dim)

    def _positions(self) -> Any:
        """Values that depend on where an element is, over the dims of a tensor that is there."""
        source, choice = self._any(), self.choice
        name = choice.choice(["tril", "triu", "eye", "arange", "one_hot"])
        self.log.append(name)
        shape = tuple(source.shape)
        if name in ("tril", "triu"):
            return getattr(functions, name)(source, choice.randrange(-2, 3))
        if name == "eye":
            return torch.eye(*shape[-2:]) if len(shape) >= 2 else torch.eye(3)
        if name == "arange":
            return torch.arange(source.numel()).reshape(shape)
        return functions.one_hot(torch.arange(shape[0]) % 4, 4) if shape else None

    def _choose(self) -> Any:
        source, choice = self._any(), self.choice
        kind = choice.randrange(5)
        self.log.append(f"choose {kind}")
        shares = [choice.random() for _ in range(4)]  # drawn whatever the sizes
        if not source.ndim or not source.shape[0]:
            return None
        places = torch.tensor([int(share * source.shape[0]) for share in shares])
        if kind == 0:
            return functions.index_select(source, 0, places)
        if kind == 1:
            return functions.cat([source, source[:1]])
        if kind == 2:
            return functions.flip(source, (0,))
        if kind == 3:
            return functions.cumsum(source, 0)
        return functions.where(source > 0, source, 0)

    def _view(self) -> Any:
        source, choice = self._any(), self.choice
        kind = choice.randrange(8)
        self.log.append(f"view {kind}")
        if kind > 4 and source.is_complex():
            if kind == 7:
                return source.conj()
            return source.real if kind == 5 else functions.view_as_real(source)
        if kind == 0 and source.ndim >= 2:
            return functions.transpose(source, 0, 1)
        if kind == 1 and source.ndim >= 1 and source.shape[0] > 1:
            return functions.narrow(source, 0, 1, source.shape[0] - 1)
        if kind == 2 and source.ndim >= 1 and source.shape[-1] > 0:
            return functions.select(source, source.ndim - 1, choice.randrange(source.shape[-1]))
        if kind == 3:
            return functions.unsqueeze(source, 0)
        return source.reshape(-1)

    def _inplace(self) -> Any:
        target = self._any()
        name = self.choice.choice(["add_", "mul_", "exp_", "neg_", "clamp_min_", "sub_"])
        self.log.append(name)
        function = getattr(functions, name)
        if name in ("exp_", "neg_"):
            function(target)
        else:
            other = 0 if name == "clamp_min_" else self.choice.choice([0.5, 2, self._any()])
            function(target, other)

    def _drop(self) -> Any:
        if len(self.pool) > 3:
            self.pool.pop(self.choice.randrange(len(self.pool)))

    def _convert(self) -> Any:
        dtype = self.choice.choice(DTYPES)
        self.log.append(dtype)
        source, wanted = self._any(), getattr(torch, dtype)
        return source if source.dtype is wanted else functions.convert(source, wanted)


def bits(tensors: list[Any]) -> list[Any]:
    """What tensors hold, comparable with ==: NaNs alike, zeros told apart by sign."""
    return [(tuple(t.shape), str(t.dtype), _flat(t)) for t in tensors]


def _flat(tensor: Any) -> Any:
    from flambeau.tensor.conversion import flat_values

    values = flat_values(tensor)
    if tensor.is_complex():
        values = [part for value in values for part in (value.real, value.imag)]
    return ["nan" if value != value else (value if value else repr(value)) for value in values]


def outcome(seed: int, n_steps: int, between: Callable[[int], None] | None = None) -> list[Any]:
    """Bits of all tensors a program leaves; fused at first sight."""
    with flambeau.debug.fuse_new(True):
        return bits(Program(seed, n_steps, between).run())
