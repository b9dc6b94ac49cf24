"""Sequences of unequal lengths: padded, packed, and run through recurrent layers.

Keeps     a packed sequence holds the steps of all sequences by time, the longest sequence first.
Touches   tensor.functions, functions/recurrence.py.
Not here  the layers (modules/rnn.py)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from flambeau.base.errors import helped
from flambeau.nn.functions import recurrence
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def invert_permutation(permutation: Any) -> Any:
    """Where each place of a permutation goes."""
    if permutation is None:
        return None
    from flambeau.nn import names as torch

    return torch.empty_like(permutation).scatter_(
        0, permutation, torch.arange(0, permutation.numel())
    )


def _in(name: str) -> Any:
    """A method that converts the data to a dtype."""

    def convert(self: Any) -> Any:
        from flambeau.base import dtypes

        return self.to(dtype=dtypes.by_name(name))

    convert.__doc__ = f"In {name}."
    return convert


class PackedSequence(_Fields):
    """Sequences of unequal lengths; make one with pack_padded_sequence."""

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> Any:  # fmt: skip
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The same in another dtype or on another device; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(
            data, self.batch_sizes, self.sorted_indices,
            self.unsorted_indices,
        )  # fmt: skip

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """The same in host memory."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """The same on a GPU; torch's error where there is none."""
        return type(self)(
            self.data.cuda(*args, **kwargs), self.batch_sizes, self.sorted_indices,
            self.unsorted_indices,
        )  # fmt: skip

    def is_pinned(self) -> bool:
        """Whether it lies in pinned memory."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> Any:
        """The same in pinned memory."""
        return type(self)(
            self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices
        )

    double = _in("float64")
    float = _in("float32")
    half = _in("float16")
    long = _in("int64")
    int = _in("int32")
    short = _in("int16")
    char = _in("int8")
    byte = _in("uint8")

    @property
    def is_cuda(self) -> bool:
        """Whether it is on a GPU."""
        return False


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> Any:
    """Pack (time, batch, ...) whose sequences have the given lengths."""
    from flambeau.nn import names as torch

    if input.dim() < 2:
        raise IndexError(
            helped(
                "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
                given=f"an input of shape {tuple(input.shape)}",
                expected="(time, batch, ...), or (batch, time, ...) with batch_first",
            )
        )
    if isinstance(lengths, Tensor) and lengths.ndim != 1:
        kind = str(lengths.type()).removeprefix("torch.").removesuffix("Tensor")
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D cpu {kind} tensor"
        )
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    counts = [int(each) for each in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    order = list(range(len(counts)))
    if not enforce_sorted:
        order.sort(key=lambda n: -counts[n])
        counts = [counts[n] for n in order]
    longest, batch = input.shape[:2][::-1] if batch_first else input.shape[:2]
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size="
            f"{batch})"
        )
    if any(a < b for a, b in pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if not counts or counts[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element "
                           "in 'lengths' that is <= 0")  # fmt: skip
    if counts[0] > longest:
        raise RuntimeError(f"Expected sequence length to be larger than 0 and at most {longest}")
    sizes = _sizes_of(counts)
    time_step, own_step = (1, longest) if batch_first else (batch, 1)
    rows = [
        time * time_step + n * own_step for time, size in enumerate(sizes) for n in order[:size]
    ]
    data = t.index_select(input.flatten(0, 1), 0, torch.tensor(rows))
    if enforce_sorted:
        return PackedSequence(data, torch.tensor(sizes))
    back = sorted(range(batch), key=order.__getitem__)
    return PackedSequence(data, torch.tensor(sizes), torch.tensor(order), torch.tensor(back))


def _sizes_of(counts: list[int]) -> list[int]:
    """How many of these lengths, the longest first, reach each time."""
    size = len(counts)
    made = []
    for time in range(counts[0]):
        while counts[size - 1] <= time:
            size -= 1
        made.append(size)
    return made


def _checked_sizes(sequence: Any) -> list[int]:
    """Sequences that reach each time, as a packed sequence says it; they only become fewer."""
    sizes: list[int] = sequence.batch_sizes.tolist()
    n_rows = sequence.data.shape[0]
    if not sizes:
        raise IndexError("index 0 is out of bounds for dimension 0 with size 0")
    if any(a < b for a, b in pairwise(sizes)) or sum(sizes) > n_rows:
        raise RuntimeError(
            helped(
                "batch_sizes do not fit the data of a packed sequence",
                given=f"batch_sizes {sizes}, {n_rows} rows of data",
                expected="numbers that never grow, with a row for each",
                fix="make it by pack_padded_sequence or pack_sequence",
            )
        )
    return sizes


def _starts_and_lengths(sizes: list[int]) -> tuple[list[int], list[int]]:
    """The first row of each time in a packed sequence (and of what would follow it), and the
    length of each sequence."""
    starts = [0, *accumulate(sizes)]
    lengths: list[int] = []
    for time in range(len(sizes), 0, -1):
        lengths += [time] * (sizes[time - 1] - len(lengths))
    return starts, lengths


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(padded tensor, lengths) of a packed sequence."""
    from flambeau.nn import names as torch

    sizes = _checked_sizes(sequence)
    longest = len(sizes)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    starts, lengths = _starts_and_lengths(sizes)
    back = sequence.unsorted_indices
    order = range(sizes[0]) if back is None else back.tolist()
    ends = [lengths[n] for n in order]
    padding = sequence.data.shape[0]  # behind the data comes one row of it
    places = [
        [starts[time] + n if time < end else padding for n, end in zip(order, ends, strict=True)]
        for time in range(longest)
    ]
    # torch gathers by sequence after it has padded by time: then the result lies by sequence.
    by_sequence = batch_first and back is not None
    table = list(zip(*places, strict=True)) if by_sequence else places
    tail = tuple(sequence.data.shape[1:])
    filler = torch.full((1, *tail), padding_value, dtype=sequence.data.dtype)
    rows = torch.tensor([row for line in table for row in line])
    padded = t.index_select(t.cat([sequence.data, filler]), 0, rows)
    padded = padded.view(len(table), len(table[0]), *tail)
    if batch_first and not by_sequence:
        padded = padded.transpose(0, 1)
    return padded, torch.tensor(ends)


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:  # fmt: skip
    """Tensors of unequal lengths as one, padded.

    >>> import flambeau as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1)], batch_first=True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if isinstance(sequences, Tensor):
        sequences = list(sequences.unbind(0))
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(each.shape[0] for each in sequences)
    padded = []
    for each in sequences:
        missing = longest - each.shape[0]
        sides = (missing, 0) if padding_side == "left" else (0, missing)
        pad = (0, 0) * (each.dim() - 1) + sides
        padded.append(t.constant_pad_nd(each, pad, padding_value) if missing else each)
    return t.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """A padded tensor as tensors of unequal lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        row[: int(length)]
        for row, length in zip(padded_sequences.unbind(0), lengths.tolist(), strict=True)
    ]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> Any:
    """Pack tensors of unequal lengths.

    >>> import flambeau as torch
    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [each.shape[0] for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: Any) -> list[Any]:
    """A packed sequence as tensors of unequal lengths."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


