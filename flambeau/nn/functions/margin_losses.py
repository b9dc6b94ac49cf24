"""Losses of margins and distances.

Keeps     written with recorded operators; the fuser makes one kernel of each.
Touches   tensor.functions, distances.
Not here  the other losses (losses.py)."""

from __future__ import annotations

from typing import Any

from flambeau.nn.functions import reductions
from flambeau.nn.functions.distances import pairwise_distance
from flambeau.tensor import functions as t


def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = reductions.chosen(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reductions.apply((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """input where target is 1, max(0, margin - input) where it is -1."""
    reduction = reductions.chosen(size_average, reduce, reduction)
    zeros = t.zeros_like(input, requires_grad=False)
    far = t.where(target == 1, zeros, (margin - input).clamp_min(0))
    near = t.where(target == -1, zeros, input)
    return reductions.apply(far + near, reduction)


def soft_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """log(1 + exp(-target * input))."""
    reduction = reductions.chosen(size_average, reduce, reduction)
    return reductions.apply((-target * input).exp().log1p(), reduction)


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Mean over classes of binary cross entropies."""
    reduction = reductions.chosen(size_average, reduce, reduction)
    losses = -(target * t.logsigmoid(input) + (1 - target) * t.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    losses = losses.sum(dim=input.dim() - 1) / input.shape[-1]
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return reductions.apply(losses, reduction)


def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Mean over the other classes of max(0, margin - x[target] + x[class])^p."""
    reduction = reductions.chosen(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    rows = input.reshape(-1, input.shape[-1])
    index = target.reshape(-1, 1)
    losses = (margin - rows.gather(1, index) + rows).clamp_min(0)
    if p == 2:
        losses = losses * losses
    if weight is not None:
        losses = losses * weight.index_select(0, index.reshape(-1)).unsqueeze(1)
    losses = losses.scatter(1, index, 0.0).sum(1) / rows.shape[1]
    return reductions.apply(losses.reshape(target.shape), reduction)


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction = reductions.chosen(size_average, reduce, reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported"
        )
    dim = target.dim()
    epsilon = 1e-12
    products = (input1 * input2).sum(dim)
    first = (input1 * input1).sum(dim) + epsilon
    second = (input2 * input2).sum(dim) + epsilon
    cosine = products / (first * second).sqrt()
    zeros = t.zeros_like(cosine, requires_grad=False)
    near = t.where(target == 1, 1 - cosine, zeros)
    far = t.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reductions.apply(near + far, reduction)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""
    reduction = reductions.chosen(size_average, reduce, reduction)

    def distance(one: Any, other: Any) -> Any:
        return pairwise_distance(one, other, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap,
        reduction=reduction,
    )  # fmt: skip


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """The same with a distance of one's own."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = t.minimum(far, distance(positive, negative))
    return reductions.apply((margin + near - far).clamp_min(0), reduction)
