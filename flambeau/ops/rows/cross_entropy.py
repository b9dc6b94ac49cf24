"""Losses over classes: cross_entropy and nll_loss, each one row kernel a direction.

Keeps     logits are read where the targets point; log-probabilities are never stored.
Touches   ops.define, rows.class_targets, rows.softmax, rows.losses.
Not here  what targets are refused (class_targets.py), losses place by place (losses.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import (
    Bound,
    Inferred,
    Operator,
    OptionalTensor,
    Tensor,
    check_floating,
    operator,
)
from flambeau.ops.rows.class_targets import (
    check_class_targets,
    check_shares,
    class_bounds,
    class_dim,
)
from flambeau.ops.rows.losses import check_reduction, reduced
from flambeau.ops.rows.softmax import log_softmax_of, softmax_of


def chosen(b: Any, target: Any, ignore_index: int, n_dims: int) -> tuple[Any, Any]:
    """(targets with ignored ones made class 0, 1 where a target counts and 0 elsewhere)."""
    index = b.convert(target, dtypes.int64)
    if n_dims == 1 and target.shape:  # one row's only target
        index = b.reshape(index, ())
    counts = b.map(lambda k, y: k.ne(y, ignore_index), index)
    return b.map(lambda k, y: k.select(k.ne(y, ignore_index), y, 0), index), counts


def at_target(b: Any, values: Any, index: Any, dim: int) -> Any:
    """values at each target's class, without the class dim."""
    return b.reshape(b.gather(values, dim, b.unsqueeze(index, dim)), tuple(index.shape))


def target_weights(b: Any, weight: Any, index: Any, counts: Any, compute: Any) -> Any:
    """Weight of each target's class, 0 where the target is ignored."""
    if weight is None:
        return b.convert(counts, compute)
    flat = index if index.shape else b.unsqueeze(index, 0)
    taken = b.reshape(b.take(weight, 0, flat), tuple(index.shape))
    return b.map(lambda k, w, c: k.select(c, w, 0.0), b.convert(taken, compute), counts)


def share_of(b: Any, grad: Any, total: Any) -> Any:
    """A mean's cotangent over the sum of the weights; 0 where every target is ignored."""
    return b.map(lambda k, g, n: k.select(k.eq(n, 0.0), 0.0, k.div(g, n)), grad, total)


@operator("nll_loss", function=False)
class NegativeLogLikelihood(Operator):
    """-weight[target] * input[target] per row of log-probabilities, reduced."""

    out = False

    def infer(
        self,
        input: Tensor,
        target: Tensor,
        weight: OptionalTensor = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> Inferred:
        check_reduction(reduction)
        kernel = "nll_loss_out_frame" if input.ndim < 3 else "nll_loss2d_forward_out_frame"
        check_floating(kernel, input)
        shape = check_class_targets(input, target, weight)
        device = shapes.common_device([e for e in (input, target, weight) if e is not None])
        out = contiguous(shape if reduction == "none" else (), input.dtype, device)
        return Inferred((out,), {"ignore_index": ignore_index, "reduction": reduction})

    def bounds(self, input: Layout, ignore_index: int = -100, **rest: Any) -> list[Bound]:
        return class_bounds(input)

    def lower(
        self, b: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str
    ) -> Any:
        index, counts = chosen(b, target, ignore_index, len(input.shape))
        picked = at_target(b, input, index, class_dim(len(input.shape)))
        compute = input.dtype.compute
        weights = target_weights(b, weight, index, counts, compute)
        values = b.map(
            lambda k, x, w, c: k.select(c, k.neg(k.mul(w, x)), 0.0),
            b.convert(picked, compute), weights, counts,
        )  # fmt: skip
        total = b.reduce("sum", weights, None) if reduction == "mean" else None
        return reduced(b, values, reduction, total)

    def vjp(
        self, t: Any, grad: Any, input_layout: Any, target: Any, weight: Any, ignore_index: int,
        reduction: str,
    ) -> Any:  # fmt: skip
        shape = input_layout.shape
        return (
            t.nll_loss_backward(grad, target, weight, shape, ignore_index, reduction),
            None,
            None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 5), s.index(3, below=5)),
            s(s.real(3, 5), s.index(3, below=5), s.constant(5), 1, "sum"),
            s(s.real(2, 5, 3), s.index(2, 3, below=5), None, -100, "none"),
            s(s.real(5), s.index(below=5)),
        ]


