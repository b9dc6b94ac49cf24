"""Parametrizations: a tensor of a module computed from others each time it is asked for.

Keeps     the module's class is a class of its own with a property for each such tensor; what it is
          computed from lies under parametrizations.<name>.original (original0, original1 ...), so
          that parameters and state dicts have torch's names.
Touches   nn.modules (containers), nn.parameter, autograd's modes.
Not here  ready-made parametrizations (parametrizations.py).
Source    torch.nn.utils.parametrize."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from flambeau.autograd.grad_mode import no_grad
from flambeau.base.errors import helped
from flambeau.nn.modules.container import ModuleDict, ModuleList
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

# Values computed under cached(), by module and name, and how many such contexts are open.
_VALUES: Final[dict[tuple[int, str], Tensor]] = {}
_OPEN: Final[list[None]] = []


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once inside: it is kept until the outermost context ends."""
    _OPEN.append(None)
    try:
        yield
    finally:
        _OPEN.pop()
        if not _OPEN:
            _VALUES.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _rebind(tensor: Any, value: Tensor) -> None:
    """Let a tensor be `value`, with the memory that value has, the object staying the same."""
    if value is not tensor:
        tensor.set_(value.detach())


def _same(kind: str, own: Any, other: Any, heading: str, names: tuple[str, str]) -> None:
    if own != other:
        raise ValueError(f"{heading}\n{names[0]}.{kind}: {own}\n{names[1]}.{kind}: {other}")


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, first applied first, and what it is computed from."""

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, element = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        continue  # taken for the identity
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check(shape, element)

    def _keep_one(self, original: Tensor, new: Any) -> None:
        """The tensor itself goes on as the original: an optimizer that has it needs no change."""
        names = ("original", "right_inverse(original)")
        heading = "When `right_inverse` outputs one tensor, it may not change the {}."
        for kind in ("dtype", "device"):
            own, other = getattr(original, kind), getattr(new, kind)
            _same(kind, own, other, heading.format(kind), names)
        with no_grad():
            _rebind(original, new)
        _register(self, "original", original)

    def _keep_several(self, original: Tensor, new: Any) -> None:
        for number, each in enumerate(new):
            if not isinstance(each, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {number} of the sequence with type "
                    f"{type(each).__name__}."
                )
            kept: Any = each
            if isinstance(original, Parameter):
                kept = Parameter(each, original.requires_grad)
            kept.requires_grad_(original.requires_grad)
            _register(self, f"original{number}", kept)

    def _check(self, shape: Any, element: Any) -> None:
        made = self()
        if not isinstance(made, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        for kind, own in (("dtype", element), ("shape", shape)):
            other = getattr(made, kind)
            if own != other:
                raise ValueError(
                    f"Registering a parametrization may not change the {kind} of the tensor, "
                    f"unless `unsafe` flag is enabled.\nunparametrized {kind}: {own}\n"
                    f"parametrized {kind}: {other}"
                )

    def right_inverse(self, value: Any) -> None:
        """Choose the originals such that the tensor becomes `value`, as far as that can be."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        helped(
                            f"parametrization {type(module).__name__} does not implement "
                            "right_inverse.",
                            fix="give it a method right_inverse(value), or set its original",
                        )
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                self._take_one(value)
            else:
                self._take_several(value)

    def _take_one(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` "
                f"has dtype {self.original.dtype}"
            )
        _rebind(self.original, value)

    def _take_several(self, values: Any) -> None:
        if not isinstance(values, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}."
            )
        if len(values) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(values)}."
            )
        for number, value in enumerate(values):
            own = getattr(self, f"original{number}")
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                    f"Got element {number} of type {type(value).__name__}."
                )
            if own.dtype != value.dtype:
                raise ValueError(
                    f"Tensor {number} returned by `right_inverse` has dtype {value.dtype} while "
                    f"`original{number}` has dtype {own.dtype}"
                )
            _rebind(own, value)

    def forward(self) -> Any:
        originals = (
            [self.original]
            if self.is_tensor
            else [getattr(self, f"original{number}") for number in range(self.ntensors)]
        )
        value = self[0](*originals)
        for module in list(self)[1:]:
            value = module(value)
        return value


def _deepcopied(self: Module, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    made = type(self).__new__(type(self))
    memo[id(self)] = made
    made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return made


def _refuse_pickle(self: Module) -> Any:
    raise RuntimeError(
        helped(
            "Serialization of parametrized modules is only supported through state_dict().",
            fix="save module.state_dict(), and load it into a module parametrized alike",
        )
    )


def _own_class(module: Module) -> None:
    """Give the module a class of its own, for properties of this module alone."""
    given = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_pickle}
    if not hasattr(given, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopied
    module.__class__ = type(f"Parametrized{given.__name__}", (given,), members)


def _add_property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _OPEN:
            return parametrization()
        key = (id(self), name)
        if key not in _VALUES:
            _VALUES[key] = parametrization()
        return _VALUES[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let module.<tensor_name> be parametrization(original) from now on; returns the module.

    unsafe   whether shape and dtype may change, and no check is made
    Raises   ValueError: no such tensor, or the parametrization changes its shape or dtype.

    >>> import flambeau as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = torch.nn.Linear(3, 3)
    >>> _ = register_parametrization(layer, "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_fits(module, tensor_name, parametrization)
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        chain = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = chain
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_fits(module: Any, name: str, parametrization: Any) -> None:
    """Whether one more parametrization keeps dtype and shape, both ways."""
    own = getattr(module, name)
    made = parametrization(own)
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for kind in ("dtype", "shape"):
        _same(
            kind, getattr(own, kind), getattr(made, kind),
            f"Registering a parametrization may not change the {kind} of the tensor, unless the "
            "`unsafe` flag is enabled.",
            (f"module.{name}", f"parametrization(module.{name})"),
        )  # fmt: skip
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for kind in ("dtype", "shape"):
        if getattr(back, kind) != getattr(own, kind):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {kind} "
                f"as module.{name}, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{kind}: {getattr(own, kind)}\n"
                f"returned {kind}: {getattr(back, kind)}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module, or any (None), is parametrized."""
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a tensor an ordinary one again: with its present value, or (leave_parametrized=False)
    with the original's; returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with no_grad():
                _rebind(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """The module's class without what parametrizing made of it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Parametrize a module as another one is, with the other's parameters; returns to_module."""
    if not is_parametrized(from_module):
        return to_module
    chains = from_module.parametrizations
    for name in [tensor_name] if tensor_name is not None else list(chains):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for each in chains[name]:
            register_parametrization(to_module, name, each)
        own = to_module.parametrizations[name]
        if chains[name].is_tensor:
            own.original = chains[name].original
        else:
            for number in range(chains[name].ntensors):
                key = f"original{number}"
                setattr(own, key, getattr(chains[name], key))
    return to_module
