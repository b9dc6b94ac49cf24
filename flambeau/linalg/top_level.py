"""What torch itself and Tensor offer of linear algebra, under the names they have there.

Keeps     where torch's older function differs from torch.linalg's, the older one is meant.
Touches   factors, decompositions, spectra, products.
Not here  torch.linalg (__init__.py)."""

from __future__ import annotations

from flambeau.linalg.decompositions import cholesky_inverse, cholesky_solve, lu_unpack
from flambeau.linalg.decompositions import old_cholesky as cholesky
from flambeau.linalg.decompositions import old_lu as lu
from flambeau.linalg.decompositions import old_lu_solve as lu_solve
from flambeau.linalg.decompositions import old_qr as qr
from flambeau.linalg.factors import det, inverse, logdet, slogdet, triangular_solve
from flambeau.linalg.norms import norm_of_tensor as norm
from flambeau.linalg.products import chain_matmul, matrix_exp, matrix_power
from flambeau.linalg.products import old_cross as cross
from flambeau.linalg.spectra import old_svd as svd
from flambeau.linalg.spectra import pinverse

__all__ = [
    "chain_matmul", "cholesky", "cholesky_inverse", "cholesky_solve", "cross", "det", "inverse",
    "logdet", "lu", "lu_solve", "lu_unpack", "matrix_exp", "matrix_power", "norm", "pinverse", "qr",
    "slogdet", "svd", "triangular_solve",
]  # fmt: skip
