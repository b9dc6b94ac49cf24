"""svd_lowrank and pca_lowrank: the first singular values and vectors, by a random projection.

Keeps     draws are torch's for the same seed.
Touches   random, spectra, decompositions.
Not here  all singular values (spectra.py).
Source    Halko, Martinsson and Tropp, Finding structure with randomness, 2009."""

from __future__ import annotations

from typing import Any

from flambeau.base import promotion
from flambeau.linalg.decompositions import qr
from flambeau.linalg.spectra import svd
from flambeau.random.tensors import randn

__all__ = ["pca_lowrank", "svd_lowrank"]


def _basis(matrices: Any, q: int, niter: int) -> Any:
    """Orthogonal columns that span most of what the matrices map to."""
    floating = matrices.dtype.is_floating_point or matrices.dtype.is_complex
    element = matrices.dtype if floating else promotion.default_dtype()
    found = qr(matrices.matmul(randn(matrices.shape[-1], q, dtype=element)))[0]
    for _ in range(niter):
        found = qr(matrices.mH.matmul(found))[0]
        found = qr(matrices.matmul(found))[0]
    return found


def svd_lowrank(
    A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None
) -> tuple[Any, Any, Any]:
    """U, S and V of A - M nearly equal to U diag(S) V^H, with q singular values.

    >>> import flambeau as torch
    >>> torch.svd_lowrank(torch.diag(torch.tensor([3.0, 1.0, 0.0])), q=2)[1].round()
    tensor([3., 1.])
    """
    matrices = A if M is None else A - M
    is_wide = matrices.shape[-2] < matrices.shape[-1]
    if is_wide:
        matrices = matrices.mH
    basis = _basis(matrices, 6 if q is None else q, 2 if niter is None else niter)
    left, values, right = svd(basis.mH.matmul(matrices), full_matrices=False)
    left, right = basis.matmul(left), right.mH
    return (right, values, left) if is_wide else (left, values, right)


def pca_lowrank(
    A: Any, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Any, Any, Any]:
    """U, S and V of the principal components of the rows of A."""
    most = min(A.shape[-2:])
    if q is None:
        q = min(6, most)
    elif not 0 <= q <= most:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
