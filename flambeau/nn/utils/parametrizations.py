"""Ready-made parametrizations: orthogonal matrices, spectral norm, weight norm.

Keeps     buffers and originals have torch's names, so that state dicts go both ways.
Touches   parametrize.py, linalg, tensor.functions.
Not here  the older, hook-based forms (spectral_norm.py, weight_norm.py).
Source    Lezcano, 2019 (trivializations); Miyato et al., 2018; Salimans and Kingma, 2016."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.linalg import qr, solve
from flambeau.linalg.reflectors import geqrf, householder_product
from flambeau.nn.functions.distances import normalize
from flambeau.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.modules.module import Module
from flambeau.nn.utils.parametrize import register_parametrization
from flambeau.nn.utils.spectral_norm import as_matrix
from flambeau.nn.utils.weight_norm import norm_except_dim
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public.fills import eye, zeros_like
from flambeau.tensor.public.queries import finfo

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(matrix: Any) -> bool:
    rows, columns = matrix.shape[-2:]
    close = 10.0 * rows * finfo(matrix.dtype).eps
    unit = eye(columns, dtype=matrix.dtype)
    return bool((t.matmul(matrix.mT, matrix)).allclose(unit, atol=close))


def _made_orthogonal(matrix: Any) -> Any:
    """The Q of QR whose R has a positive diagonal."""
    q, r = qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """An orthogonal matrix from a free one: base @ map(free)."""

    base: Any

    def __init__(
        self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        rows, columns = X.shape[-2:]
        wide = rows < columns
        if wide:
            X, rows, columns = X.mT, columns, rows
        if self.orthogonal_map is _OrthMaps.householder:
            below = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (below * below).sum(dim=-2))
            signs = X.detach().diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
            made = householder_product(below, tau) * signs
        else:
            made = self._of_skew(X.tril(), rows, columns)
        if hasattr(self, "base"):
            made = t.matmul(self.base, made)
        return made.mT if wide else made

    def _of_skew(self, lower: Any, rows: int, columns: int) -> Any:
        if rows != columns:
            rest = lower.new_zeros(rows, rows - columns).expand(*lower.shape[:-2], -1, -1)
            lower = t.cat([lower, rest], dim=-1)
        skew = lower - lower.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            from flambeau.linalg import matrix_exp

            made = matrix_exp(skew)
        else:
            unit = eye(rows, dtype=skew.dtype)
            made = solve(t.add(unit, skew, alpha=-0.5), t.add(unit, skew, alpha=0.5))
        return made[..., :columns] if rows != columns else made

    def right_inverse(self, Q: Any) -> Any:
        """A free matrix that gives Q, or the nearest orthogonal one to it."""
        with no_grad():
            if Q.shape != self.shape:
                raise ValueError(
                    f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor "
                    f"of shape {Q.shape}."
                )
            wide = Q.shape[-2] < Q.shape[-1]
            tall = Q.mT if wide else Q
            if not hasattr(self, "base"):
                free = self._without_base(tall)
                return free.mT if wide else free
            rows, columns = tall.shape[-2:]
            if rows == columns:
                whole = tall.clone() if _is_orthogonal(tall) else _made_orthogonal(tall)
            else:
                more = tall.new_empty((*tall.shape[:-2], rows, rows - columns)).normal_()
                whole = _made_orthogonal(t.cat([tall, more], dim=-1))
            self.base = whole
            # The diagonal holds the signs of the reflections: -1 everywhere is the unit matrix.
            free = zeros_like(Q)
            free.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return free

    def _without_base(self, tall: Any) -> Any:
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        reflectors, tau = geqrf(tall)
        diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
        diagonal.copy_(t.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
        return reflectors


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> Any:  # fmt: skip
    """Keep a matrix of the module orthogonal while it is trained; returns the module.

    orthogonal_map   "matrix_exp", "cayley" or "householder"; None: matrix_exp for square ones

    >>> import flambeau as torch
    >>> layer = orthogonal(torch.nn.Linear(4, 4))
    >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(4), atol=1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        plain = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if plain else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    register_parametrization(module, name, made, unsafe=True)
    return module


class _WeightNorm(Module):
    """original0 is the length g, original1 the direction v; the weight is g * v / |v|."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight: Any) -> Any:
        """Length and direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train a parameter's length and direction apart; returns the module."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_the_older_form(state_dict: Any, prefix: str, *rest: Any) -> None:
        keys = [f"{prefix}{name}_{each}" for each in "gv"]
        if all(key in state_dict for key in keys):
            for number, key in enumerate(keys):
                new = f"{prefix}parametrizations.{name}.original{number}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_the_older_form)
    return module


class _SpectralNorm(Module):
    """The weight over its largest singular value, estimated by power iteration."""

    _u: Any
    _v: Any

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but "
                f"got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            rows, columns = matrix.shape
            for buffer, size in (("_u", rows), ("_v", columns)):
                drawn = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(buffer, normalize(drawn, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Any, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(normalize(t.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(normalize(t.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / t.dot(u, t.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        """The value itself: it is taken to have spectral norm 1."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a weight by its largest singular value; returns the module."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if transposed else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    register_parametrization(module, name, made)
    return module
