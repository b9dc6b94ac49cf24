"""Optimizer: parameter groups, state, hooks; what all optimizers share.

Keeps     torch's groups and state dicts; a step runs what was recorded before it returns.
Touches   tensor, engine.stream (the flush), state.py.
Not here  how a step is recorded (update.py), the update rules (ops.update)."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, Final

from flambeau.base.missing import missing_name
from flambeau.engine import stream
from flambeau.nn.modules.naming import type_name
from flambeau.optim.state import STEP, ParameterState, plain
from flambeau.tensor import Tensor
from flambeau.utils.hooks import RemovableHandle, registered


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Final = _Required()
_HOOKS: Final = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip
_global_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_post_hooks: OrderedDict[int, Any] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Any) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) before every step of every optimizer."""
    return registered(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Any) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) after every step of every optimizer."""
    return registered(_global_post_hooks, hook)


def hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step with the hooks around it, and the flush at its end."""

    @functools.wraps(step)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        before = self._optimizer_step_pre_hooks
        if before or _global_pre_hooks:
            for hook in [*_global_pre_hooks.values(), *before.values()]:
                found = hook(self, args, kwargs)
                if found is None:
                    continue
                if not (isinstance(found, tuple) and len(found) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{found}."
                    )
                args, kwargs = found
        result = step(*args, **kwargs)
        stream.LOCAL.stream.synchronize("optimizer.step()")
        after = self._optimizer_step_post_hooks
        if after or _global_post_hooks:
            for hook in [*after.values(), *_global_post_hooks.values()]:
                hook(self, args, kwargs)
        return result

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


class Optimizer:
    """Base of all optimizers: `params` are tensors or groups of them (dicts), `defaults` the
    settings of groups that do not give their own."""

    # What torch's refusal of capturable=True says of an optimizer, where it says other things.
    capturable_words: ClassVar[dict[str, Any]] = {}
    # Settings of a group that saved states of older programs lack, and what they were then.
    _later_settings: ClassVar[dict[str, Any]] = {}
    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type_name(params)}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        kind = type(self)
        if not getattr(kind.step, "hooked", False):
            kind.step = hooked(kind.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        state: defaultdict[Any, Any] = defaultdict(dict)
        state.update(self.state)
        return {"defaults": self.defaults, "state": state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)
        for name, value in self._later_settings.items():
            for group in self.param_groups:
                group.setdefault(name, value)
        self.__dict__.pop("_updates", None)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # Hooks ---------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Any) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step."""
        return registered(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Any) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return registered(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) before state_dict()."""
        return registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) after state_dict()."""
        return registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before load_state_dict()."""
        return registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Any, prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer) after load_state_dict()."""
        return registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State ------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": by number of the parameter, "param_groups": settings and such numbers}."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        start = 0
        packed = []
        for group in self.param_groups:
            for number, parameter in enumerate(group["params"], start):
                numbers.setdefault(id(parameter), number)
            start += len(group["params"])
            made = {key: value for key, value in group.items() if key != "params"}
            made["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            packed.append(made)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): plain(value)
            for key, value in self.state.items()
        }
        made_dict: dict[str, Any] = {"state": state, "param_groups": packed}
        for hook in self._optimizer_state_dict_post_hooks.values():
            found = hook(self, made_dict)
            if found is not None:
                made_dict = found
        return made_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what state_dict() gave; tensors are converted to the parameters' dtype.

        Raises   ValueError: other numbers of groups or of parameters in them."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            found = hook(self, state_dict)
            if found is not None:
                state_dict = found
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, saved in zip(groups, saved_groups, strict=True):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        by_number = dict(
            zip(
                chain.from_iterable(saved["params"] for saved in saved_groups),
                chain.from_iterable(group["params"] for group in groups),
                strict=True,
            )
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            parameter = by_number.get(key)
            state[key if parameter is None else parameter] = (
                value if parameter is None else _fitted(parameter, value)
            )
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # Steps ------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero."""
        for group in self.param_groups:
            for parameter in group["params"]:
                grad = parameter._grad
                if grad is None:
                    continue
                if set_to_none:
                    parameter._grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once; to be given by every subclass."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with settings of its own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        names = []
        tensors = []
        for each in params:
            if isinstance(each, tuple):
                names.append(each[0])
                each = each[1]
            tensors.append(each)
        param_group["params"] = tensors
        if names:
            if len(names) != len(tensors):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = names
        self._check_parameters(tensors)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._check_groups(param_group)
        self.param_groups.append(param_group)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[Any, Any]:
        """Lists divided by device and dtype, for steps over lists of tensors."""
        from flambeau.optim.authoring import _group_tensors_by_device_and_dtype

        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _cuda_graph_capture_health_check(self) -> None:
        """Whether a step can be recorded for CUDA: nothing is checked, there being none."""

    def _check_parameters(self, tensors: list[Any]) -> None:
        for each in tensors:
            if not isinstance(each, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is "
                    f"{type_name(each)}"
                )
            if not self.defaults.get("differentiable") and not (each.is_leaf or each.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")

    def _check_groups(self, param_group: dict[str, Any]) -> None:
        new = {id(each) for each in param_group["params"]}
        if len(new) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                given = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {given} to the optimizer"
                )
            if any(id(each) in new for each in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")


def _fitted(parameter: Any, value: Any, key: Any = None) -> Any:
    """A loaded value in the dtype of its parameter; step counts stay as they are."""
    if isinstance(value, Tensor):
        if key == STEP or not parameter.is_floating_point():
            return value
        return value.to(parameter.dtype)
    if isinstance(value, dict):
        made = ParameterState() if isinstance(value.get("step"), (Tensor, int, float)) else {}
        made.update((k, _fitted(parameter, v, k)) for k, v in value.items())
        return made
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_fitted(parameter, each) for each in value)  # type: ignore[call-arg]
    return value


def __getattr__(name: str) -> Any:
    from flambeau.optim import authoring

    if name.startswith("__") or name not in vars(authoring):
        raise missing_name(__name__, name)
    return getattr(authoring, name)
