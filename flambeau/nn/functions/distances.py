"""Distances, lengths and bilinear forms; losses of margins between distances.

Keeps     torch's places for eps; written with recorded operators, the fuser makes one kernel of
          each.
Touches   tensor.functions, losses.py (reductions).
Not here  norms (ops.reduction)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes, promotion
from flambeau.base.errors import helped
from flambeau.base.shapes import broadcast_shapes
from flambeau.gradients.autocast import in_float32, outside
from flambeau.gradients.modes import no_grad
from flambeau.gradients.recording.drawn import shows
from flambeau.nn.functions.losses import checked_reduction, chosen_reduction, reduced
from flambeau.ops.define import not_implemented, type_name
from flambeau.tensor import functions as t


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """x / max(|x|_p, eps) along a dim.

    >>> import flambeau as torch
    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = t.vector_norm(input, p, dim, True).clamp_min(eps)
    if out is not None:
        return t.div(input, length.expand_as(input), out=out)
    return input / length


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Cosine of the angle between vectors along a dim.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.0, 0.0])
    >>> torch.nn.functional.cosine_similarity(x, 2 * x, dim=0)
    tensor(1.)
    """
    common = promotion.result_type((x1._layout, x2._layout))
    if not common.is_floating_point:
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{promotion.SCALAR_TYPE_NAMES[common.name]}"
        )
    shape = broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    x1, x2 = (each if each.shape == shape else each.expand(shape) for each in (x1, x2))
    norms = [t.vector_norm(each, 2, dim, True).clone() for each in (x1, x2)]
    with no_grad():  # shorter vectors have the gradient of their own length, as in torch
        for norm in norms:
            norm.clamp_min_(eps)
    return ((x1 / norms[0]) * (x2 / norms[1])).sum(dim)


@shows("NormBackward1")
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """|x1 - x2 + eps|_p along the last dim."""
    difference = x1 - x2 + eps
    return t.vector_norm(difference, p, difference.dim() - 1, keepdim)


@shows("PdistBackward0")
def pdist(input: Any, p: float = 2.0) -> Any:
    """Distances between every two rows, those of the first row first."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    from flambeau.nn import names as torch

    count = input.shape[0]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    first = torch.tensor([i for i, _ in pairs], dtype=torch.int64)
    second = torch.tensor([j for _, j in pairs], dtype=torch.int64)
    return t.vector_norm(input.index_select(0, first) - input.index_select(0, second), p, 1)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1^T weight[o] input2 for every output o; autocast leaves its dtype."""
    given = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        given["bias"] = bias
    if len({each.dtype for each in given.values()}) > 1:
        got = ", ".join(
            f"{name}: {promotion.C_TYPE_NAMES[each.dtype.name]}" for name, each in given.items()
        )
        raise RuntimeError(
            helped(
                f"All tensors must have the same dtype, got {got}",
                fix=f"convert the others with .to({weight.dtype})",
            )
        )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear(): input batch dimensions do not match at dim 0: got "
            f"{input1.shape[0]} and {input2.shape[0]}"
        )
    for number, given, wanted in (
        (1, input1.shape[-1], weight.shape[1]), (2, input2.shape[-1], weight.shape[2]),
    ):  # fmt: skip
        if given != wanted:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {given} but "
                f"expected {wanted}"
            )
    # (n, i) @ (i, o * j) -> (n, o, j); times input2, summed over j
    outputs, n_first, n_second = weight.shape
    if bias is not None and bias.shape[-1] != outputs:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[-1]} but expected "
            f"{outputs}"
        )
    first = input1.reshape(-1, n_first)
    second = input2.reshape(-1, n_second, 1)
    flat = weight.permute(1, 0, 2).reshape(n_first, outputs * n_second)
    result = outside(t.mm, (first, flat)).reshape(-1, outputs, n_second)
    result = outside(t.bmm, (result, second))
    result = result.reshape(*input1.shape[:-1], outputs)
    return result if bias is None else result + bias


@in_float32
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@in_float32
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """input where target is 1, max(0, margin - input) where it is -1."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    zeros = t.zeros_like(input, requires_grad=False)
    far = t.where(target == 1, zeros, (margin - input).clamp_min(0))
    near = t.where(target == -1, zeros, input)
    return reduced(far + near, reduction)


