"""Products of matrices and vectors that are more than one product.

Keeps     everything here is recorded operators; nothing needs LAPACK but inverses.
Touches   tensor.functions, factors.
Not here  matmul itself (ops.contraction)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes
from flambeau.gradients.autocast import in_float32
from flambeau.gradients.recording.drawn import shows
from flambeau.linalg import checks
from flambeau.tensor import functions as t
from flambeau.tensor.arguments import refuses
from flambeau.tensor.inplace import stored


def matrix_power(A: Any, n: int, *, out: Any = None) -> Any:
    """A multiplied n times by itself; of the inverse where n is negative.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    checks.square("linalg.matrix_power", A)
    if n < 0:
        from flambeau.linalg.factors import inv

        A, n = inv(A), -n
    made = None
    square = A
    while n:
        if n & 1:
            made = square if made is None else made.matmul(square)
        n >>= 1
        square = square.matmul(square) if n else square
    if made is None:
        made = regardless_of(A, t.eye(A.shape[-1], dtype=A.dtype).expand(A.shape))
    elif made is A:
        made = A.clone()
    return stored(made, out)


def regardless_of(given: Any, made: Any) -> Any:
    """A copy of what does not depend on a tensor of its shape: its gradient there is zero."""
    return t.where(t.zeros(given.shape, dtype=dtypes.bool_), given, made)


def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """The product of several matrices in the order that takes the fewest multiplications.

    >>> import flambeau as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1)])
    tensor([[12.],
            [12.]])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    first, last = tensors[0], tensors[-1]
    for place, each in enumerate(tensors):
        allowed = (1, 2) if place in (0, len(tensors) - 1) else (2,)
        if each.dim() not in allowed:
            kind = "1D or 2D" if len(allowed) == 2 else "2D"
            names = {0: "the first tensor", len(tensors) - 1: "the last tensor"}
            which = names.get(place, f"tensor {place}")
            raise RuntimeError(f"multi_dot(): {which} must be {kind} but got {each.dim()}D")
    matrices = list(tensors)
    if first.dim() == 1:
        matrices[0] = first.unsqueeze(0)
    if last.dim() == 1:
        matrices[-1] = last.unsqueeze(1)
    made = _chain(matrices)
    if last.dim() == 1:
        made = made.squeeze(-1)
    if first.dim() == 1:
        made = made.squeeze(0)
    return stored(made, out)


def _chain(matrices: list[Any]) -> Any:
    """Matrix chain order by dynamic programming."""
    sizes = [matrices[0].shape[0], *(each.shape[1] for each in matrices)]
    count = len(matrices)
    cost = [[0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for low in range(count - length):
            high = low + length
            choices = [
                (cost[low][k] + cost[k + 1][high] + sizes[low] * sizes[k + 1] * sizes[high + 1], k)
                for k in range(low, high)
            ]
            cost[low][high], cut[low][high] = min(choices)

    def product(low: int, high: int) -> Any:
        if low == high:
            return matrices[low]
        at = cut[low][high]
        return t.mm(product(low, at), product(at + 1, high))

    return product(0, count - 1)


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """torch.chain_matmul."""
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(list(matrices), out=out)


@shows("LinalgCrossBackward0")
def cross(input: Any, other: Any, *, dim: int = -1, out: Any = None) -> Any:
    """Vectors that stand on pairs of vectors of three elements."""
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and "
            f"{other.shape[dim]}"
        )
    one, two = input.unbind(dim), other.unbind(dim)
    parts = [
        one[(n + 1) % 3] * two[(n + 2) % 3] - one[(n + 2) % 3] * two[(n + 1) % 3] for n in range(3)
    ]
    made = t.stack(parts, dim)
    return stored(made, out)


@refuses("cross")
def old_cross(input: Any, other: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """torch.cross: along the first dim of size 3 where none is given."""
    if dim is None:
        sizes = list(input.shape)
        if 3 not in sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes.index(3)
    return cross(input, other, dim=dim, out=out)


def vecdot(x: Any, y: Any, *, dim: int = -1, out: Any = None) -> Any:
    """Products of vectors along a dim."""
    made = (x.conj() * y).sum(dim)
    return stored(made, out)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Diagonals of matrices, a view."""
    return A.diagonal(offset, dim1, dim2)


def vander(x: Any, *, N: int | None = None) -> Any:
    """Powers 0 to N - 1 of each element."""
    if not x.dim():
        x = x.reshape(1)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = [t.ones_like(x)]
    while len(powers) < count:
        powers.append(powers[-1] * x)
    return t.stack(powers[:count], -1)


@in_float32
def tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Any:
    """X of tensordot(A, X) = B."""
    from flambeau.linalg.factors import solve

    matrices = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = tuple(matrices.shape[B.dim() :])
    count = prod(shape)
    if count * prod(matrices.shape[: B.dim()]) != count * count:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {count} != {prod(matrices.shape[: B.dim()])}"
        )
    made = solve(matrices.reshape(count, count), B.reshape(-1)).reshape(shape)
    return stored(made, out)


@in_float32
def tensorinv(A: Any, ind: int = 2, *, out: Any = None) -> Any:
    """The inverse of tensordot(A, ., ind)."""
    from flambeau.linalg.factors import inv

    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(first) != prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {prod(last)} != {prod(first)}"
        )
    made = inv(A.reshape(prod(first), prod(last))).reshape(*last, *first)
    return stored(made, out)


@shows("LinalgMatrixExpBackward0")
def matrix_exp(A: Any) -> Any:
    """e to the power of square matrices: Taylor's series of a halved matrix, squared back.

    Computed in float64 or complex128, since squaring doubles the error each time.
    """
    checks.square("linalg.matrix_exp", A)
    if not A.dtype.category > 1:
        checks.floating("linalg.matrix_exp", A)
    if not A.numel():
        return A.clone()
    given, A = A.dtype, A.to(dtypes.complex128 if A.is_complex() else dtypes.float64)
    largest = float(A.detach().abs().sum(-1).max())
    halvings = 0
    while largest > 0.5 and largest == largest and halvings < 64:
        largest, halvings = largest / 2, halvings + 1
    small = A / 2.0**halvings
    eye = t.eye(A.shape[-1], dtype=A.dtype).expand(A.shape)
    made = eye
    for number in range(16, 0, -1):
        made = eye + small.matmul(made) / number
    for _ in range(halvings):
        made = made.matmul(made)
    return made.to(given)
