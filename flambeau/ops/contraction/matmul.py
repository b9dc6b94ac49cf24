"""Matrix products of every rank: mm, bmm, matmul, mv, dot, outer, linear.

Keeps     operands have one dtype; the order of every sum is that of the product kernel (DESIGN 7).
Touches   ops.define, base.shapes.
Not here  products added to something (added_products.py), einsum (einsum.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.define import (
    Inferred,
    Operator,
    OptionalTensor,
    Tensor,
    c_type_name,
    not_implemented,
    operator,
    type_name,
)


def check_dtypes(one: Layout, other: Layout, kernel: str = "addmm_impl_cpu_") -> None:
    """Products never promote, and there is none of bool; `kernel` is torch's name for it."""
    if one.dtype is dtypes.bool_ and other.dtype is dtypes.bool_:
        raise not_implemented(kernel, one.dtype)
    if one.dtype is other.dtype:
        if one.dtype in dtypes.WIDE_UNSIGNED:
            raise not_implemented(kernel, one.dtype)
        return
    if kernel == "dot":
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{type_name(one)} and {type_name(other)}"
        )
    if kernel == "addmv_impl_cpu":
        names = f"{type_name(other)}, {type_name(one)}, and {type_name(other)}"
        raise RuntimeError(
            helped(
                f"addmv input tensors must have the same dtype, but got {names}",
                given=f"a matrix of {one.dtype}, a vector of {other.dtype}",
                fix=f"convert one with .to({one.dtype})",
            )
        )
    if kernel == "bmm":
        if one.dtype is dtypes.bool_:
            raise not_implemented(kernel, one.dtype)
        raise RuntimeError(f"expected scalar type {type_name(one)} but found {type_name(other)}")
    raise RuntimeError(
        helped(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{c_type_name(one)} != {c_type_name(other)}",
            fix=f"convert one with .to({one.dtype})",
        )
    )


def cannot_multiply(
    rows: int, inner: int, other_inner: int, columns: int, *, fix: str | None = None
) -> RuntimeError:
    """torch's error where the inner sizes differ."""
    if fix is None and inner == columns:
        fix = "transpose the second matrix: mat2.T"
    return RuntimeError(
        helped(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{inner} and "
            f"{other_inner}x{columns})",
            expected=f"{inner} = {other_inner}, the inner sizes",
            fix=fix,
        )
    )


def folded_product(b: Any, left: Any, right: Any) -> Any:
    """left @ right; many matrices times one are one tall matrix times it, where strides allow."""
    if len(left.shape) == 2 or len(right.shape) != 2:
        return b.product(left, right)
    rows = prod(left.shape[:-1])
    if not b.can_view(left, (rows, left.shape[-1])):
        return b.product(left, right)
    tall = b.reshape(left, (rows, left.shape[-1]))
    return b.reshape(b.product(tall, right), (*left.shape[:-1], right.shape[-1]))


def widened(b: Any, *values: Any) -> tuple[Any, ...]:
    """Floats of 16 bits as the float32 that products are summed in: what is added to a product is
    rounded with it, once."""
    narrow = [each.dtype.is_floating_point and each.dtype.itemsize < 4 for each in values]
    return tuple(
        b.convert(each, each.dtype.compute) if is_narrow else each
        for each, is_narrow in zip(values, narrow, strict=True)
    )


@operator("mm")
class MatrixProduct(Operator):
    """(n, k) @ (k, m) -> (n, m)."""

    holomorphic = True
    saved_for = {"input": ("mat2",), "mat2": ("input",)}

    def infer(self, input: Layout, mat2: Layout) -> Layout:
        if input.ndim != 2:
            raise RuntimeError("self must be a matrix")
        if mat2.ndim != 2:
            raise RuntimeError("mat2 must be a matrix")
        if input.shape[1] != mat2.shape[0]:
            raise cannot_multiply(*input.shape, *mat2.shape)
        check_dtypes(input, mat2)
        shape = (input.shape[0], mat2.shape[1])
        return contiguous(shape, input.dtype, shapes.common_device((input, mat2)))

    def lower(self, b: Any, input: Any, mat2: Any) -> Any:
        return b.product(input, mat2)

    def vjp(self, t: Any, grad: Any, input: Any, mat2: Any, needs: Any) -> Any:
        return (
            grad.mm(mat2.t()) if needs[0] else None,
            input.t().mm(grad) if needs[1] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(4, 5)), s(s.real(4, 3).t(), s.real(5, 4).t())]


