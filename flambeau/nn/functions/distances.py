"""Distances and lengths: normalize, cosine similarity, pairwise distance, bilinear forms.

Keeps     torch's places for eps.
Touches   tensor.functions.
Not here  norms (ops.reduction)."""

from __future__ import annotations

from typing import Any

from flambeau.tensor import functions as t


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """x / max(|x|_p, eps) along a dim."""
    length = t.vector_norm(input, p, dim, True).clamp_min(eps)
    if out is not None:
        return t.div(input, length.expand_as(input), out=out)
    return input / length


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """Cosine of the angle between vectors along a dim."""
    first = t.vector_norm(x1, 2, dim, True).clamp_min(eps)
    second = t.vector_norm(x2, 2, dim, True).clamp_min(eps)
    return ((x1 / first) * (x2 / second)).sum(dim)


def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """|x1 - x2 + eps|_p along the last dim."""
    difference = x1 - x2 + eps
    return t.vector_norm(difference, p, difference.dim() - 1, keepdim)


def pdist(input: Any, p: float = 2.0) -> Any:
    """Distances between every two rows, those of the first row first."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    import flambeau as torch

    count = input.shape[0]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    first = torch.tensor([i for i, _ in pairs], dtype=torch.int64)
    second = torch.tensor([j for _, j in pairs], dtype=torch.int64)
    return t.vector_norm(
        input.index_select(0, first) - input.index_select(0, second), p, 1
    )


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1^T weight[o] input2 for every output o."""
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
    first = input1.reshape(-1, n_first)
    second = input2.reshape(-1, n_second, 1)
    flat = weight.permute(1, 0, 2).reshape(n_first, outputs * n_second)
    result = first.mm(flat).reshape(-1, outputs, n_second).bmm(second)
    result = result.reshape(*input1.shape[:-1], outputs)
    return result if bias is None else result + bias
