"""Products added to something: addmm, baddbmm, addbmm, addmv, addr.

Keeps     beta 0 ignores the input altogether, NaN included.
Touches   ops.define, contraction.matmul.
Not here  plain products (matmul.py)."""

from __future__ import annotations

from typing import Any, ClassVar

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.layout import Layout, contiguous
from flambeau.ops.contraction.matmul import cannot_multiply, check_dtypes, widened
from flambeau.ops.define import Inferred, Number, Operator, c_type_name, operator, type_name
from flambeau.ops.elementwise.arithmetic import check_factor, times


def check_added(input: Layout, shape: tuple[int, ...]) -> None:
    """The input must broadcast to the product's shape."""
    if len(input.shape) > len(shape) or shapes.broadcast_shapes(input.shape, shape) != shape:
        for dim in range(1, len(shape) + 1):
            own = input.shape[-dim] if dim <= input.ndim else 1
            if own not in (1, shape[-dim]):
                raise RuntimeError(
                    f"The expanded size of the tensor ({shape[-dim]}) must match the existing "
                    f"size ({own}) at non-singleton dimension {len(shape) - dim}.  Target sizes: "
                    f"{list(shape)}.  Tensor sizes: {list(input.shape)}"
                )
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(input.shape)}}}, size={list(shape)}): the number of "
            f"sizes provided ({len(shape)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({input.ndim})"
        )


class AddedProduct(Operator):
    """beta * input + alpha * (left @ right)."""

    holomorphic = True
    inplace = True
    specials: ClassVar[dict[str, tuple[float, ...]]] = {"beta": (0, 1), "alpha": (1,)}

    def sum(self, b: Any, input: Any, product: Any, beta: Any, alpha: Any) -> Any:
        """The weighted sum in the input's dtype; weights of 1 cost nothing."""
        values = {"product": product}
        if hasattr(beta, "shape") or beta != 0:
            values["input"] = input
        weights = {"beta": beta, "alpha": alpha}
        values.update({key: each for key, each in weights.items() if hasattr(each, "shape")})
        element = input.dtype

        def formula(k: Any, *expressions: Any) -> Any:
            given = dict(zip(values, expressions, strict=True))
            result = given["product"]
            if alpha != 1:
                result = k.mul(result, given.get("alpha", alpha))
            if "input" not in given:
                return result
            added = given["input"]
            return k.add(added if beta == 1 else k.mul(added, given.get("beta", beta)), result)

        return b.map(formula, *values.values(), compute=element.compute, dtype=element)


@operator("addmm")
class AddMatrixProduct(AddedProduct):
    """beta * input + alpha * (mat1 @ mat2)."""

    saved_for = {"input": (), "mat1": ("mat2",), "mat2": ("mat1",)}

    def infer(
        self, input: Layout, mat1: Layout, mat2: Layout, *, beta: Number = 1, alpha: Number = 1
    ) -> Layout:
        for name, each in (("mat1", mat1), ("mat2", mat2)):
            if each.ndim != 2:
                raise RuntimeError(f"{name} must be a matrix, got {each.ndim}-D tensor")
        if mat1.shape[1] != mat2.shape[0]:
            raise cannot_multiply(*mat1.shape, *mat2.shape)
        for name, one, other in (("self", input, mat2), ("mat1", mat1, mat2)):
            if one.dtype is not other.dtype:
                raise RuntimeError(
                    f"{name} and mat2 must have the same dtype, but got {type_name(one)} and "
                    f"{type_name(other)}"
                )
        check_dtypes(mat1, mat2)
        shape = (mat1.shape[0], mat2.shape[1])
        check_added(input, shape)
        return contiguous(shape, input.dtype, shapes.common_device((input, mat1, mat2)))

    def lower(self, b: Any, input: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
        return self.sum(b, input, b.product(*widened(b, mat1, mat2)), beta, alpha)

    def vjp(
        self, t: Any, grad: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any, needs: Any
    ) -> Any:
        return (
            times(grad, beta) if needs[0] else None,
            times(grad.mm(mat2.t()), alpha) if needs[1] else None,
            times(mat1.t().mm(grad), alpha) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(3, 5), s.real(3, 4), s.real(4, 5)),
            s(s.real(5), s.real(3, 4), s.real(4, 5), beta=0.5, alpha=2.0),
            s(s.real(5), s.real(3, 4), s.real(4, 5), beta=0),
        ]


