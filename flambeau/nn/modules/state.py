"""State dicts: what a module saves, and how it takes it back.

Keeps     loading checks everything of a module before it writes, and reports all keys at once, in
          torch's words; tensors saved are detached from every graph.
Touches   hooks (handles), tensor.
Not here  files (io)."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any

from flambeau.nn.parameter import is_lazy
from flambeau.tensor import Tensor
from flambeau.utils.hooks import RemovableHandle, registered

EXTRA_STATE_KEY = "_extra_state"


class _IncompatibleKeys(tuple[list[str], list[str]]):
    """What load_state_dict(strict=False) returns: missing_keys and unexpected_keys."""

    __slots__ = ()

    def __new__(cls, missing_keys: list[str], unexpected_keys: list[str]) -> Any:
        return tuple.__new__(cls, (missing_keys, unexpected_keys))

    @property
    def missing_keys(self) -> list[str]:
        """Keys the module has and the state dict has not."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """Keys the state dict has and the module has not."""
        return self[1]

    def __repr__(self) -> str:
        if not self[0] and not self[1]:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def is_kept(value: Any) -> bool:
    """Whether a value may be a buffer: a tensor, or a sparse matrix, which is no Tensor here."""
    return isinstance(value, Tensor) or getattr(value, "is_sparse", False) is True


def get_extra_state(self: Any) -> Any:
    """Extra state to save, for modules that have some."""
    raise RuntimeError(
        "Reached a code path in Module.get_extra_state() that should never be called. Please file "
        "an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to "
        "report this bug."
    )


def set_extra_state(self: Any, state: Any) -> None:
    """Take back what get_extra_state returned."""
    raise RuntimeError(
        "Reached a code path in Module.set_extra_state() that should never be called. Please file "
        "an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to "
        "report this bug."
    )


def _has_extra(module: Any) -> bool:
    return getattr(type(module), "get_extra_state", get_extra_state) is not get_extra_state


def _takes_extra(module: Any) -> bool:
    return getattr(type(module), "set_extra_state", set_extra_state) is not set_extra_state


def state_dict(
    self: Any, *arguments: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
) -> Any:
    """Parameters and persistent buffers by dotted name, in order of registration."""
    if arguments:
        warnings.warn(
            "Positional args are being deprecated, use kwargs instead. Refer to "
            "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
            "state_dict for details.",
            FutureWarning,
            stacklevel=2,
        )
        destination = arguments[0] if destination is None else destination
        prefix = arguments[1] if len(arguments) > 1 and prefix == "" else prefix
        keep_vars = arguments[2] if len(arguments) > 2 else keep_vars
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(
                destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
            )
    for hook in self._state_dict_hooks.values():
        found = hook(self, destination, prefix, metadata)
        if getattr(hook, "_from_public_api", False):
            if found is not None:
                raise RuntimeError("state_dict post-hook must return None")
            continue
        if found is not None:
            destination = found
    return destination


def save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    """Put this module's own tensors into a state dict."""
    for name, parameter in self._parameters.items():
        if parameter is not None:
            destination[prefix + name] = parameter if keep_vars else parameter.detach()
    for name, buffer in self._buffers.items():
        if buffer is not None and name not in self._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if _has_extra(self):
        destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()


def load_from_state_dict(
    self: Any,
    state_dict: Any,
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Copy this module's own tensors out of a state dict; errors are collected."""
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    assign = (local_metadata or {}).get("assign_to_params_buffers", False)
    own = dict(self._parameters)
    own.update(
        (k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set
    )
    for name, tensor in own.items():
        if tensor is None:
            continue
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            continue
        _take(self, name, key, tensor, state_dict[key], assign, error_msgs)
    if _takes_extra(self):
        key = prefix + EXTRA_STATE_KEY
        if key in state_dict:
            self.set_extra_state(state_dict[key])
        elif strict:
            missing_keys.append(key)
    if strict:
        _find_unexpected(self, state_dict, prefix, unexpected_keys)


def _take(
    module: Any, name: str, key: str, own: Any, given: Any, assign: bool, errors: list[str]
) -> None:
    if not isinstance(given, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(given)}"
        )
        return
    if is_lazy(own):  # what it is given stays without a shape, too
        return
    if own.shape == () and given.shape == (1,):
        given = given[0]
    if given.shape != own.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {own.shape}."
        )
        return
    if own.is_meta and not given.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter "
            "in the current model, which is a no-op. (Did you mean to pass `assign=True` to assign "
            "items in the state dictionary to their corresponding key in the module instead of "
            "copying them in place?)",
            stacklevel=5,
        )
    if assign:
        from flambeau.nn.parameter import Parameter

        if isinstance(own, Parameter) and not isinstance(given, Parameter):
            given = Parameter(given, own.requires_grad)
        setattr(module, name, given)
        return
    from flambeau.autograd import no_grad
    from flambeau.nn.modules.conversions import FLAGS, swapped

    with no_grad():
        if FLAGS["swap"] and name in module._parameters:
            swapped(own, given.to(own.dtype).clone())
        else:
            own.copy_(given)


