"""What samplers and loaders draw: seeds, permutations, integers, as plain Python numbers.

Keeps     the words and the order of torch's.
Touches   random.fills.
Not here  the samplers."""

from __future__ import annotations

from array import array
from typing import Any

from flambeau.base import dtypes
from flambeau.base.layout import contiguous
from flambeau.random import fills
from flambeau.random.generator import Generator, default_generator
from flambeau.tensor import creation, index_bounds


def seed(generator: Any = None) -> int:
    """What torch.empty((), dtype=torch.int64).random_() draws."""
    return fills.draw_64_bits(generator or default_generator) % 2**63


def seeded(value: int) -> Generator:
    """A generator of its own."""
    return Generator().manual_seed(value)


def permutation_tensor(count: int, generator: Any = None) -> Any:
    """randperm(count), in memory."""
    made = creation.empty_layout(contiguous((count,), dtypes.int64))
    if count:
        fills.fill_permutation(generator or default_generator, made._storage.block.address, count)
        index_bounds.know(made, 0, count - 1)
    return made


def permutation(count: int, generator: Any = None) -> list[int]:
    """randperm(count) as a list."""
    values = array("q", bytes(8 * (count + 8)))
    if count:
        fills.fill_permutation(generator or default_generator, values.buffer_info()[0], count)
    return values[:count].tolist()


def integers(high: int, count: int, generator: Any = None) -> list[int]:
    """randint(high, (count,)) as a list."""
    values = array("q", bytes(8 * (count + 8)))
    draw = fills.random_bounds(dtypes.int64, 0, high)
    if count:
        address = values.buffer_info()[0]
        fills.fill_integers(generator or default_generator, address, count, dtypes.int64, draw)
    return values[:count].tolist()
