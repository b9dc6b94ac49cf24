"""Rules on shapes and strides: broadcasting, reductions, layouts of elementwise results.

Keeps     plain integers in, plain integers out; errors are torch's, at the call that caused them.
Touches   base.layout, base.errors, base.promotion (Scalar).
Not here  dtypes of results (promotion.py); rules of the views (view_rules.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Final

from flambeau.base.devices import Device
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous_strides, layout
from flambeau.base.promotion import Operand

Shape = tuple[int, ...]
_MEMO_LIMIT: Final = 256
# Dims that memory formats with channels last are for.
RANKS: Final = {"channels_last": 4, "channels_last_3d": 5}


def whole_numbers(function: str, argument: str, position: int, value: object) -> list[int]:
    """The numbers of a tuple or list; torch's error for what is none, or has other than ints.

    >>> whole_numbers("pad", "pad", 2, (1, 2))
    [1, 2]
    """
    must = f"{function}(): argument '{argument}' (position {position}) must be tuple of ints"
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{must}, not {type(value).__name__}")
    for place, each in enumerate(value):
        if not hasattr(each, "__index__"):
            raise not_an_int(function, argument, position, place, type(each).__name__)
    return [each.__index__() for each in value]


def not_an_int(function: str, argument: str, position: int, place: int, kind: str) -> TypeError:
    """torch's error for something else among ints: it looks at the first of them before it unpacks
    the others. position 0: the argument came by name."""
    start = f"{function}(): argument '{argument}'"
    if place:
        return TypeError(
            f"{start} failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    where = f" (position {position})" if position else ""
    return TypeError(
        f"{start}{where} must be tuple of ints, but found element of type {kind} at pos 0"
    )


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front. Raises IndexError outside [-ndim, ndim), TypeError for a dim
    that is no integer."""
    bound = ndim or 1
    dim = index(dim)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
            f"but got {dim})"
        )
    return dim + bound if dim < 0 else dim


def wrap_dims(dims: Iterable[int], ndim: int) -> tuple[int, ...]:
    """Every dim counted from the front, in the order given. Raises on a repeated one."""
    wrapped = tuple(wrap_dim(each, ndim) for each in dims)
    for position, each in enumerate(wrapped):
        if each in wrapped[:position]:
            raise RuntimeError(f"dim {each} appears multiple times in the list of dims")
    return wrapped


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all broadcast to.

    >>> broadcast_shapes((3, 1), (4,), ())
    (3, 4)
    """
    result = shapes[0] if shapes else ()
    for shape in shapes[1:]:
        if shape != result:
            result = _broadcast_pair(result, shape)
    return result


def _broadcast_pair(left: Shape, right: Shape) -> Shape:
    ndim = max(len(left), len(right))
    sizes = []
    for dim in range(-ndim, 0):
        one = left[dim] if -dim <= len(left) else 1
        other = right[dim] if -dim <= len(right) else 1
        if one != other and one != 1 and other != 1:
            raise RuntimeError(
                helped(
                    f"The size of tensor a ({one}) must match the size of tensor b ({other}) "
                    f"at non-singleton dimension {ndim + dim}",
                    given=f"shapes {list(left)} and {list(right)}",
                    expected="equal sizes, or 1, in every dimension counted from the right",
                    fix=_broadcast_advice(left, right),
                )
            )
        sizes.append(other if one == 1 else one)
    return tuple(sizes)


def _broadcast_advice(left: Shape, right: Shape) -> str | None:
    """What probably makes the two broadcast, or None."""
    for shorter, longer, letter in ((left, right, "a"), (right, left, "b")):
        if 0 < len(shorter) < len(longer) and longer[: len(shorter)] == shorter:
            ones = ", None" * (len(longer) - len(shorter))
            return f"{letter}[...{ones}] lines up the leading dimensions"
    if len(left) == len(right) == 2 and left == right[::-1]:
        return "b.T swaps the two dimensions"
    return None


def common_device(operands: Iterable[Operand]) -> Device:
    """The device of all tensors; a CPU tensor without dimensions goes with any."""
    found: Layout | None = None
    for each in operands:
        if type(each) is not Layout:
            continue
        if found is None or (found.device.type == "cpu" and not found.shape):
            # A CPU scalar takes the device of whatever stands beside it.
            found = each if found is None or each.device is not found.device else found
        elif each.device is not found.device and (each.device.type != "cpu" or each.shape):
            raise RuntimeError(
                helped(
                    "Expected all tensors to be on the same device, but found at least two "
                    f"devices, {found.device} and {each.device}!",
                    fix=f"tensor.to({str(found.device)!r}) moves the other one",
                )
            )
    if found is None:
        raise RuntimeError("at least one operand must be a tensor")
    return found.device


def elementwise_layout(operands: tuple[Operand, ...], element: dtype) -> Layout:
    """Layout of a fresh elementwise result: broadcast shape, strides in the operands' order of
    dims (so that `x.t() + 1` is laid out as x.t() is), as torch's TensorIterator chooses them."""
    tensors = [each for each in operands if type(each) is Layout]
    if not tensors:
        raise TypeError("at least one operand must be a tensor")
    first = tensors[0]
    key = (elementwise_layout, *tensors[1:], element)
    found = first.memo.get(key)
    if found is None:
        device = common_device(tensors)
        shape = broadcast_shapes(*[each.shape for each in tensors])
        found = layout(shape, _elementwise_strides(tensors, shape), element, device)
        remember(first, key, found)
    return found  # type: ignore[return-value]


def remember(start: Layout, key: object, value: object) -> None:
    """Keep a rule's result with the layout it starts from, a bounded number of them."""
    if len(start.memo) >= _MEMO_LIMIT:
        start.memo.clear()
    start.memo[key] = value


