"""Module: parameters, buffers and modules by attribute; traversal, modes, hooks, state.

Keeps     what is assigned is registered by its type; order of registration is the order of
          everything else: parameters(), state_dict(), repr.
Touches   nn.parameter, tensor.
Not here  state dicts (state.py), hooks' bookkeeping (hooks.py), dtypes and devices of all state
          (conversions.py), layers.
Source    torch.nn.Module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.base.errors import helped
from flambeau.nn.modules import conversions, global_hooks, hooks, paths, state
from flambeau.nn.modules.global_hooks import BACKWARD, BACKWARD_PRE, FORWARD, FORWARD_PRE, through
from flambeau.nn.modules.naming import indented, type_name
from flambeau.nn.modules.state import _IncompatibleKeys  # noqa: F401 - torch's path of it
from flambeau.nn.parameter import Buffer, Parameter
from flambeau.tensor import Tensor

__all__ = ["Module", *global_hooks.__all__]
globals().update({name: getattr(global_hooks, name) for name in global_hooks.__all__})


def _not_begun(kind: str) -> AttributeError:
    """torch's error where something is assigned before there are tables to hold it."""
    return AttributeError(
        helped(
            f"cannot assign {kind} before Module.__init__() call",
            fix="call super().__init__() first in the class's __init__",
        )
    )


