"""torch.linalg: where each function lives.

Keeps     nothing is imported before it is asked for; LAPACK not before it is needed.
Touches   the files named here, lazily.
Not here  any logic but that calls may be taken over."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flambeau.base.missing import missing_name
from flambeau.tensor.overriding.serving import served

_FILES: dict[str, tuple[str, ...]] = {
    "decompositions": (
        "cholesky", "cholesky_ex", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "qr",
    ),
    "factors": ("det", "inv", "inv_ex", "slogdet", "solve", "solve_ex", "solve_triangular"),
    "reflectors": ("householder_product",),
    "spectra": (
        "eig", "eigh", "eigvals", "eigvalsh", "matrix_rank", "pinv", "svd", "svdvals",
    ),
    "least_squares": ("lstsq",),
    "norms": ("cond", "matrix_norm", "norm", "vector_norm"),
    "products": (
        "cross", "diagonal", "matrix_exp", "matrix_power", "multi_dot", "tensorinv",
        "tensorsolve", "vander", "vecdot",
    ),
}  # fmt: skip
_WHERE = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    found: Any
    if name == "LinAlgError":
        found = import_module("flambeau.linalg.lapack")._LinAlgError
    elif name == "matmul":
        found = import_module("flambeau.tensor.functions").matmul
    elif name in _WHERE:
        found = getattr(import_module(f"flambeau.linalg.{_WHERE[name]}"), name)
        found = served(found, name, "torch.linalg")
    else:
        raise missing_name(__name__, name, __dir__())
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*_WHERE, "LinAlgError", "matmul"])
