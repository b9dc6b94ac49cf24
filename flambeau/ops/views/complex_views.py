"""Complex memory seen as real numbers, and real memory as complex ones.

Keeps     nothing moves: a complex number is its real and imaginary part, one after the other.
Touches   ops.define, base.layout.
Not here  parts as fresh tensors (elementwise/complex_parts.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.errors import helped
from flambeau.base.layout import Layout, layout
from flambeau.ops.define import View, operator, type_name

Seen = tuple[Layout, int]


def _part(given: Layout, offset: int) -> Seen:
    """Every second real number of the memory, from the first or the second on."""
    strides = tuple([2 * stride for stride in given.strides])
    return layout(given.shape, strides, given.dtype.to_real(), given.device), offset


@operator("conj", function=False)
class Conj(View):
    """The conjugates, seen in the same memory; of imaginary parts, those of the conjugates."""

    def view(self, input: Layout) -> Seen:
        return input.conjugated(), 0

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.conj_physical(grad) if grad.is_complex() else -grad

    def samples(self, s: Any) -> list[Any]:
        return [s(s.complex(3, 4)), s(s.complex(3, 4).t())]


@operator("real", function=False)
class Real(View):
    """The real parts; a real tensor itself."""

    def view(self, input: Layout) -> Seen:
        return _part(input, 0) if input.dtype.is_complex else (input, 0)

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad

    def samples(self, s: Any) -> list[Any]:
        return [s(s.complex(3, 4)), s(s.complex(3, 4).t())]


@operator("imag", methods=())
class Imaginary(View):
    """The imaginary parts."""

    def view(self, input: Layout) -> Seen:
        if not input.dtype.is_complex:
            raise RuntimeError(
                helped(
                    "imag is not implemented for tensors with non-complex dtypes.",
                    fix="torch.zeros_like(x): a real number has an imaginary part of 0",
                )
            )
        seen, offset = _part(input, 1)
        return seen.conjugated() if input.is_conj else seen, offset

    def vjp(self, t: Any, grad: Any) -> Any:
        return grad * 1j

    def samples(self, s: Any) -> list[Any]:
        return [s(s.complex(3, 4)), s(s.complex(3, 4).t())]


@operator("view_as_real", methods=())
class ViewAsReal(View):
    """Real and imaginary parts along a last dim of 2."""

    def view(self, input: Layout) -> Seen:
        if not input.dtype.is_complex:
            raise RuntimeError("view_as_real is only supported for complex tensors")
        if input.is_conj:
            raise RuntimeError(
                "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the "
                "conjugate tensor so you can view it as real, use self.resolve_conj(); however, be "
                "warned that the resulting tensor will NOT alias the original."
            )
        strides = (*[2 * stride for stride in input.strides], 1)
        return layout((*input.shape, 2), strides, input.dtype.to_real(), input.device), 0

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.view_as_complex(grad.contiguous())

    def samples(self, s: Any) -> list[Any]:
        return [s(s.complex(3, 4)), s(s.complex())]


@operator("view_as_complex", methods=())
class ViewAsComplex(View):
    """Pairs along a last dim of 2 as complex numbers."""

    def view(self, input: Layout) -> Seen | None:
        if not input.dtype.is_floating_point or input.dtype.itemsize < 4:
            raise RuntimeError(
                "view_as_complex is only supported for half, float and double tensors, but got a "
                f"tensor of scalar type: {type_name(input)}"
            )
        if not input.shape:
            raise RuntimeError("Input tensor must have one or more dimensions")
        if input.shape[-1] != 2:
            raise RuntimeError("Tensor must have a last dimension of size 2")
        if input.strides[-1] != 1:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(stride % 2 for stride in input.strides[:-1]):
            raise RuntimeError(
                "Tensor must have a stride divisible by 2 for all but last dimension"
            )
        if input.is_conj:  # no memory holds both parts negated: those of a copy are seen
            return None
        strides = tuple([stride // 2 for stride in input.strides[:-1]])
        element = input.dtype.to_complex()
        return layout(input.shape[:-1], strides, element, input.device), 0

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.view_as_real(grad)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4, 2)), s(s.real(2))]