@operator("nll_loss_backward", function=False)
class NegativeLogLikelihoodBackward(Operator):
    """Gradient of nll_loss: -weight at each target's class, 0 elsewhere."""

    def infer(
        self, grad_output: Tensor, target: Tensor, weight: OptionalTensor, shape: Any,
        ignore_index: int, reduction: str,
    ) -> Layout:  # fmt: skip
        return contiguous(tuple(shape), grad_output.dtype, grad_output.device)

    def lower(
        self, b: Any, grad_output: Any, target: Any, weight: Any, shape: Any, ignore_index: int,
        reduction: str,
    ) -> Any:  # fmt: skip
        dim = class_dim(len(shape))
        compute = grad_output.dtype.compute
        index, counts = chosen(b, target, ignore_index, len(shape))
        weights = target_weights(b, weight, index, counts, compute)
        scale = b.convert(grad_output, compute)
        if reduction == "mean":
            scale = share_of(b, scale, b.reduce("sum", weights, None))
        scale = b.map(lambda k, w, g: k.neg(k.mul(w, g)), weights, scale)
        return b.map(
            lambda k, place, y, g: k.select(k.eq(place, y), g, 0.0),
            b.iota(tuple(shape), dim), b.unsqueeze(index, dim), b.unsqueeze(scale, dim),
        )  # fmt: skip

    def vjp(
        self, t: Any, grad: Any, target: Any, weight: Any, ignore_index: int, reduction: str
    ) -> Any:
        return t.nll_loss(grad, target, weight, ignore_index, reduction), None, None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(), s.index(3, below=5), None, (3, 5), -100, "mean")]


