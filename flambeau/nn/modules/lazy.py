"""Layers that learn the size of their input from the first one they see.

Keeps     until then parameters have no shape; at the first forward they get it, are drawn as the
          plain layer draws them, and the layer's class becomes the plain one.
Touches   nn.parameter, the plain layers.
Not here  the layers themselves (linear.py, conv.py, batchnorm.py, instancenorm.py)."""

from __future__ import annotations

from typing import Any

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.errors import helped
from flambeau.nn.modules import batchnorm, conv, instancenorm, linear
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from flambeau.tensor import creation

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """Puts the first input's sizes into `initialize_parameters`; before a plain layer's class."""

    cls_to_become: Any = None

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._load_hook: Any = self._register_load_state_dict_pre_hook(self._take_shapes)
        self._initialize_hook: Any = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *arguments: Any, **named: Any) -> None:
        """Give parameters their shapes, from an input; every lazy layer says how."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(self, module: Any, arguments: Any, named: Any = None) -> None:
        module.initialize_parameters(*arguments, **(named or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _take_shapes(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Before loading: the shapes of what is loaded."""
        for name, tensor in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if is_lazy(tensor) and given is not None and not is_lazy(given):
                with no_grad():
                    tensor.materialize(given.shape)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for table in (self._parameters, self._buffers):
            for name, tensor in table.items():
                if tensor is not None and name not in self._non_persistent_buffers_set:
                    plain = keep_vars or is_lazy(tensor)
                    destination[prefix + name] = tensor if plain else tensor.detach()

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
            "forward pass to correctly initialize the modules"
        )


class LazyLinear(LazyModuleMixin, linear.Linear):
    """Linear whose in_features is the last size of its first input.

    >>> import flambeau as torch
    >>> layer = LazyLinear(3)
    >>> _ = layer(torch.zeros(2, 5))
    >>> layer
    Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become = linear.Linear

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Shapes from the last size of the input."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    """What lazy convolutions share: the channels are the first input's."""

    n_dims = 0

    def __init__(
        self, out_channels: int, kernel_size: Any, *settings: Any, bias: bool = True,
        device: Any = None, dtype: Any = None, **named: Any,
    ) -> None:  # fmt: skip
        settings, bias = _bias_of(settings, bias)
        super().__init__(0, 0, kernel_size, *settings, bias=False, **named)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    transposed_settings = False

    def reset_parameters(self) -> None:
        """Draw the parameters, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any, *rest: Any, **named: Any) -> None:
        """Shapes from the channels of the input."""
        if not self.has_uninitialized_params():
            return
        with no_grad():
            self.in_channels = self._channels_of(input)
            if self.in_channels % self.groups:
                raise ValueError("in_channels must be divisible by groups")
            shares = self.in_channels // self.groups, self.out_channels // self.groups
            outer = (
                (self.in_channels, shares[1])
                if self.transposed_settings
                else (self.out_channels, shares[0])
            )
            self.weight.materialize((*outer, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _channels_of(self, input: Any) -> int:
        plain, batched = self.n_dims + 1, self.n_dims + 2
        if input.dim() not in (plain, batched):
            raise RuntimeError(
                f"Expected {plain}D (unbatched) or {batched}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return int(input.shape[1] if input.dim() == batched else input.shape[0])


def _bias_of(settings: tuple[Any, ...], bias: bool) -> tuple[Any, bool]:
    """Positional settings without `bias`, which is the fifth of them in every convolution."""
    if len(settings) < 5:
        return settings, bias
    if len(settings) > 5:
        raise TypeError(helped("too many positional arguments", fix="name the settings after bias"))
    return settings[:4], bool(settings[4])


class LazyConv1d(_LazyConv, conv.Conv1d):
    """Conv1d whose in_channels are those of its first input."""

    cls_to_become, n_dims = conv.Conv1d, 1


class LazyConv2d(_LazyConv, conv.Conv2d):
    """Conv2d whose in_channels are those of its first input."""

    cls_to_become, n_dims = conv.Conv2d, 2


class LazyConv3d(_LazyConv, conv.Conv3d):
    """Conv3d whose in_channels are those of its first input."""

    cls_to_become, n_dims = conv.Conv3d, 3


class LazyConvTranspose1d(_LazyConv, conv.ConvTranspose1d):
    """ConvTranspose1d whose in_channels are those of its first input."""

    cls_to_become, n_dims, transposed_settings = conv.ConvTranspose1d, 1, True


class LazyConvTranspose2d(_LazyConv, conv.ConvTranspose2d):
    """ConvTranspose2d whose in_channels are those of its first input."""

    cls_to_become, n_dims, transposed_settings = conv.ConvTranspose2d, 2, True


class LazyConvTranspose3d(_LazyConv, conv.ConvTranspose3d):
    """ConvTranspose3d whose in_channels are those of its first input."""

    cls_to_become, n_dims, transposed_settings = conv.ConvTranspose3d, 3, True


class _LazyNorm(LazyModuleMixin):
    """What lazy norms share: num_features is the first input's second size."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = creation.tensor(0)

    def reset_parameters(self) -> None:
        """Set parameters and statistics, once they have shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        """Shapes from the channels of the input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        own = (self.weight, self.bias, self.running_mean, self.running_var)
        with no_grad():
            for tensor in own:
                if is_lazy(tensor):
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, batchnorm.BatchNorm1d):
    """BatchNorm1d whose num_features are its first input's channels."""

    cls_to_become = batchnorm.BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, batchnorm.BatchNorm2d):
    """BatchNorm2d whose num_features are its first input's channels."""

    cls_to_become = batchnorm.BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, batchnorm.BatchNorm3d):
    """BatchNorm3d whose num_features are its first input's channels."""

    cls_to_become = batchnorm.BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, instancenorm.InstanceNorm1d):
    """InstanceNorm1d whose num_features are its first input's channels."""

    cls_to_become = instancenorm.InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, instancenorm.InstanceNorm2d):
    """InstanceNorm2d whose num_features are its first input's channels."""

    cls_to_become = instancenorm.InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, instancenorm.InstanceNorm3d):
    """InstanceNorm3d whose num_features are its first input's channels."""

    cls_to_become = instancenorm.InstanceNorm3d
