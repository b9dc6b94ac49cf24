"""Tables looked up by number: embedding, embedding_bag, one_hot.

Keeps     the padding row gets no gradient; max_norm shortens rows in place, as torch's.
Touches   tensor.functions.
Not here  gathering (ops.indexing)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording.drawn import shows
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t


def _renormalized(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Rows in use that are longer than max_norm, shortened in place."""
    with no_grad():
        rows = t.index_select(weight, 0, indices.reshape(-1))
        length = t.vector_norm(rows, norm_type, 1, True)
        factor = t.where(length > max_norm, max_norm / (length + 1e-7), 1.0)
        weight.index_copy_(0, indices.reshape(-1), rows * factor)


def rows_of(weight: Any, input: Any, padding_idx: int, by_freq: bool, sparse: bool) -> Any:
    """Rows of a table; where asked for, its gradient is sparse: the rows that were read."""
    if not (sparse and weight.requires_grad and is_grad_enabled()):
        return t.embedding(weight, input, padding_idx, by_freq, False)
    from flambeau.nn.functions.sparse_rows import SparseRowsRead

    return SparseRowsRead.apply(weight, input, padding_idx, by_freq)


def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Rows of `weight` chosen by `input`."""
    if padding_idx is None:
        padding_idx = -1
    else:
        count = weight.shape[0]
        if not -count <= padding_idx < count:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= count
    if max_norm is not None:
        _renormalized(weight, input, max_norm, norm_type)
    return rows_of(weight, input, padding_idx, scale_grad_by_freq, sparse)


@shows("EmbeddingBagBackward0")
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Rows of `weight`, each bag's summed, averaged or their maximum."""
    _check_bags(input, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        own, given = weight.type(), per_sample_weights.type()
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {own} does not equal {given} (while checking "
            "arguments for embedding_bag)"
        )
    if max_norm is not None:
        _renormalized(weight, input, max_norm, norm_type)
    padding = -1 if padding_idx is None else _padding_row(padding_idx, weight.shape[0])
    kept = None if padding_idx is None else input != padding
    try:
        rows = rows_of(weight, input, padding, scale_grad_by_freq, sparse)
    except IndexError:
        raise _outside(input, weight.shape[0]) from None
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if input.dim() == 2 and (mode != "max" or (kept is None and input.shape[1])):
        return _even_bags(rows, kept, mode)
    if input.dim() == 2:
        bags, length = input.shape
        limits = [number * length for number in range(bags + 1)]
        rows, kept = rows.flatten(0, 1), None if kept is None else kept.flatten()
    else:
        limits = _limits(offsets.tolist(), input.shape[0], include_last_offset)
    return _bags(rows, kept, limits, mode)


def _outside(input: Any, n_rows: int) -> RuntimeError:
    """torch's error for the first index that names no row."""
    found = enumerate(input.reshape(-1).tolist())
    place, value = next((n, each) for n, each in found if not 0 <= each < n_rows)
    return RuntimeError(
        f"Index {place} of input takes value {value} which is not in the valid range [0, {n_rows})"
    )


def _check_bags(
    input: Any, offsets: Any, mode: str, scale_grad_by_freq: bool, sparse: bool, weights: Any
) -> None:
    """torch's checks of how bags are given and what is asked of them."""
    if weights is not None and input.shape != weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, then it must "
            f"have the same shape as the input ({input.shape})"
        )
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
            f"fixed length sequences. However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if input.dim() not in (1, 2):
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )


def _padding_row(padding_idx: int, count: int) -> int:
    """The padding row counted from the first."""
    if not -count <= padding_idx < count:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-count} through {count - 1}, "
            f"but got {padding_idx}"
        )
    return padding_idx % count


def _limits(starts: list[int], count: int, include_last_offset: bool) -> list[int]:
    """Where each bag starts and the last one ends."""
    if include_last_offset and not starts:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    if starts and starts[-1] > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
            f"{starts[-1]}"
        )
    return starts if include_last_offset or not starts else [*starts, count]


def _even_bags(rows: Any, kept: Any, mode: str) -> Any:
    """Bags of one length, folded over dim 1 of their rows."""
    if mode == "max":
        return rows.max(1)[0]
    if kept is not None:
        rows = rows * kept.to(rows.dtype).unsqueeze(-1)
    total = rows.sum(1)
    if mode == "sum":
        return total
    if kept is None:
        return total / max(rows.shape[1], 1)
    return total / kept.sum(1, keepdim=True).clamp_min(1).to(rows.dtype)


def _bags(rows: Any, kept: Any, limits: list[int], mode: str) -> Any:
    """Each bag's rows, folded."""
    from flambeau.nn import names as torch

    bounds = list(pairwise(limits))
    numbers = [n for n, own in enumerate(bounds) for _ in range(*own)]
    rows = rows[: len(numbers)]  # a last offset may leave some out
    width = rows.shape[1]
    if mode == "max":
        parts = []
        for start, end in bounds:
            part = rows[start:end] if kept is None else rows[start:end][kept[start:end]]
            parts.append(part.max(0)[0] if part.shape[0] else rows.new_zeros(width))
        return torch.stack(parts) if parts else rows.new_zeros((0, width))
    bag = torch.tensor(numbers, dtype=torch.int64)
    if kept is not None:
        kept = kept[: len(numbers)].to(rows.dtype)
        rows = rows * kept.unsqueeze(1)
    total = rows.new_zeros((len(bounds), width)).index_add(0, bag, rows)
    if mode == "sum":
        return total
    ones = torch.ones(len(numbers), dtype=rows.dtype) if kept is None else kept
    counts = torch.zeros(len(bounds), dtype=rows.dtype).index_add(0, bag, ones)
    return total / counts.clamp_min(1).unsqueeze(1)


def one_hot(input: Any = None, num_classes: int = -1, *, tensor: Any = None) -> Any:
    """1 at each index along a new last dim, 0 elsewhere.

    >>> import flambeau as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    given = tensor if input is None else input
    if given is None:
        raise TypeError('one_hot() missing 1 required positional arguments: "input"')
    if not isinstance(given, Tensor):
        kind = type(given).__name__
        raise TypeError(f"one_hot(): argument 'input' (position 1) must be Tensor, not {kind}")
    if not hasattr(num_classes, "__index__"):
        kind = type(num_classes).__name__
        raise TypeError(f"one_hot(): argument 'num_classes' must be int, not {kind}")
    if given.dtype.name != "int64":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes < 1 and not given.numel():
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes < 1 and given.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(given.max().item()) + 1
    elif num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return t.one_hot(given, num_classes)