@operator("bmm")
class BatchProduct(Operator):
    """A matrix product per batch: (b, n, k) @ (b, k, m) -> (b, n, m)."""

    holomorphic = True
    saved_for = {"input": ("mat2",), "mat2": ("input",)}

    def infer(self, input: Layout, mat2: Layout) -> Layout:
        for name, each in (("batch1", input), ("batch2", mat2)):
            if each.ndim != 3:
                raise RuntimeError(f"{name} must be a 3D tensor")
        if mat2.shape[:2] != (input.shape[0], input.shape[2]):
            raise RuntimeError(
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{input.shape[0]}, {input.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
            )
        check_dtypes(input, mat2, "bmm")
        shape = (input.shape[0], input.shape[1], mat2.shape[2])
        return contiguous(shape, input.dtype, shapes.common_device((input, mat2)))

    def lower(self, b: Any, input: Any, mat2: Any) -> Any:
        return b.product(input, mat2)

    def vjp(self, t: Any, grad: Any, input: Any, mat2: Any, needs: Any) -> Any:
        return (
            grad.bmm(mat2.transpose(1, 2)) if needs[0] else None,
            input.transpose(1, 2).bmm(grad) if needs[1] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(2, 3, 4), s.real(2, 4, 5))]


@operator("matmul", methods=("matmul",), aliases=("linalg.matmul",))
class Matmul(Operator):
    """Matrix product over the last two dims, the others broadcast; vectors count as a row on the
    left, as a column on the right, and leave no dim behind."""

    holomorphic = True
    saved_for = {"input": ("input", "other"), "other": ("input", "other")}

    def infer(self, input: Layout, other: Layout) -> Layout:
        if input.ndim == 0 or other.ndim == 0:
            raise RuntimeError(
                f"both arguments to matmul need to be at least 1D, but they are {input.ndim}D and "
                f"{other.ndim}D"
            )
        left = input.shape if input.ndim > 1 else (1, *input.shape)
        right = other.shape if other.ndim > 1 else (*other.shape, 1)
        self.check_inner(input, other, left, right)
        check_dtypes(input, other, self.kernel(input, other))
        batch = shapes.broadcast_shapes(left[:-2], right[:-2])
        shape = (
            *batch,
            *(left[-2:-1] if input.ndim > 1 else ()),
            *(right[-1:] if other.ndim > 1 else ()),
        )
        return contiguous(shape, input.dtype, shapes.common_device((input, other)))

    def kernel(self, input: Layout, other: Layout) -> str:
        """The product of torch's that takes these ranks, for errors."""
        if input.ndim == 1 and other.ndim == 1:
            return "dot"
        if input.ndim > 1 and other.ndim == 1:
            return "addmv_impl_cpu"
        return "bmm" if other.ndim > 2 else "addmm_impl_cpu_"

    def check_inner(self, input: Layout, other: Layout, left: Any, right: Any) -> None:
        """Refuse inner sizes that differ, in the words of the product torch falls back on."""
        if left[-1] == right[-2]:
            return
        if input.ndim == 1 and other.ndim == 1:
            raise inconsistent_sizes(input, other)
        if other.ndim == 1:
            rows = prod(left[:-1])
            raise RuntimeError(
                f"size mismatch, got input ({rows}), mat ({rows}x{left[-1]}), vec ({right[-2]})"
            )
        if input.ndim <= 2 and other.ndim <= 2:
            raise cannot_multiply(*left, *right)
        if other.ndim <= 2:
            raise cannot_multiply(prod(left[:-1]), left[-1], *right)
        n_batches = prod(shapes.broadcast_shapes(left[:-2], right[:-2]))
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{n_batches}, {left[-1]}] but got: [{n_batches}, {right[-2]}]."
        )

    def lower(self, b: Any, input: Any, other: Any) -> Any:
        left = input if len(input.shape) > 1 else b.unsqueeze(input, 0)
        right = other if len(other.shape) > 1 else b.unsqueeze(other, 1)
        result = folded_product(b, left, right)
        if len(input.shape) == 1:
            result = b.select(result, len(result.shape) - 2, 0)
        if len(other.shape) == 1:
            result = b.select(result, len(result.shape) - 1, 0)
        return result

    def vjp(self, t: Any, grad: Any, input: Any, other: Any, needs: Any) -> Any:
        rank, other_rank = input.dim(), other.dim()
        if rank == 1:
            input, grad = input.unsqueeze(0), grad.unsqueeze(-1 if other_rank == 1 else -2)
        if other_rank == 1:
            other = other.unsqueeze(1)
            grad = grad if rank == 1 else grad.unsqueeze(-1)
        if rank == 1 and other_rank == 1:
            grad = grad.unsqueeze(-1)
        left = right = None
        if needs[0]:
            left = grad.matmul(other.transpose(-1, -2))
            left = left.squeeze(-2) if rank == 1 else left
        if needs[1]:
            right = self.right_gradient(grad, input, other)
            right = right.squeeze(-1) if other_rank == 1 else right
        return left, right

    def right_gradient(self, grad: Any, input: Any, other: Any) -> Any:
        """input^T @ grad; over a batch that shares one matrix, one product."""
        if other.dim() == 2 and input.dim() > 2:
            count = prod(input.shape[:-1])  # said, for shapes that hold no elements
            rows = input.reshape(count, input.shape[-1])
            return rows.t().matmul(grad.reshape(count, grad.shape[-1]))
        return input.transpose(-1, -2).matmul(grad)

    def samples(self, s: Any) -> list[Any]:
        pairs = (
            ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
            ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 1, 2, 3), (5, 3, 4)),
        )  # fmt: skip
        return [s(s.real(*left), s.real(*right)) for left, right in pairs]


