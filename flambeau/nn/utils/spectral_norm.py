"""Spectral norm, the hook-based form: a weight over its largest singular value.

Keeps     the parameter is <name>_orig, the vectors of the power iteration are the buffers <name>_u
          and <name>_v; the weight is computed before each forward.
Touches   nn.parameter, module hooks.
Not here  the parametrization (parametrizations.py).
Source    Miyato et al., 2018."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.nn.functions.distances import normalize
from flambeau.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.parameter import Parameter
from flambeau.tensor import functions as t


def as_matrix(weight: Any, dim: int) -> Any:
    """A weight as a matrix whose rows run over one of its dims."""
    if dim != 0:
        weight = weight.permute(dim, *[each for each in range(weight.dim()) if each != dim])
    return weight.reshape(weight.shape[0], -1)


class SpectralNorm:
    """The hook that computes the weight before every forward."""

    _version: int = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """The original over u @ original @ v; u and v are first brought nearer, in training."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                fixed = matrix.detach()
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(t.mv(fixed.t(), u), dim=0, eps=self.eps))
                    u.copy_(normalize(t.mv(fixed, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # the next iteration writes into the buffers
        return weight / t.dot(u, t.mv(matrix, v))

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        made = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, made)

    @staticmethod
    def apply(
        module: Any, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a parameter by its original and the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with no_grad():
            rows, columns = as_matrix(weight, dim).shape
            u = normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute until the first forward, for code that looks at it.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(made.note_version)
        return made

    def note_version(self, module: Any, state_dict: Any, prefix: str, metadata: Any) -> None:
        """Put torch's version of this form into a state dict's metadata."""
        metadata.setdefault("spectral_norm", {})[self.name + ".version"] = self._version


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divide a weight by its largest singular value before every forward; returns the module."""
    if dim is None:
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if transposed else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Take spectral norm away; returns the module."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for key, hook in list(module._state_dict_hooks.items()):
        owner = getattr(hook, "__self__", None)
        if isinstance(owner, SpectralNorm) and owner.name == name:
            del module._state_dict_hooks[key]
    return module