def _find_unexpected(module: Any, state_dict: Any, prefix: str, unexpected: list[str]) -> None:
    own = {
        name
        for table in (module._parameters, module._buffers)
        for name, value in table.items()
        if value is not None and name not in module._non_persistent_buffers_set
    }
    for key in state_dict:
        if not key.startswith(prefix) or key == prefix + EXTRA_STATE_KEY:
            if key == prefix + EXTRA_STATE_KEY and not _takes_extra(module):
                unexpected.append(key)
            continue
        parts = key[len(prefix) :].split(".", 1)
        if len(parts) > 1:
            if parts[0] not in module._modules:
                unexpected.append(key)
        elif parts[0] not in own:
            unexpected.append(key)


def load_state_dict(
    self: Any, state_dict: Any, strict: bool = True, assign: bool = False
) -> _IncompatibleKeys:
    """Copy parameters and buffers out of a state dict.

    Raises   TypeError: not a mapping. RuntimeError: missing or unexpected keys (strict), sizes that
             differ; the message lists them all.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    given = OrderedDict(state_dict)
    if metadata is not None:
        given._metadata = metadata  # type: ignore[attr-defined]

    def load(module: Any, given: Any, prefix: str) -> None:
        local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(given, prefix, local, True, missing, unexpected, errors)
        for name, child in module._modules.items():
            if child is not None:
                inner = prefix + name + "."
                load(child, {k: v for k, v in given.items() if k.startswith(inner)}, inner)
        keys = _IncompatibleKeys(missing, unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )

    load(self, given, "")
    if strict:
        if unexpected:
            names = ", ".join(f'"{key}"' for key in unexpected)
            errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
        if missing:
            names = ", ".join(f'"{key}"' for key in missing)
            errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
    if errors:
        lines = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
    return _IncompatibleKeys(missing, unexpected)


def register_state_dict_hook(self: Any, hook: Any) -> RemovableHandle:
    """Call hook(module, state_dict, prefix, metadata) after state_dict()."""
    return registered(self._state_dict_hooks, hook)


def register_state_dict_post_hook(self: Any, hook: Any) -> RemovableHandle:
    """As register_state_dict_hook; the hook's result is ignored."""
    hook._from_public_api = True
    return register_state_dict_hook(self, hook)


def register_state_dict_pre_hook(self: Any, hook: Any) -> RemovableHandle:
    """Call hook(module, prefix, keep_vars) before state_dict()."""
    return registered(self._state_dict_pre_hooks, hook)


def register_bare_load_state_dict_pre_hook(
    self: Any, hook: Any, with_module: bool = False
) -> RemovableHandle:
    """Call hook(state_dict, prefix, ...), or hook(module, state_dict ...), before loading."""
    return registered(self._load_state_dict_pre_hooks, partial(hook, self) if with_module else hook)


def register_load_state_dict_pre_hook(self: Any, hook: Any) -> RemovableHandle:
    """Call hook(module, state_dict, prefix, ...) before loading."""
    return register_bare_load_state_dict_pre_hook(self, hook, with_module=True)


def register_load_state_dict_post_hook(self: Any, hook: Any) -> RemovableHandle:
    """Call hook(module, incompatible_keys) after loading."""
    return registered(self._load_state_dict_post_hooks, hook)