def inconsistent_sizes(one: Layout, other: Layout) -> RuntimeError:
    """torch's error of dot for vectors of different lengths."""
    return RuntimeError(
        f"inconsistent tensor size, expected tensor [{one.shape[0]}] and src [{other.shape[0]}] to "
        f"have the same number of elements, but got {one.shape[0]} and {other.shape[0]} elements "
        "respectively"
    )


@operator("mv")
class MatrixVector(Operator):
    """(n, k) @ (k,) -> (n,)."""

    out_refusal = (
        "addmv input tensors must have the same dtype, but got {given}, {result}, and {result}"
    )

    holomorphic = True
    saved_for = {"input": ("vec",), "vec": ("input",)}

    def infer(self, input: Layout, vec: Layout) -> Layout:
        if input.ndim != 2 or vec.ndim != 1:
            raise RuntimeError(
                f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}"
            )
        rows, inner = input.shape
        if inner != vec.shape[0]:
            raise RuntimeError(
                f"size mismatch, got input ({rows}), mat ({rows}x{inner}), vec ({vec.shape[0]})"
            )
        check_dtypes(input, vec, "addmv_impl_cpu")
        return contiguous((rows,), input.dtype, shapes.common_device((input, vec)))

    def lower(self, b: Any, input: Any, vec: Any) -> Any:
        return b.select(b.product(input, b.unsqueeze(vec, 1)), 1, 0)

    def vjp(self, t: Any, grad: Any, input: Any, vec: Any, needs: Any) -> Any:
        return (
            t.outer(grad, vec) if needs[0] else None,
            input.t().mv(grad) if needs[1] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(4))]


@operator("dot")
class Dot(Operator):
    """Sum of the products of two vectors."""

    out_refusal = "result dtype {given} does not match input dtype {result}"

    holomorphic = True
    saved_for = {"input": ("tensor",), "tensor": ("input",)}

    def infer(self, input: Layout, tensor: Layout) -> Layout:
        if input.ndim != 1 or tensor.ndim != 1:
            raise RuntimeError(
                f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors"
            )
        check_dtypes(input, tensor, "dot")
        if input.shape != tensor.shape:
            raise inconsistent_sizes(input, tensor)
        return contiguous((), input.dtype, shapes.common_device((input, tensor)))

    def lower(self, b: Any, input: Any, tensor: Any) -> Any:
        row, column = b.unsqueeze(input, 0), b.unsqueeze(tensor, 1)
        return b.reshape(b.product(row, column), ())

    def vjp(self, t: Any, grad: Any, input: Any, tensor: Any, needs: Any) -> Any:
        return grad * tensor if needs[0] else None, grad * input if needs[1] else None

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(5), s.real(5))]


@operator("outer", methods=("outer", "ger"), aliases=("ger",))
class Outer(Operator):
    """Every product of an element of one vector with one of another."""

    out_refusal = None

    holomorphic = True
    saved_for = {"input": ("vec2",), "vec2": ("input",)}

    def infer(self, input: Layout, vec2: Layout) -> Inferred:
        for name, each in (("self", input), ("vec2", vec2)):
            if each.ndim != 1:
                raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {each.ndim}-D")
        element = promotion.result_type((input, vec2))
        shape = (input.shape[0], vec2.shape[0])
        out = contiguous(shape, element, shapes.common_device((input, vec2)))
        return Inferred((out,), {"common": element})

    def lower(self, b: Any, input: Any, vec2: Any, common: dtype) -> Any:
        left, right = b.unsqueeze(input, 1), b.unsqueeze(vec2, 0)
        compute = dtypes.uint8 if common is dtypes.bool_ else common.compute
        return b.map(lambda k, x, y: k.mul(x, y), left, right, compute=compute, dtype=common)

    def vjp(self, t: Any, grad: Any, input: Any, vec2: Any, needs: Any) -> Any:
        return (
            grad.matmul(vec2) if needs[0] else None,
            input.matmul(grad) if needs[1] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3), s.real(4))]


