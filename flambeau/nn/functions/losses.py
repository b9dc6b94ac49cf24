"""Losses as torch.nn.functional spells them.

Keeps     each is one operator where torch's is one kernel; torch's warnings and errors.
Touches   tensor.functions.
Not here  margins (distances.py), the formulas (ops.rows)."""

from __future__ import annotations

import math
import warnings
from typing import Any, Final

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.errors import helped
from flambeau.gradients.autocast import in_float32
from flambeau.tensor import Tensor, creation
from flambeau.tensor import functions as t


def legacy_reduction(size_average: Any, reduce: Any, emit_warning: bool = True) -> str:
    """'mean', 'sum' or 'none' for the old flags."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    chosen = "mean" if size_average and reduce else "sum" if reduce else "none"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{chosen}' instead.",
            stacklevel=4,
        )
    return chosen


def chosen_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction, the old flags first."""
    if size_average is not None or reduce is not None:
        return legacy_reduction(size_average, reduce)
    return reduction


def checked_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """chosen_reduction, whose name is refused before anything else is looked at."""
    chosen = chosen_reduction(size_average, reduce, reduction)
    if chosen not in ("none", "mean", "sum"):
        raise ValueError(f"{chosen} is not a valid value for reduction")
    return chosen


def reduced(losses: Any, reduction: str) -> Any:
    """Losses reduced."""
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return losses


def _warn_of_sizes(input: Any, target: Any) -> None:
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _check_weight(weight: Any, input: Any, reduction: str) -> None:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(
            f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'."
        )


def _weighted(losses: Any, weight: Any, reduction: str) -> Any:
    """Losses times weights, reduced; their mean is by the sum of the weights."""
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """-log softmax(input) at the targets, or against target probabilities.

    >>> import flambeau as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(2, 4), torch.tensor([1, 3]))
    tensor(1.3863)
    """
    reduction = chosen_reduction(size_average, reduce, reduction)
    return t.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """-input at the targets: cross_entropy of log-probabilities."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return t.nll_loss(input, target, weight, ignore_index, reduction)


def mse_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """(input - target)^2."""
    _warn_of_sizes(input, target)
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return t.mse_loss(input, target, reduction)
    _check_weight(weight, input, reduction)
    return _weighted((input - target) ** 2, weight, reduction)


def l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", weight: Any = None,
) -> Any:  # fmt: skip
    """|input - target|."""
    _warn_of_sizes(input, target)
    reduction = chosen_reduction(size_average, reduce, reduction)
    if weight is None:
        return t.l1_loss(input, target, reduction)
    _check_weight(weight, input, reduction)
    return _weighted((input - target).abs(), weight, reduction)


def smooth_l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Any:  # fmt: skip
    """Squared below beta, absolute above."""
    _warn_of_sizes(input, target)
    reduction = chosen_reduction(size_average, reduce, reduction)
    if beta == 0.0:
        return t.l1_loss(input, target, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return t.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """Squared below delta, linear above."""
    _warn_of_sizes(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is None:
        return t.huber_loss(input, target, reduction, delta)
    _check_weight(weight, input, reduction)
    return reduced(t.huber_loss(input, target, "none", delta) * weight, reduction)


def kl_div(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", log_target: bool = False,
) -> Any:  # fmt: skip
    """target * (log(target) - input)."""
    if size_average is not None or reduce is not None:
        reduction = chosen_reduction(size_average, reduce, reduction)
        return t.kl_div(input, target, reduction, log_target)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    if reduction == "batchmean":
        total = t.kl_div(input, target, "sum", log_target)
        return total / input.shape[0] if input.dim() else total
    return t.kl_div(input, target, reduction, log_target)


def binary_cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """-(target * log(input) + (1 - target) * log(1 - input))."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if input.numel() and input.is_floating_point() and target.is_floating_point():
        with no_grad():
            inside = [(each >= 0).logical_and(each <= 1).all() for each in (input, target)]
        for name, holds in zip(("input", "target"), inside, strict=True):
            if not holds:
                fix = "input.sigmoid(), or binary_cross_entropy_with_logits, which takes any number"
                raise RuntimeError(
                    helped(
                        f"all elements of {name} should be between 0 and 1",
                        fix=fix if name == "input" else None,
                    )
                )
    return t.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """binary_cross_entropy of sigmoid(input), without overflow."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    return t.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@in_float32
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False,
    size_average: Any = None, eps: float = 1e-8, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """exp(input) - target * input (log_input), else input - target * log(input + eps)."""
    reduction = chosen_reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, reduction)


def _variance(input: Any, var: Any) -> Any:
    """The variance, of a shape that broadcasts over input."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return t.full_like(input, float(var), requires_grad=False)
    if t.lt(var, 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() == input.size():
        return var
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    pairs = list(zip(input.shape, var.shape, strict=False))
    if input.dim() == var.dim() and sum(small for big, small in pairs if big != small) == 1:
        return var
    raise ValueError("var is of incorrect size")


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """(log(var) + (input - target)^2 / var) / 2, var at least eps."""
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction)


