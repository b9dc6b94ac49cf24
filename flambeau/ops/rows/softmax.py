"""softmax, log_softmax and their gradients, each one row kernel.

Keeps     the gradient reads the result alone.
Touches   ops.define, reduction.
Not here  losses (losses.py, cross_entropy.py), attention (attention.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import shapes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import Inferred, Operator, not_implemented, operator


def shifted(b: Any, elements: Any, dim: Any) -> Any:
    """Elements less the largest along dim, so that exp cannot overflow."""
    largest = b.reduce("max", elements, dim, True)
    return b.map(lambda k, x, m: k.sub(x, m), elements, largest)


def softmax_of(b: Any, elements: Any, dim: Any) -> Any:
    """exp(x) over its sum along dim, rounded once more: a quotient, as torch's."""
    terms = b.map(lambda k, x: k.exp(x), shifted(b, elements, dim))
    total = b.reduce("sum", terms, dim, True)
    return b.map(lambda k, e, s: k.div(e, s), terms, total)


def log_softmax_of(b: Any, elements: Any, dim: Any) -> Any:
    """log(softmax(x)) along dim, without overflow."""
    away = shifted(b, elements, dim)
    total = b.reduce("sum", b.map(lambda k, x: k.exp(x), away), dim, True)
    return b.map(lambda k, x, s: k.sub(x, k.log(s)), away, total)


def softmax_gradient_of(b: Any, grad: Any, out: Any, dim: Any) -> Any:
    """out * (grad - sum(grad * out))."""
    weighted = b.map(lambda k, g, y: k.mul(g, y), grad, out)
    total = b.reduce("sum", weighted, dim, True)
    return b.map(lambda k, g, y, s: k.mul(k.sub(g, s), y), grad, out, total)


class SoftmaxLike(Operator):
    """A function of rows of one dim; `dtype` converts the input first."""

    def infer(self, input: Layout, dim: int, dtype: dtype | None = None) -> Inferred:
        result = dtype or input.dtype
        is_last = not input.ndim or shapes.wrap_dim(dim, input.ndim) == input.ndim - 1
        if not result.is_floating_point:
            place = "_lastdim" if is_last else ""
            raise not_implemented(f"{self.name}{place}_kernel_impl", result)
        at = (shapes.wrap_dim(dim, input.ndim),) if input.ndim else ()
        if not input.ndim:
            shapes.wrap_dim(dim, 0)
        out = contiguous(input.shape, result, input.device)
        return Inferred((out,), {"dim": at, "dtype": result})

    def value(self, b: Any, elements: Any, dim: Any) -> Any:
        """The result, in the compute dtype."""
        raise NotImplementedError

    def lower(self, b: Any, input: Any, dim: Any, dtype: dtype) -> Any:
        elements = b.convert(b.convert(input, dtype), dtype.compute)
        return elements if 0 in input.shape else self.value(b, elements, dim)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), -1), s(s.real(2, 3, 4), 1), s(s.real(), 0)]


@operator("softmax", aliases=("special.softmax",))
class Softmax(SoftmaxLike):
    """exp(x) divided by its sum along a dim."""

    def value(self, b: Any, elements: Any, dim: Any) -> Any:
        return softmax_of(b, elements, dim)

    def vjp(self, t: Any, grad: Any, out: Any, dim: Any) -> Any:
        return t.softmax_backward(grad, out, dim)


@operator("log_softmax", aliases=("special.log_softmax",))
class LogSoftmax(SoftmaxLike):
    """Logarithm of softmax."""

    def value(self, b: Any, elements: Any, dim: Any) -> Any:
        return log_softmax_of(b, elements, dim)

    def vjp(self, t: Any, grad: Any, out: Any, dim: Any) -> Any:
        return t.log_softmax_backward(grad, out, dim)


class SoftmaxGradient(Operator):
    """A gradient from the cotangent and the result."""

    def infer(self, grad_output: Layout, output: Layout, dim: Any) -> Layout:
        return contiguous(output.shape, output.dtype, output.device)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3, 4), (1,)), s(s.real(2, 3, 4), s.real(2, 3, 4), (1,))]


@operator("softmax_backward", function=False)
class SoftmaxBackward(SoftmaxGradient):
    """output * (grad - sum(grad * output))."""

    def lower(self, b: Any, grad_output: Any, output: Any, dim: Any) -> Any:
        grad, out = (b.convert(each, each.dtype.compute) for each in (grad_output, output))
        return grad if 0 in out.shape else softmax_gradient_of(b, grad, out, dim)

    def vjp(self, t: Any, grad: Any, grad_output: Any, output: Any, dim: Any, needs: Any) -> Any:
        into_output = None
        if needs[1]:
            if not dim:
                return grad * 0, grad * 0
            along = (grad * output).sum(dim, True)
            own = (grad_output * output).sum(dim, True)
            into_output = grad * (grad_output - own) - grad_output * along
        return t.softmax_backward(grad, output, dim) if needs[0] else None, into_output


@operator("log_softmax_backward", function=False)
class LogSoftmaxBackward(SoftmaxGradient):
    """grad - exp(output) * sum(grad)."""

    def lower(self, b: Any, grad_output: Any, output: Any, dim: Any) -> Any:
        grad, out = (b.convert(each, each.dtype.compute) for each in (grad_output, output))
        if 0 in out.shape:
            return grad
        total = b.reduce("sum", grad, dim, True)
        return b.map(lambda k, g, y, s: k.sub(g, k.mul(k.exp(y), s)), grad, out, total)

    def vjp(self, t: Any, grad: Any, grad_output: Any, output: Any, dim: Any, needs: Any) -> Any:
        if not dim:
            return grad * 0, grad * 0
        softmax = output.exp()
        weighted = grad * softmax
        return (
            grad - weighted.sum(dim, True) if needs[0] else None,
            -weighted * grad_output.sum(dim, True) if needs[1] else None,
        )