def _check_bias(shape: tuple[int, ...], input: Layout, weight: Layout, bias: Layout) -> None:
    """What linear() adds to its product."""
    if bias.dtype is not input.dtype:
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{type_name(bias)} and {type_name(weight)}"
        )
    if weight.ndim == 1 and input.ndim == 2:
        raise RuntimeError(
            helped(
                "mat2 must be a matrix, got 1-D tensor",
                fix="add the bias to the product: linear(input, weight) + bias",
            )
        )
    if shapes.broadcast_shapes(shape, bias.shape) == shape:
        return
    if weight.ndim == 1:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape "
            f"{list(shapes.broadcast_shapes(shape, bias.shape))}"
        )
    raise RuntimeError(
        f"The expanded size of the tensor ({shape[-1]}) must match the existing size "
        f"({bias.shape[-1]}) at non-singleton dimension 1.  Target sizes: "
        f"{[prod(shape[:-1]), shape[-1]]}.  Tensor sizes: {list(bias.shape)}"
    )


@operator("linear", function=False, aliases=("nn.functional.linear",))
class Linear(Operator):
    """input @ weight.T + bias over the last dim."""

    holomorphic = True
    out = False
    saved_for = {"input": ("weight",), "weight": ("input",), "bias": ()}

    def infer(self, input: Tensor, weight: Tensor, bias: OptionalTensor = None) -> Layout:
        if input.ndim == 0 or weight.ndim == 0:
            raise RuntimeError(
                f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and "
                f"{weight.ndim}D"
            )
        if weight.ndim == 1:
            shape = Matmul().infer(input, weight).shape
        elif weight.ndim > 2:
            raise RuntimeError(
                helped(
                    f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D",
                    expected="a weight of one dim or two",
                )
            )
        else:
            self._check_matrices(input, weight, bias)
            shape = (*input.shape[:-1], weight.shape[0])
        if bias is not None:
            _check_bias(shape, input, weight, bias)
        given = [each for each in (input, weight, bias) if each is not None]
        return contiguous(shape, input.dtype, shapes.common_device(given))

    def _check_matrices(self, input: Layout, weight: Layout, bias: Layout | None) -> None:
        if bias is not None and input.dtype is not weight.dtype:
            raise RuntimeError(
                helped(
                    "mat1 and mat2 must have the same dtype, but got "
                    f"{type_name(input)} and {type_name(weight)}",
                    given=f"input of {input.dtype}, weight of {weight.dtype}",
                    fix=f"convert the input with .to({weight.dtype}), or the module",
                )
            )
        if input.shape[-1] != weight.shape[1]:
            rows = prod(input.shape[:-1])
            given, wanted = input.shape[-1], weight.shape[1]
            fix = f"an input of {wanted} features in its last dim, or in_features={given}"
            raise cannot_multiply(rows, given, wanted, weight.shape[0], fix=fix)
        check_dtypes(input, weight)

    def lower(self, b: Any, input: Any, weight: Any, bias: Any) -> Any:
        element = input.dtype
        if bias is not None:
            input, weight = widened(b, input, weight)
        if len(weight.shape) == 1:
            weight = b.unsqueeze(weight, 0)
            result = b.select(self.lower(b, input, weight, None), len(input.shape) - 1, 0)
        else:
            left = input if len(input.shape) > 1 else b.unsqueeze(input, 0)
            result = folded_product(b, left, b.transpose(weight, 0, 1))
            result = result if len(input.shape) > 1 else b.select(result, 0, 0)
        if bias is None:
            return result
        return b.map(
            lambda k, x, y: k.add(x, y), result, bias, compute=element.compute, dtype=element
        )

    def vjp(
        self, t: Any, grad: Any, input: Any, weight: Any, weight_layout: Any, needs: Any
    ) -> Any:
        into_bias = grad if needs[2] else None
        if weight_layout.ndim == 1:
            grad = grad.unsqueeze(-1)
            return (
                grad * weight if needs[0] else None,
                grad * input if needs[1] else None,
                into_bias,
            )
        into_weight = None
        if needs[1]:
            rows = grad, input
            if grad.ndim != 2:
                count = prod(input.shape[:-1])
                rows = tuple(each.reshape(count, each.shape[-1]) for each in (grad, input))
            into_weight = rows[0].t().mm(rows[1])
        return grad.matmul(weight) if needs[0] else None, into_weight, into_bias

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(2, 3), s.real(4, 3), s.real(4)),
            s(s.real(5, 2, 3), s.real(4, 3)),
            s(s.real(3), s.real(4, 3), s.real(4)),
        ]