@shows("SoftMarginLossBackward0")
@in_float32
def soft_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """log(1 + exp(-target * input))."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return reduced((-target * input).exp().log1p(), reduction)


def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Mean over classes of binary cross entropies."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    losses = -(target * t.logsigmoid(input) + (1 - target) * t.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    losses = losses.sum(dim=input.dim() - 1) / input.shape[-1]
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return reduced(losses, reduction)


def _rows(input: Any, kernel: str) -> Any:
    """Scores of classes, a row a sample."""
    if input.dim() > 2 or (input.dim() and not input.shape[-1]):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(input.shape)}"
        )
    if not input.is_floating_point():
        raise not_implemented(kernel, input.dtype)
    width = input.shape[-1] if input.dim() else 1
    return input.reshape(input.numel() // width if input.dim() < 2 else input.shape[0], width)


def _check_classes(target: Any, first: int, count: int, sentence: str) -> None:
    """Refuse classes that the input has not, and other numbers than int64."""
    is_long = target.dtype is dtypes.int64
    # torch looks at the numbers of several labels before their dtype.
    if (is_long or first) and target.numel() and not target.is_meta:
        low, high = target.amin().item(), target.amax().item()
        if low < first or high >= count:
            raise RuntimeError(
                helped(
                    sentence,
                    given=f"class {low if low < first else high}",
                    expected=f"{first} to {count - 1}",
                )
            )
    if not is_long:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target._layout)}")


@shows("MultiMarginLossBackward0")
@in_float32
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Mean over the other classes of max(0, margin - x[target] + x[class])^p."""
    reduction = checked_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    rows = _rows(input, "multi_margin_loss_cpu_kernel")
    if target.dim() > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows.shape[0]}], but got "
            f"{list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.numel() != rows.shape[1]:
        raise RuntimeError(
            f"inconsistent weight size, expected {rows.shape[1]} but got {list(weight.shape)}"
        )
    index = target.reshape(-1, 1)
    _check_classes(index, 0, rows.shape[1], "target out of range")
    losses = (margin - rows.gather(1, index) + rows).clamp_min(0)
    if p == 2:
        losses = losses * losses
    if weight is not None:
        losses = losses * weight.index_select(0, index.reshape(-1)).unsqueeze(1)
    losses = losses.scatter(1, index, 0.0).sum(1) / rows.shape[1]
    return reduced(losses.reshape(target.shape), reduction)


@in_float32
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    dim = target.dim()
    epsilon = 1e-12
    products = (input1 * input2).sum(dim)
    first = (input1 * input1).sum(dim) + epsilon
    second = (input2 * input2).sum(dim) + epsilon
    cosine = products / (first * second).sqrt()
    zeros = t.zeros_like(cosine, requires_grad=False)
    near = t.where(target == 1, 1 - cosine, zeros)
    far = t.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return reduced(near + far, reduction)


@in_float32
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""
    reduction = chosen_reduction(size_average, reduce, reduction)

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
    return reduced((margin + near - far).clamp_min(0), reduction)


@shows("MultilabelMarginLossBackward0")
@in_float32
def multilabel_margin_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Mean over classes of max(0, 1 - (x[target] - x[other])), for every target of a row (those
    before its first -1) and every class that is none."""
    reduction = checked_reduction(size_average, reduce, reduction)
    rows = _rows(input, "multilabel_margin_loss_forward_out_frame")
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    _check_classes(target, -1, rows.shape[1], "argument #2 'target' is out of range")
    labels = target.reshape(rows.shape)
    counts = (labels >= 0).to(input.dtype).cumprod(1)  # 1 before the first -1
    index = labels.clamp_min(0)
    taken = t.zeros_like(rows, requires_grad=False).scatter_add(1, index, counts).clamp_max(1)
    margins = 1 - (rows.gather(1, index).unsqueeze(2) - rows.unsqueeze(1))
    weights = counts.unsqueeze(2) * (1 - taken).unsqueeze(1)
    losses = (margins.clamp_min(0) * weights).sum((1, 2)) / rows.shape[1]
    return reduced(losses.reshape(input.shape[:-1]), reduction)