def _elementwise_strides(tensors: Sequence[Layout], shape: Shape) -> Shape:
    if all(each.is_contiguous for each in tensors if len(each.shape) > 1):
        if all(each.shape == shape for each in tensors):
            return contiguous_strides(shape)
    elif all(each.shape == shape for each in tensors):
        if all(is_channels_last(each) for each in tensors):
            return packed_strides(shape, (0, 2, 3, 1))
        first = tensors[0].strides
        if all(each.is_dense and each.strides == first for each in tensors):
            return first
    order = dim_order([broadcast_strides(each, shape) for each in tensors], shape)
    if order == tuple(range(len(shape))):
        return contiguous_strides(shape)
    return packed_strides(shape, order, keep_zero=True)


def is_channels_last(one: Layout, rank: int = 4) -> bool:
    """Whether the dims lie in the order N, H, W, C (or N, D, H, W, C), as torch counts it."""
    if one.ndim != rank:
        return False
    expected = 1
    for dim in (1, *range(rank - 1, 1, -1), 0):
        if one.shape[dim] != 1:
            if one.strides[dim] != expected:
                return False
            expected *= one.shape[dim]
    return True


def broadcast_strides(one: Layout, shape: Shape) -> Shape:
    """Strides of `one` expanded to `shape`: 0 where it has one element for many."""
    missing = len(shape) - one.ndim
    return (0,) * missing + tuple(
        0 if own == 1 and size != 1 else stride
        for own, size, stride in zip(one.shape, shape[missing:], one.strides, strict=True)
    )


def dim_order(strides: Sequence[Shape], shape: Shape) -> tuple[int, ...]:
    """Dims from the slowest to the fastest varying, after the operands' strides in turn: torch's
    insertion sort, in which a broadcast dim decides nothing and ties go to the next operand."""
    order = list(range(len(shape) - 1, -1, -1))  # fastest first
    for position in range(1, len(order)):
        current = position
        for before in range(position - 1, -1, -1):
            decided = _compare_dims(strides, shape, order[before], order[current])
            if decided > 0:
                order[before], order[current] = order[current], order[before]
                current = before
            elif decided < 0:
                break
    return tuple(reversed(order))


def _compare_dims(strides: Sequence[Shape], shape: Shape, one: int, other: int) -> int:
    """1: `one` varies more slowly than `other`; -1: faster; 0: nothing tells."""
    for each in strides:
        if each[one] == 0 or each[other] == 0:
            continue
        if each[one] != each[other]:
            return 1 if each[one] > each[other] else -1
        if shape[one] > shape[other]:
            return 1
    return 0


def packed_strides(shape: Shape, order: tuple[int, ...], keep_zero: bool = False) -> Shape:
    """Strides of a gapless tensor whose dims vary from slowest to fastest in `order`."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim] if keep_zero else max(shape[dim], 1)
    return tuple(strides)


def format_order(memory_format: object, ndim: int) -> tuple[int, ...] | None:
    """Dims from slowest to fastest under a memory format, None for those that name no order.

    >>> format_order("torch.channels_last", 4)
    (0, 2, 3, 1)
    """
    name = str(memory_format).rpartition(".")[2]
    rank = RANKS.get(name)
    if rank is None:
        return None
    if ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {name} format")
    return (0, *range(2, ndim), 1)


def in_format(one: Layout, memory_format: object) -> Layout:
    """A fresh tensor's layout under a memory format."""
    order = format_order(memory_format, one.ndim)
    if order is None:
        return one
    return layout(one.shape, packed_strides(one.shape, order), one.dtype, one.device)


def like_strides(one: Layout) -> Shape:
    """Strides of a fresh copy under torch.preserve_format: the same where they are dense, else
    packed in the same order of dims."""
    if one.is_dense:
        return one.strides
    return _elementwise_strides((one,), one.shape)


def reduced_dims(input: Layout, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """Dims that a reduction folds, sorted; None and () mean all of them."""
    if dim is None:
        return tuple(range(input.ndim))
    if isinstance(dim, int):
        wrapped = wrap_dim(dim, input.ndim)
        return (wrapped,) if input.ndim else ()
    if not dim:
        return tuple(range(input.ndim))
    several = sorted(wrap_dims(dim, input.ndim))
    return tuple(several) if input.ndim else ()


def reduced_shape(shape: Shape, dims: tuple[int, ...], keepdim: bool) -> Shape:
    """Shape once `dims` (wrapped) are folded away, or 1 with keepdim."""
    if keepdim:
        return tuple(1 if dim in dims else size for dim, size in enumerate(shape))
    return tuple(size for dim, size in enumerate(shape) if dim not in dims)


def infer_size(shape: Sequence[int], n_elements: int) -> Shape:
    """`shape` with its -1 filled in. Raises RuntimeError where it does not hold n_elements."""
    unknown = None
    product = 1
    for dim, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = dim
        elif size < 0:
            raise RuntimeError(
                f"invalid shape dimension {size} at index {dim} of shape {list(shape)}"
            )
        else:
            product *= size
    if unknown is None and product == n_elements:
        return tuple(shape)
    if unknown is not None and product > 0 and n_elements % product == 0:
        return (*shape[:unknown], n_elements // product, *shape[unknown + 1 :])
    if unknown is not None and product == 0 and n_elements == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(
        helped(
            f"shape '{list(shape)}' is invalid for input of size {n_elements}",
            given=f"{n_elements} elements for {product}"
            + (" times the unknown size" if unknown is not None else ""),
        )
    )
