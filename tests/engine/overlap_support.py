"""Pairs of views of one storage, and what writing one from the other must give.

The pairs follow from a number alone, so that torch's refusals could be recorded for them
(tests/recorded/record_overlaps.py)."""

from __future__ import annotations

import random
from typing import Any

SIZE = 48
OPERATIONS = ("add_", "sub_", "mul_", "copy_", "maximum_out", "lerp_", "addcmul_", "add_self")
N_PAIRS = 600


def random_view(choice: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset of a view of SIZE elements, no element twice."""
    while True:
        ndim = choice.choice((1, 1, 2, 2, 2, 3))
        shape = tuple(choice.choice((1, 2, 3, 4, 5, 8)) for _ in range(ndim))
        order = list(range(ndim))
        choice.shuffle(order)
        strides = [0] * ndim
        step = 1
        for dim in order:
            strides[dim] = step * (choice.choice((1, 1, 1, 2, 3)))
            step = strides[dim] * shape[dim]
        span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if span <= SIZE:
            return shape, tuple(strides), choice.randrange(SIZE - span + 1)


def pair(number: int) -> tuple[str, Any, Any]:
    """An operation, the view it writes and one it reads, of a shape that broadcasts to it."""
    choice = random.Random(number)
    shape, strides, offset = target = random_view(choice)
    operation = choice.choice(OPERATIONS)
    kind = choice.randrange(5)
    if kind == 0:  # the same memory
        return operation, target, target
    if kind == 1:  # the same, moved
        span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        return operation, target, (shape, strides, choice.randrange(SIZE - span + 1))
    if kind == 2 and len(shape) > 1 and shape[0] == shape[1]:  # turned
        return operation, target, (shape, (strides[1], strides[0], *strides[2:]), offset)
    if kind == 3:  # a row of it or an element, broadcast
        dims = choice.randrange(len(shape))
        return operation, target, (shape[dims + 1 :], strides[dims + 1 :], offset)
    for _ in range(200):
        other = random_view(choice)
        if other[0] == shape:
            return operation, target, other
    return operation, target, (shape, (0,) * len(shape), choice.randrange(SIZE))


def positions(view: Any) -> list[int]:
    """Places in memory of a view's elements, in order."""
    shape, strides, offset = view
    found = [offset]
    for size, stride in zip(shape, strides, strict=True):
        found = [at + n * stride for at in found for n in range(size)]
    return found


def broadcast(view: Any, shape: tuple[int, ...]) -> Any:
    """The view with dims of stride 0 in front and where it has size 1."""
    own, strides, offset = view
    missing = len(shape) - len(own)
    own, strides = (1,) * missing + own, (0,) * missing + strides
    stretched = tuple(0 if o == 1 else s for o, s in zip(own, strides, strict=True))
    return shape, stretched, offset


def apply(torch: Any, operation: str, x: Any, y: Any) -> None:
    """Write `x` from `y`."""
    if operation == "maximum_out":
        torch.maximum(y, y, out=x)
    elif operation == "lerp_":
        x.lerp_(y, 0.5)
    elif operation == "addcmul_":
        x.addcmul_(y, y)
    elif operation == "add_self":
        torch.add(x, y, out=x)
    else:
        getattr(x, operation)(y)


def expected(operation: str, memory: list[float], target: Any, source: Any) -> list[float]:
    """Memory after the operation, everything read before anything is written."""
    wanted = list(memory)
    read = positions(broadcast(source, target[0]))
    for at, source_at in zip(positions(target), read, strict=True):
        x, y = memory[at], memory[source_at]
        wanted[at] = {
            "add_": x + y, "add_self": x + y, "sub_": x - y, "mul_": x * y, "copy_": y,
            "maximum_out": y, "lerp_": x + 0.5 * (y - x), "addcmul_": x + y * y,
        }[operation]  # fmt: skip
    return wanted


def outcome(torch: Any, number: int) -> str:
    """The pair's memory after the operation, or the first sentence of the error."""
    operation, target, source = pair(number)
    memory = torch.arange(1.0, SIZE + 1)
    x = memory.as_strided(*target)
    y = memory.as_strided(*source)
    if operation == "maximum_out" and source[0] != target[0]:
        y = y.expand(target[0])  # else out= would be resized
    try:
        apply(torch, operation, x, y)
    except RuntimeError as error:
        return str(error).split(".")[0]
    return str(memory.tolist())


# Views that overlap themselves ---------------------------------------------------


def shared_view(choice: random.Random, limit: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset of a view of at most `limit` elements of memory, some of them seen
    more than once."""
    while True:
        ndim = choice.choice((2, 2, 3))
        shape = tuple(choice.choice((2, 3, 4, 7, limit // 8)) for _ in range(ndim))
        strides = tuple(choice.choice((1, 1, 2, 3, 5)) for _ in range(ndim))
        span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        found = positions((shape, strides, 0))
        if span <= limit and len(set(found)) < len(found) < 40 * limit:
            return shape, strides, choice.randrange(limit - span + 1)


def _chosen(torch: Any, x: Any) -> Any:
    return (torch.arange(x.numel()) % 3 == 1).reshape(x.shape)


def _rows(torch: Any, x: Any) -> Any:
    return torch.arange(x.shape[0] // 2 + 1).flip(0)


def _numbers(torch: Any, x: Any) -> Any:
    return (torch.arange(x.numel()) % 11).reshape(x.shape).to(x.dtype)


# Each writes a view; those in CHOSEN leave elements of it alone. random_ draws in memory's order,
# which a packed copy does not share.
SHARED_WRITES: dict[str, Any] = {
    "add_": lambda t, x: x.add_(_numbers(t, x)),
    "mul_": lambda t, x: x.mul_(x),
    "copy_": lambda t, x: x.copy_(_numbers(t, x)),
    "fill_": lambda t, x: x.fill_(4),
    "sub_": lambda t, x: x.sub_(x.sum(0)),
    "cumsum_": lambda t, x: x.cumsum_(0),
    "where_out": lambda t, x: t.where(_chosen(t, x), x + 1, x * 2, out=x),
    "flip": lambda t, x: x.copy_(x.flip(0)),
    "sum_out": lambda t, x: t.sum(t.stack([x, x + 1]), 0, out=x),
    "random_": lambda t, x: (t.manual_seed(5), x.random_(0, 9)),
    "masked_fill_": lambda t, x: x.masked_fill_(_chosen(t, x), 3),
    "masked_scatter_": lambda t, x: x.masked_scatter_(_chosen(t, x), _numbers(t, x)),
    "mask": lambda t, x: x.__setitem__(_chosen(t, x), _numbers(t, x)[_chosen(t, x)]),
    "index_fill_": lambda t, x: x.index_fill_(0, _rows(t, x), 3),
    "index_copy_": lambda t, x: x.index_copy_(0, _rows(t, x), _numbers(t, x)[_rows(t, x)]),
    "index_add_": lambda t, x: x.index_add_(0, _rows(t, x), _numbers(t, x)[_rows(t, x)]),
    "scatter_": lambda t, x: x.scatter_(0, _rows(t, x)[:1].expand(1, *x.shape[1:])
                                        if x.ndim == 2 else t.zeros(1, 1, 1, dtype=t.int64), 6),
    "put_": lambda t, x: x.put_(_rows(t, x), _numbers(t, x).reshape(-1)[: len(_rows(t, x))]),
}  # fmt: skip
CHOSEN = ("masked_fill_", "masked_scatter_", "mask", "index_fill_", "index_copy_", "index_add_",
          "scatter_", "put_")  # fmt: skip


def written_in_order(torch: Any, name: str, memory: Any, view: Any) -> list[Any]:
    """Memory after a write: all read first, then stored element by element in their order."""
    packed = memory.as_strided(*view).clone().contiguous()
    before = packed.reshape(-1).tolist()
    SHARED_WRITES[name](torch, packed)
    wanted = memory.tolist()
    for at, old, new in zip(positions(view), before, packed.reshape(-1).tolist(), strict=True):
        if name not in CHOSEN or old != new:
            wanted[at] = new
    return wanted
