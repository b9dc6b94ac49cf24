"""Parameter and Buffer: tensors that a Module registers when they are assigned to it.

Keeps     a Parameter is a leaf with memory of its own tensor; it shares the data it is made from.
Touches   tensor, gradients.
Not here  registration (module.py), initial values (init.py)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from flambeau.base.errors import helped
from flambeau.gradients import members
from flambeau.tensor import Tensor, creation
from flambeau.tensor.arguments.taken_over import disabled, exempt
from flambeau.tensor.tensor import TensorMeta, empty_like_class


class _FlaggedMeta(TensorMeta):
    """Counts tensors of other classes that carry a flag among a class's instances."""

    _flag: str

    def __instancecheck__(self, instance: Any) -> bool:
        flag = vars(self).get("_flag")
        if flag and isinstance(instance, Tensor) and instance.__dict__.get(flag, False):
            return True
        return type.__instancecheck__(self, instance)


class Parameter(Tensor, metaclass=_FlaggedMeta):
    """A tensor to be trained: `requires_grad` is True unless said otherwise. A parameter made of a
    tensor of another class is of that class, and counts as a Parameter.

    Raises   RuntimeError: the data's dtype cannot carry a gradient and requires_grad is True.
    Source   torch.nn.Parameter.

    >>> import flambeau as torch
    >>> torch.nn.Parameter(torch.tensor([1.0])).requires_grad
    True
    """

    __slots__ = ()
    _keeps_members = True
    _flag = "_is_param"
    __torch_function__: Any = disabled

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if requires_grad.__class__ is not bool:
            raise TypeError(
                "_make_subclass(): argument 'require_grad' (position 3) must be bool, not "
                f"{type(requires_grad).__name__}"
            )
        if data is None:
            from flambeau.nn import names as torch

            data = torch.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"cannot assign '{type(data).__name__}' object as data of a Parameter "
                "(torch.Tensor expected)"
            )
        if type(data) is not Tensor and type(data) is not Parameter:
            return _flagged(data, requires_grad)
        made = cls._from_tensor(data)
        element = data._layout.dtype
        if requires_grad and not (element.is_floating_point or element.is_complex):
            raise RuntimeError(
                helped(
                    "Only Tensors of floating point and complex dtype can require gradients",
                    given=f"{element}",
                    fix="Parameter(data.float()), or requires_grad=False",
                )
            )
        if requires_grad:
            members.set_requires_grad(made, True)
        return made

    @classmethod
    def _from_tensor(cls, data: Tensor) -> Any:
        """A parameter over the tensor's memory, not yet asking for gradients."""
        return empty_like_class(cls, data)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + Tensor.__repr__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.data.clone(), self.requires_grad)  # without .grad, as in torch
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_rebuilt, (self.data, self.requires_grad))


exempt(Parameter)


def _flagged(data: Any, requires_grad: bool) -> Any:
    """A tensor of a class of its own as a parameter."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
            f"detach() returns an instance of the same type, but return type "
            f"{type(made).__name__} was found instead. To use the type as a Parameter, please "
            "correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    made._is_param = True
    return made


def _rebuilt(data: Tensor, requires_grad: bool) -> Parameter:
    return Parameter(data, requires_grad)


def undrawn(shape: Any, device: Any, dtype: Any) -> Any:
    """A parameter with a shape and no values yet: a layer's reset_parameters() draws them."""
    return Parameter(creation.empty(shape, device=device, dtype=dtype))


class Buffer(Tensor, metaclass=_FlaggedMeta):
    """A tensor that belongs to a module's state without being trained. Buffer(x) is of x's class.

    persistent   whether it is part of state_dict

    >>> import flambeau as torch
    >>> buffer = torch.nn.Buffer(torch.ones(2))
    >>> isinstance(buffer, torch.nn.Buffer), type(buffer) is torch.Tensor
    (True, True)
    """

    __slots__ = ()
    _keeps_members = True
    _flag = "_is_buffer"
    __torch_function__: Any = disabled

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            from flambeau.nn import names as torch

            data = torch.empty(0)
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


_NO_SHAPE: Final = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
    "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)


class _Uninitialized(Tensor):
    """A tensor of a module whose shape is not known yet."""

    __slots__ = ()
    becomes: ClassVar[Any] = None

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give it a shape, and memory with undefined contents; it becomes an ordinary one."""
        from flambeau.nn import names as torch

        own: Any = self
        own.data = torch.empty(tuple(shape), dtype=dtype or self._layout.dtype, device=device)
        own.__class__ = self.becomes

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (type(self), (self.requires_grad,))

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """Raises: there is none yet."""
        raise RuntimeError(_NO_SHAPE)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet: materialize(shape) gives it one."""

    __slots__ = ()
    becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        from flambeau.nn import names as torch

        made = cls._from_tensor(torch.empty(0, device=device, dtype=dtype))
        if requires_grad:
            members.set_requires_grad(made, True)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, dtype=self._layout.dtype)
        return memo[id(self)]


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape is not known yet: materialize(shape) gives it one."""

    __slots__ = ()
    becomes = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> Any:  # fmt: skip
        from flambeau.nn import names as torch

        return empty_like_class(cls, torch.empty(0, device=device, dtype=dtype))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(dtype=self._layout.dtype)
        return memo[id(self)]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, _Uninitialized)