# Alignment -----------------------------------------------------------------------------

# Stands for log 0: finite, so that differences of two of them are numbers.
_NOTHING: Final = -1e30


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Minus log of the probability that frames, repeats and blanks taken out, spell a target.

    log_probs   (T, N, C) or (T, C)
    targets     (N, S), or all targets one after the other
    Source      Graves et al., 2006: the forward recursion, in logarithms
    """
    if not log_probs.is_floating_point():
        raise RuntimeError(f"log_probs must be floating point, got {log_probs.dtype}")
    alone = log_probs.dim() == 2
    if alone:
        log_probs, targets = log_probs[:, None], targets.reshape(1, -1)
    frames, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    inputs, lengths = (_lengths(each) for each in (input_lengths, target_lengths))
    for name, given in (("input_lengths", inputs), ("target_lengths", lengths)):
        if len(given) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    if max(inputs, default=0) > frames:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {frames}, but got value {max(inputs)} "
            "(while checking arguments for ctc_loss_cpu)"
        )
    rows = _labels(targets, lengths, batch)
    losses = _ctc(log_probs, rows, inputs, lengths, blank)
    infinite = losses.detach() > 1e29
    if zero_infinity:
        losses = t.masked_fill(losses, infinite, 0)
    else:  # infinite, and without a gradient that is a number
        losses = losses * t.where(infinite, float("inf"), 1.0).to(losses.dtype)
    if reduction == "mean":
        sizes = creation.tensor([max(each, 1) for each in lengths], dtype=losses.dtype)
        return (losses / sizes).mean()
    if reduction == "sum":
        return losses.sum()
    return losses[0] if alone else losses


def _lengths(given: Any) -> list[int]:
    found = given.tolist() if isinstance(given, Tensor) else given
    return [int(each) for each in (found if isinstance(found, (list, tuple)) else [found])]


def _labels(targets: Any, lengths: list[int], batch: int) -> list[list[int]]:
    """Each target's labels."""
    if targets.dim() == 2:
        return [row[:length] for row, length in zip(targets.tolist(), lengths, strict=True)]
    flat, rows, start = targets.tolist(), [], 0
    for length in lengths:
        rows.append(flat[start : start + length])
        start += length
    return rows


def _ctc(
    log_probs: Any, rows: list[list[int]], inputs: list[int], lengths: list[int], blank: int
) -> Any:
    """Losses of a batch; 1e30 and more where no alignment exists."""
    frames, batch, _ = log_probs.shape
    width = 2 * max(lengths, default=0) + 1
    states, skips = [], []
    for row in rows:
        state = [blank] * width
        state[1 : 2 * len(row) : 2] = row
        states.append(state)
        # From two states before, where that is another label and no blank.
        skips.append([n > 1 and n % 2 == 1 and state[n] != state[n - 2] for n in range(width)])
    index = creation.tensor(states).expand(frames, batch, width)
    emitted = t.gather(log_probs, 2, index)
    may_skip = creation.tensor(skips)
    low = creation.tensor([[0.0] * min(2, width) + [_NOTHING] * (width - 2)] * batch)
    alpha = emitted[0] + low.to(log_probs.dtype) if frames else low.to(log_probs.dtype)
    ends = [alpha]
    for frame in range(1, max(inputs, default=0)):
        one = t.constant_pad_nd(alpha, (1, 0), _NOTHING)[:, :width]
        two = t.constant_pad_nd(alpha, (2, 0), _NOTHING)[:, :width]
        before = t.logaddexp(alpha, one)
        alpha = t.where(may_skip, t.logaddexp(before, two), before) + emitted[frame]
        ends.append(alpha)
    last = creation.tensor([max(each - 1, 0) for each in inputs])
    whole = t.stack(ends)[last, t.arange(batch)]
    final = creation.tensor([[2 * each] for each in lengths])
    total = t.logaddexp(t.gather(whole, 1, final), t.gather(whole, 1, t.clamp(final - 1, min=0)))
    single = creation.tensor([[each == 0] for each in lengths])
    losses = -t.where(single, t.gather(whole, 1, final), total)[:, 0]
    # torch's gradient is that of what log_softmax was taken of: it has exp(log_probs), too.
    used = t.arange(frames)[:, None] < creation.tensor(inputs)
    shares = t.masked_fill(log_probs.exp(), t.logical_not(used)[..., None], 0).sum((0, 2))
    return losses + (shares - shares.detach())