@operator("cross_entropy", function=False)
class CrossEntropy(Operator):
    """-log softmax(input) at the targets, or against target probabilities of input's shape.

    With label_smoothing e, a target is 1 - e of its class and e / classes of all."""

    out = False

    def infer(
        self,
        input: Tensor,
        target: Tensor,
        weight: OptionalTensor = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> Inferred:
        check_reduction(reduction)
        at = class_dim(input.ndim)
        of_shares = target.shape == input.shape
        if of_shares:
            check_shares(input, target, weight, ignore_index)
        check_floating(
            f"log_softmax{'_lastdim' if at == input.ndim - 1 else ''}_kernel_impl", input
        )
        if of_shares and input.ndim:
            shape = (*input.shape[:at], *input.shape[at + 1 :])
        else:
            shape = check_class_targets(input, target, weight)
        if label_smoothing > 1:
            raise RuntimeError(
                f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
            )
        given = [each for each in (input, target, weight) if each is not None]
        element = promotion.result_type(given) if of_shares else input.dtype
        out = contiguous(shape if reduction == "none" else (), element, shapes.common_device(given))
        return Inferred(
            (out,),
            {"ignore_index": ignore_index, "reduction": reduction,
             "label_smoothing": max(0.0, float(label_smoothing))},
        )  # fmt: skip

    def bounds(
        self, input: Layout, target: Layout, ignore_index: int = -100, **rest: Any
    ) -> list[Bound]:
        probabilities = target.shape == input.shape and target.dtype.is_floating_point
        return [] if probabilities else class_bounds(input)

    def lower(
        self, b: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
        label_smoothing: float,
    ) -> Any:  # fmt: skip
        dim = class_dim(len(input.shape))
        logits = b.convert(input, input.dtype.compute)
        if target.dtype.is_floating_point:
            logits = b.convert(logits, promotion.promote_types(input.dtype, target.dtype).compute)
            weighted = smoothed(b, target, weight, label_smoothing, dim, logits.dtype)
            log_shares = log_softmax_of(b, logits, (dim,))
            terms = b.map(lambda k, p, x: k.mul(p, x), weighted, log_shares)
            values = b.map(lambda k, s: k.neg(s), b.reduce("sum", terms, (dim,)))
            count = b.size_number(prod(values.shape), logits.dtype)
            return reduced(b, values, reduction, count)
        return self.of_classes(
            b, logits, target, weight, ignore_index, reduction, label_smoothing, dim
        )

    def of_classes(
        self, b: Any, logits: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
        label_smoothing: float, dim: int,
    ) -> Any:  # fmt: skip
        """The loss for targets that are class numbers."""
        index, counts = chosen(b, target, ignore_index, len(logits.shape))
        weights = target_weights(b, weight, index, counts, logits.dtype)
        largest = b.reduce("max", logits, (dim,), True)
        away = b.map(lambda k, x, m: k.sub(x, m), logits, largest)
        total = b.reduce("sum", b.map(lambda k, x: k.exp(x), away), (dim,))
        shape = tuple(index.shape)
        picked = at_target(b, logits, index, dim)
        values = b.map(
            lambda k, x, m, s, w, c: k.select(c, k.mul(k.sub(k.log(s), k.sub(x, m)), w), 0.0),
            picked, b.reshape(largest, shape), total, weights, counts,
        )  # fmt: skip
        n = b.reduce("sum", weights, None) if reduction == "mean" else None
        if label_smoothing:
            values = self.with_smoothing(
                b, values, away, total, weight, counts, label_smoothing, dim
            )
        return reduced(b, values, reduction, n)

    def with_smoothing(
        self, b: Any, values: Any, away: Any, total: Any, weight: Any, counts: Any,
        label_smoothing: float, dim: int,
    ) -> Any:  # fmt: skip
        """(1 - e) * values + e / classes * the sum of -log softmax over all classes."""
        n_classes = away.shape[dim]
        log_shares = b.map(lambda k, x, s: k.sub(k.log(s), x), away, b.unsqueeze(total, dim))
        if weight is not None:
            along = b.reshape(weight, _along(weight.shape[0], dim, len(away.shape)))
            log_shares = b.map(lambda k, x, w: k.mul(x, w), log_shares, along)
        everywhere = b.reduce("sum", log_shares, (dim,))
        share = b.size_number(label_smoothing / n_classes, away.dtype)
        return b.map(
            lambda k, x, e, f, c: k.add(
                k.mul(x, 1 - label_smoothing), k.select(c, k.mul(e, f), 0.0)
            ),
            values, everywhere, share, counts,
        )  # fmt: skip

    def vjp(
        self, t: Any, grad: Any, input: Any, target: Any, weight: Any, ignore_index: int,
        reduction: str, label_smoothing: float, needs: Any,
    ) -> Any:  # fmt: skip
        into_input = into_target = None
        settings = (ignore_index, reduction, label_smoothing)
        if needs[0]:
            if t.is_grad_enabled():
                into_input = differentiable_gradient(t, grad, input, target, weight, *settings)
            else:
                into_input = t.cross_entropy_backward(grad, input, target, weight, *settings)
        if needs[1]:
            into_target = -t.log_softmax(input, class_dim(input.dim()))
            if weight is not None:
                into_target = into_target * weight.view(
                    _along(-1, class_dim(input.dim()), input.dim())
                )
            into_target = into_target * _row_scale(grad, input, reduction) * (1 - label_smoothing)
        return into_input, into_target, None

    saved_for = {"input": ("input", "target", "weight"), "target": ("input", "weight")}

    def samples(self, s: Any) -> list[Any]:
        classes = s.index(3, below=5)
        shares = s.real(3, 5, low=0.1, high=1)
        return [
            s(s.real(3, 5), classes),
            s(s.real(3, 5), classes, s.constant(5), 1, "sum"),
            s(s.real(2, 5, 3), s.index(2, 3, below=5), None, -100, "none"),
            s(s.real(3, 5), classes, s.constant(5), 1, "mean", 0.2),
            s(s.real(3, 5), shares, s.constant(5), -100, "mean", 0.2),
            s(s.real(3, 5), shares, None, -100, "none"),
            s(s.real(5), s.index(below=5)),
        ]


def _along(size: int, dim: int, ndim: int) -> tuple[int, ...]:
    """Shape that lays a vector along a dim."""
    return tuple(size if each == dim else 1 for each in range(ndim))


def smoothed(
    b: Any, target: Any, weight: Any, label_smoothing: float, dim: int, compute: Any
) -> Any:
    """Target probabilities, smoothed and weighted."""
    shares = b.convert(target, compute)
    if label_smoothing:
        share = b.size_number(label_smoothing / target.shape[dim], compute)
        shares = b.map(lambda k, p, f: k.add(k.mul(p, 1 - label_smoothing), f), shares, share)
    if weight is not None:
        along = b.reshape(weight, _along(weight.shape[0], dim, len(target.shape)))
        shares = b.map(lambda k, p, w: k.mul(p, w), shares, b.convert(along, compute))
    return shares


def _row_scale(grad: Any, input: Any, reduction: str) -> Any:
    """Cotangent of each row's loss, with the class dim as 1 (probability targets)."""
    if reduction == "none":
        return grad.unsqueeze(class_dim(input.dim()))
    if reduction == "sum":
        return grad
    return grad / (input.numel() // input.shape[class_dim(input.dim())])


@operator("cross_entropy_backward", function=False)
class CrossEntropyBackward(Operator):
    """(sum of the target's weights) * softmax - the weights, times each row's cotangent."""

    differentiable = False

    def infer(
        self, grad_output: Tensor, input: Tensor, target: Tensor, weight: OptionalTensor,
        ignore_index: int, reduction: str, label_smoothing: float,
    ) -> Layout:  # fmt: skip
        return contiguous(input.shape, input.dtype, input.device)

    def lower(
        self, b: Any, grad_output: Any, input: Any, target: Any, weight: Any, ignore_index: int,
        reduction: str, label_smoothing: float,
    ) -> Any:  # fmt: skip
        dim = class_dim(len(input.shape))
        logits = b.convert(input, input.dtype.compute)
        grad = b.convert(grad_output, logits.dtype)
        # What belongs to rows comes first: the kernel of the shares then reads it and ends with
        # the gradient, and stores nothing else.
        if target.dtype.is_floating_point:
            if reduction == "mean":
                rows = b.size_number(prod(input.shape) // input.shape[dim], logits.dtype)
                grad = b.map(lambda k, g, n: k.div(g, n), grad, rows)
            if reduction == "none":
                grad = b.unsqueeze(grad, dim)
            shares = softmax_of(b, logits, (dim,))
            wanted = smoothed(b, target, weight, label_smoothing, dim, logits.dtype)
            return self.of_shares(b, shares, wanted, grad, dim)
        index, counts = chosen(b, target, ignore_index, len(input.shape))
        weights = target_weights(b, weight, index, counts, logits.dtype)
        if reduction == "mean":
            grad = share_of(b, grad, b.reduce("sum", weights, None))
        index, counts, weights = (b.unsqueeze(each, dim) for each in (index, counts, weights))
        if reduction == "none":
            grad = b.unsqueeze(grad, dim)
        places = b.iota(tuple(input.shape), dim)
        shares = softmax_of(b, logits, (dim,))
        if not label_smoothing:
            return b.map(
                lambda k, p, w, place, y, g: k.mul(
                    k.sub(k.mul(w, p), k.select(k.eq(place, y), w, 0.0)), g
                ),
                shares, weights, places, index, grad,
            )  # fmt: skip
        wanted = b.map(
            lambda k, place, y, w: k.select(k.eq(place, y), w, 0.0), places, index, weights
        )
        wanted = self.with_smoothing(b, wanted, counts, weight, label_smoothing, dim)
        return self.of_shares(b, shares, wanted, grad, dim)

    def of_shares(self, b: Any, shares: Any, wanted: Any, grad: Any, dim: int) -> Any:
        """(sum of wanted * shares - wanted) * grad, for weights of every class in every row."""
        whole = b.reduce("sum", wanted, (dim,), True)
        return b.map(
            lambda k, p, w, q, g: k.mul(k.sub(k.mul(w, p), q), g), shares, whole, wanted, grad
        )

    def with_smoothing(
        self, b: Any, wanted: Any, counts: Any, weight: Any, label_smoothing: float, dim: int
    ) -> Any:
        """Weight of every class in every row that counts, smoothed."""
        compute = wanted.dtype
        share = b.size_number(label_smoothing / wanted.shape[dim], compute)
        everywhere = b.map(lambda k, c, f: k.mul(c, f), b.convert(counts, compute), share)
        if weight is not None:
            along = b.reshape(weight, _along(weight.shape[0], dim, len(wanted.shape)))
            everywhere = b.map(lambda k, e, w: k.mul(e, w), everywhere, b.convert(along, compute))
        return b.map(lambda k, q, e: k.add(k.mul(q, 1 - label_smoothing), e), wanted, everywhere)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(), s.real(3, 5), s.index(3, below=5), None, -100, "mean", 0.0)]


def differentiable_gradient(
    t: Any, grad: Any, input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Any:  # fmt: skip
    """cross_entropy_backward made of plain operators, for gradients of gradients."""
    dim = class_dim(input.dim())
    n_classes = input.shape[dim]
    along = None if weight is None else weight.view(_along(-1, dim, input.dim()))
    if target.is_floating_point():
        wanted = target * (1 - label_smoothing) + label_smoothing / n_classes
        wanted = wanted if along is None else wanted * along
        scale = _row_scale(grad, input, reduction)
    else:
        target = target.long().view(()) if input.dim() == 1 else target.long()
        counts = (target != ignore_index).unsqueeze(dim)
        index = t.where(target == ignore_index, 0, target).unsqueeze(dim)
        hot = t.zeros(input.shape, dtype=input.dtype, device=input.device)
        hot = hot.scatter(dim, index, 1) * counts
        weighted = hot if along is None else hot * along
        smooth = counts if along is None else counts * along
        wanted = weighted * (1 - label_smoothing) + smooth * (label_smoothing / n_classes)
        scale = grad.unsqueeze(dim) if reduction == "none" else grad
        if reduction == "mean":
            total = weighted.sum()
            scale = t.masked_fill(scale / total, total == 0, 0)
    shares = t.softmax(input, dim)
    return (shares * wanted.sum(dim, True) - wanted) * scale