@operator("baddbmm")
class AddBatchProduct(AddedProduct):
    """beta * input + alpha * (batch1 @ batch2), per batch."""

    saved_for = {"input": (), "batch1": ("batch2",), "batch2": ("batch1",)}
    summed = False

    def infer(
        self, input: Layout, batch1: Layout, batch2: Layout, *, beta: Number = 1, alpha: Number = 1
    ) -> Layout:
        for name, each in (("batch1", batch1), ("batch2", batch2)):
            if each.ndim != 3:
                raise RuntimeError(f"{name} must be a 3D tensor")
        if batch2.shape[:2] != (batch1.shape[0], batch1.shape[2]):
            raise RuntimeError(
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{batch1.shape[0]}, {batch1.shape[2]}] but got: "
                f"[{batch2.shape[0]}, {batch2.shape[1]}]."
            )
        if not input.dtype is batch1.dtype is batch2.dtype:
            names = [c_type_name(each) for each in (input, batch1, batch2)]
            raise RuntimeError(
                f"self and mat2 must have the same dtype, but got {type_name(input)} and "
                f"{type_name(batch1 if input.dtype is not batch1.dtype else batch2)}"
                if self.summed
                else f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, "
                f"batch2: {names[2]}"
            )
        check_dtypes(batch1, batch2, "addmm_impl_cpu_" if self.summed else "baddbmm")
        shape: tuple[int, ...] = (batch1.shape[1], batch2.shape[2])
        if not self.summed:
            shape = (batch1.shape[0], *shape)
        check_added(input, shape)
        return contiguous(shape, input.dtype, shapes.common_device((input, batch1, batch2)))

    def lower(self, b: Any, input: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
        return self.sum(b, input, b.product(*widened(b, batch1, batch2)), beta, alpha)

    def vjp(
        self,
        t: Any,
        grad: Any,
        batch1: Any,
        batch2: Any,
        batch1_layout: Any,
        beta: Any,
        alpha: Any,
        needs: Any,
    ) -> Any:
        into_input = times(grad, beta) if needs[0] else None
        if self.summed:
            grad = grad.expand(batch1_layout.shape[0], *grad.shape)
        return (
            into_input,
            times(grad.bmm(batch2.transpose(1, 2)), alpha) if needs[1] else None,
            times(batch1.transpose(1, 2).bmm(grad), alpha) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [
            s(s.real(2, 3, 5), s.real(2, 3, 4), s.real(2, 4, 5)),
            s(s.real(3, 1), s.real(2, 3, 4), s.real(2, 4, 5), beta=0.5, alpha=2.0),
        ]


@operator("addbmm")
class AddSummedProduct(AddBatchProduct):
    """beta * input + alpha * sum over batches of (batch1 @ batch2)."""

    summed = True

    def lower(self, b: Any, input: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
        # (n, b * k) @ (b * k, m): the sum over batches is part of the product's.
        n_batches, rows, inner = batch1.shape
        left = b.reshape(b.permute(batch1, (1, 0, 2)), (rows, n_batches * inner))
        right = b.reshape(batch2, (n_batches * inner, batch2.shape[2]))
        return self.sum(b, input, b.product(*widened(b, left, right)), beta, alpha)

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 5), s.real(2, 3, 4), s.real(2, 4, 5), beta=0.5, alpha=2.0)]


@operator("addmv")
class AddMatrixVector(AddedProduct):
    """beta * input + alpha * (mat @ vec)."""

    saved_for = {"input": (), "mat": ("vec",), "vec": ("mat",)}

    def infer(
        self, input: Layout, mat: Layout, vec: Layout, *, beta: Number = 1, alpha: Number = 1
    ) -> Layout:
        if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
            raise RuntimeError(
                f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}"
            )
        if mat.shape[1] != vec.shape[0] or input.n_elements not in (1, mat.shape[0]):
            raise RuntimeError(
                f"size mismatch, got input ({input.n_elements}), mat "
                f"({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
            )
        if not input.dtype is mat.dtype is vec.dtype:
            names = [type_name(each) for each in (input, mat, vec)]
            raise RuntimeError(
                f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, "
                f"and {names[2]}"
            )
        check_dtypes(mat, vec, "addmv_impl_cpu")
        device = shapes.common_device((input, mat, vec))
        return contiguous((mat.shape[0],), input.dtype, device)

    def lower(self, b: Any, input: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
        product = b.select(b.product(*widened(b, mat, b.unsqueeze(vec, 1))), 1, 0)
        return self.sum(b, input, product, beta, alpha)

    def vjp(self, t: Any, grad: Any, mat: Any, vec: Any, beta: Any, alpha: Any, needs: Any) -> Any:
        return (
            times(grad, beta) if needs[0] else None,
            times(t.outer(grad, vec), alpha) if needs[1] else None,
            times(mat.t().mv(grad), alpha) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3), s.real(3, 4), s.real(4), beta=0.5, alpha=2.0)]


@operator("addr")
class AddOuter(AddedProduct):
    """beta * input + alpha * outer(vec1, vec2)."""

    saved_for = {"input": (), "vec1": ("vec2",), "vec2": ("vec1",)}

    def infer(
        self, input: Layout, vec1: Layout, vec2: Layout, *, beta: Number = 1, alpha: Number = 1
    ) -> Inferred:
        for name, each in (("vec1", vec1), ("vec2", vec2)):
            if each.ndim != 1:
                raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {each.ndim}-D")
        shape = (vec1.shape[0], vec2.shape[0])
        check_added(input, shape)
        check_factor("beta", beta, input, vec1, vec2)
        check_factor("alpha", alpha, input, vec1, vec2)
        common = promotion.result_type((input, vec1, vec2))
        out = contiguous(shape, common, shapes.common_device((input, vec1, vec2)))
        return Inferred((out,), {"common": common})

    def lower(
        self, b: Any, input: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any, common: dtype
    ) -> Any:
        column, row = b.unsqueeze(vec1, 1), b.unsqueeze(vec2, 0)
        compute = dtypes.uint8 if common is dtypes.bool_ else common.compute
        # torch's loops round this product by itself.
        product = b.map(lambda k, x, y: k.mul(x, y), column, row, compute=compute, dtype=common)
        return b.convert(self.sum(b, b.convert(input, compute), product, beta, alpha), common)

    def vjp(
        self, t: Any, grad: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any, needs: Any
    ) -> Any:
        return (
            times(grad, beta) if needs[0] else None,
            times(grad.mv(vec2), alpha) if needs[1] else None,
            times(grad.t().mv(vec1), alpha) if needs[2] else None,
        )

    def samples(self, s: Any) -> list[Any]:
        return [s(s.real(3, 4), s.real(3), s.real(4), beta=0.5, alpha=2.0)]