# Recurrent layers over packed sequences ---------------------------------------------------

# Steps that padding may be of those that count, where one operator takes them all: a step of its
# own costs as much as many rows.
_MAX_PADDING: Final = 8


def run_packed(layer: Any, input: PackedSequence, hx: Any) -> tuple[Any, Any]:
    """What a recurrent layer makes of a packed sequence: (packed outputs, last states)."""
    if input.batch_sizes is None:
        warnings.warn("a PackedSequence without batch_sizes", stacklevel=3)
    sizes = _checked_sizes(input)
    layer.check_input(input.data, input.batch_sizes)
    states = list(layer.first_states(hx, input.data, sizes[0]))
    if hx is not None and input.sorted_indices is not None:
        states = [each.index_select(1, input.sorted_indices) for each in states]
    data, last = _layers(layer, input.data, states, sizes)
    if input.unsorted_indices is not None:
        last = [each.index_select(1, input.unsorted_indices) for each in last]
    output = PackedSequence(data, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
    return output, tuple(last) if layer.mode == "LSTM" else last[0]


def _layers(layer: Any, data: Any, states: list[Any], sizes: list[int]) -> tuple[Any, list[Any]]:
    n_directions = 2 if layer.bidirectional else 1
    finals: list[list[Any]] = [[] for _ in states]
    for number in range(layer.num_layers):
        outputs = []
        for direction in range(n_directions):
            at = number * n_directions + direction
            weights = layer.weights_at(at)
            into = t.linear(data, weights["weight_ih"], weights.get("bias_ih"))
            start = [each[at] for each in states]
            n_padded = len(sizes) * sizes[0]
            is_worth_padding = n_padded <= _MAX_PADDING * into.shape[0]
            if is_worth_padding and recurrence.is_one_operator(layer.mode, into, weights):
                made, last = _padded(layer.mode, into, start, sizes, weights, direction == 1)
            else:
                parts = list(t.split(into, tuple(sizes), 0))
                run = _backwards if direction else _forwards
                by_time, last = run(layer.mode, parts, start, sizes, weights)
                made = t.cat(by_time)
            outputs.append(made)
            for held, each in zip(finals, last, strict=True):
                held.append(each)
        data = outputs[0] if n_directions == 1 else t.cat(outputs, 1)
        data = layer.between_layers(data, number)
    return data, [t.stack(held) for held in finals]


def _padded(
    mode: str, into: Any, start: list[Any], sizes: list[int], weights: Any, is_reverse: bool
) -> tuple[Any, list[Any]]:
    """(packed outputs, last states) of sequences padded behind their ends, in one operator. A
    sequence that is read backwards begins with its end; what is computed from padding is not
    looked at, and has no gradient."""
    from flambeau.nn import names as torch

    starts, lengths = _starts_and_lengths(sizes)
    steps, batch = len(sizes), sizes[0]

    def own(time: int, end: int) -> int:
        return end - 1 - time if is_reverse else time

    rows = [
        starts[own(time, end)] + n if time < end else into.shape[0]
        for time in range(steps)
        for n, end in enumerate(lengths)
    ]
    back = [
        own(time, lengths[n]) * batch + n for time, size in enumerate(sizes) for n in range(size)
    ]
    last = [(end - 1) * batch + n for n, end in enumerate(lengths)]
    padded = t.cat([into, into.new_zeros(1, into.shape[1])]).index_select(0, torch.tensor(rows))
    states = recurrence.states_of(mode, padded.view(steps, batch, -1), start, weights)
    flat = [each.flatten(0, 1) for each in states]
    ends = torch.tensor(last)
    made = flat[0].index_select(0, torch.tensor(back))
    return made, [each.index_select(0, ends) for each in flat]


def _forwards(
    mode: str, parts: list[Any], states: list[Any], sizes: list[int], weights: Any
) -> tuple[list[Any], list[Any]]:
    """Sequences end one after the other, the shortest first."""
    made = []
    ended: list[list[Any]] = [[] for _ in states]
    for part, size in zip(parts, sizes, strict=True):
        if size < states[0].shape[0]:
            for held, each in zip(ended, states, strict=True):
                held.insert(0, each[size:])
            states = [each[:size] for each in states]
        states = list(recurrence.step(mode, part, states, weights))
        made.append(states[0])
    last = [t.cat([each, *held]) for each, held in zip(states, ended, strict=True)]
    return made, last


def _backwards(
    mode: str, parts: list[Any], start: list[Any], sizes: list[int], weights: Any
) -> tuple[list[Any], list[Any]]:
    """Sequences begin one after the other, the longest first."""
    made = []
    states = [each[: sizes[-1]] for each in start]
    for part, size in zip(reversed(parts), reversed(sizes), strict=True):
        count = states[0].shape[0]
        if size > count:
            states = [
                t.cat([each, first[count:size]]) for each, first in zip(states, start, strict=True)
            ]
        states = list(recurrence.step(mode, part, states, weights))
        made.append(states[0])
    made.reverse()
    return made, states