class Module:
    """Base of all layers and models.

    Assigning a Parameter, Module or Buffer to an attribute registers it; `forward` says what the
    module computes.

    >>> import flambeau as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    dump_patches: bool = False
    _modules: dict[str, Any]
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _version: int = 1
    training: bool
    call_super_init: bool = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        if not self.call_super_init and (arguments or named):
            given = next(iter(named), None)
            if given is not None:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{given}'"
                )
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(arguments) + 1} were given"
            )
        put = object.__setattr__
        put(self, "training", True)
        for name in (
            "_parameters", "_buffers", "_modules", "_backward_hooks", "_backward_pre_hooks",
            "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
            "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
            "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
        ):  # fmt: skip
            put(self, name, OrderedDict() if "hooks" in name else {})
        put(self, "_non_persistent_buffers_set", set())
        put(self, "_is_full_backward_hook", None)
        if self.call_super_init:
            super().__init__(*arguments, **named)

    def forward(self, *inputs: Any) -> Any:
        """What the module computes; to be given by every subclass."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # Calling -----------------------------------------------------------------

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if (
            self._forward_hooks or self._forward_pre_hooks or self._backward_hooks
            or self._backward_pre_hooks or FORWARD or FORWARD_PRE or BACKWARD or BACKWARD_PRE
        ):  # fmt: skip
            return hooks.call(self, arguments, named)
        return self.forward(*arguments, **named)

    _call_impl = __call__

    # Attributes ----------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:  # else __init__ was not called yet
            for table in (own["_modules"], own["_parameters"], own["_buffers"]):
                if name in table:
                    return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise _not_begun("parameters")
            self._drop(name, "_parameters")
            self.register_parameter(name, value)
            return
        parameters = own.get("_parameters")
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise _not_begun("module")
            self._drop(name, "_modules")
            modules[name] = through(global_hooks.MODULES, self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = through(global_hooks.MODULES, self, name, value)
            return
        buffers = own.get("_buffers")
        if isinstance(value, Buffer) and buffers is not None:
            self._drop(name, "_buffers")
            self.register_buffer(name, value, getattr(value, "persistent", True))
            return
        if buffers is not None and name in buffers:
            if value is not None and not state.is_kept(value):
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            buffers[name] = through(global_hooks.BUFFERS, self, name, value)
            return
        object.__setattr__(self, name, value)

    def _drop(self, name: str, kept: str) -> None:
        """Forget an attribute before it is registered as something else."""
        own = self.__dict__
        own.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != kept and kind in own:
                own[kind].pop(name, None)
        if "_non_persistent_buffers_set" in own:
            own["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = set(dir(type(self))) | set(self.__dict__)
        names |= set(self._parameters) | set(self._buffers) | set(self._modules)
        return sorted(name for name in names if not name[0].isdigit())

    # Registration ----------------------------------------------------------------

    def _check_name(self, name: Any, kind: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' if kind != "module" else
                           f'module name can\'t contain ".", got: {name}')  # fmt: skip
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter under a name; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise _not_begun("parameter")
        self._check_name(name, "parameter", self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = through(global_hooks.PARAMETERS, self, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor of state that is not trained."""
        if "_buffers" not in self.__dict__:
            raise _not_begun("buffer")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not state.is_kept(tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or "
                "None required)"
            )
        self._buffers[name] = through(global_hooks.BUFFERS, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a child module under a name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = through(global_hooks.MODULES, self, name, module)

    register_module = add_module

    # Traversal -------------------------------------------------------------------

    def _named_members(
        self, members_of: Callable[[Module], Any], prefix: str, recurse: bool, unique: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=unique) if recurse else (
            [(prefix, self)]
        )  # fmt: skip
        for module_prefix, module in modules:
            for name, value in members_of(module):
                if value is None or id(value) in seen:
                    continue
                if unique:
                    seen.add(id(value))
                yield (module_prefix + "." if module_prefix else "") + name, value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, in order of registration, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their dotted names."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their dotted names."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """Immediate child modules."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Immediate child modules with their names, each once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and all below it, with dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, inner, remove_duplicate)

    # Doing something to all of it --------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call fn on every module, children first; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Training mode for the module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Evaluation mode: train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Ask for gradients of all parameters, or stop."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero."""
        parameter: Any
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.detach_().zero_()

    def compile(self, *arguments: Any, **named: Any) -> None:
        """Nothing to do: everything is compiled as it runs."""

    def extra_repr(self) -> str:
        """What repr shows of this layer's settings."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {indented(repr(module))}" for name, module in self._modules.items()
        ]
        head = self._get_name() + "("
        if len(extra_lines) == 1 and not child_lines:
            return f"{head}{extra_lines[0]})"
        lines = extra_lines + child_lines
        return head + "\n  " + "\n  ".join(lines) + "\n)" if lines else head + ")"

    def __setstate__(self, own: dict[str, Any]) -> None:
        self.__dict__.update(own)
        for name in ("_forward_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks"):
            self.__dict__.setdefault(name, OrderedDict())

    def _replicate_for_data_parallel(self) -> Any:
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        return replica

    # Conversions, paths, hooks and state, from their own files ------------------------

    _apply = conversions.apply_to_state
    to = conversions.to
    float = conversions.as_float
    double = conversions.double
    half = conversions.half
    bfloat16 = conversions.bfloat16
    type = conversions.as_type
    cpu = conversions.cpu
    cuda = conversions.cuda
    to_empty = conversions.to_empty
    share_memory = conversions.share_memory
    get_submodule = paths.get_submodule
    set_submodule = paths.set_submodule
    get_parameter = paths.get_parameter
    get_buffer = paths.get_buffer
    register_forward_hook = hooks.register_forward_hook
    register_forward_pre_hook = hooks.register_forward_pre_hook
    register_full_backward_hook = hooks.register_full_backward_hook
    register_full_backward_pre_hook = hooks.register_full_backward_pre_hook
    register_backward_hook = hooks.register_backward_hook
    register_state_dict_post_hook = state.register_state_dict_post_hook
    register_state_dict_pre_hook = state.register_state_dict_pre_hook
    register_load_state_dict_pre_hook = state.register_load_state_dict_pre_hook
    register_load_state_dict_post_hook = state.register_load_state_dict_post_hook
    _register_state_dict_hook = state.register_state_dict_hook
    _register_load_state_dict_pre_hook = state.register_bare_load_state_dict_pre_hook
    state_dict = state.state_dict
    load_state_dict = state.load_state_dict
    _load_from_state_dict = state.load_from_state_dict
    _save_to_state_dict = state.save_to_state_dict
    get_extra_state = state.get_extra_state
    set_extra_state = state.set_extra_state
