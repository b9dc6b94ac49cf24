"""torch.autograd.Function: operations with a backward written by the user.

Keeps     torch's protocol: forward(ctx, ...) or forward(...) with setup_context(ctx, inputs,
          output); backward(ctx, *grads) or vjp; applied by Name.apply.
Touches   gradients.recording.user_function.
Not here  how outputs get their history (gradients/recording/user_function.py)."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from flambeau.base.errors import helped
from flambeau.gradients.modes import is_grad_enabled, set_mode
from flambeau.gradients.recording.user_function import FunctionNode, apply_function, not_again
from flambeau.gradients.runtime import RUNTIME

__all__ = [
    "BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction",
    "once_differentiable",
]  # fmt: skip

FunctionCtx = FunctionNode
BackwardCFunction = FunctionNode


class Function:
    """Base of user-defined operations.

    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x**2 * grad
    """

    _node_class: ClassVar[type[FunctionNode]]

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._node_class = type(
            f"{cls.__name__}Backward", (FunctionNode,),
            {"_forward_cls": cls, "__module__": "torch.autograd.function"},
        )  # fmt: skip

    def __init__(self, *arguments: Any, **named: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*arguments: Any, **named: Any) -> Any:
        """Compute the outputs; to be overridden."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs, for a forward without ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of forward's arguments, one each; to be overridden."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Forward mode; never called."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @classmethod
    def apply(cls, *arguments: Any, **named: Any) -> Any:
        """Run forward and record one node whose gradient is the user's."""
        if cls._has_setup_context():
            bound = inspect.signature(cls.forward).bind(*arguments, **named)
            bound.apply_defaults()
            arguments = _placed(bound.signature, bound.args, bound.kwargs)
        elif named:
            arguments = _placed(inspect.signature(cls.forward), (None, *arguments), named)[1:]
        return apply_function(cls, cls._node_class(), arguments)

    @classmethod
    def _has_setup_context(cls) -> bool:
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _backward_function(cls) -> Callable[..., Any]:
        has_backward = cls.backward is not Function.backward
        has_vjp = cls.vjp is not Function.vjp
        if has_backward and has_vjp:
            raise RuntimeError(
                helped(
                    "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                    "You should only implement one of them.",
                    fix=f"keep one of {cls.__name__}.backward and {cls.__name__}.vjp",
                )
            )
        return cls.vjp if has_vjp else cls.backward


def _placed(
    signature: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments by position: a gradient is returned for each place up to the last given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [name for name, each in signature.parameters.items() if each.kind in kinds]
    rest = dict(named)
    placed = list(arguments)
    for position, name in enumerate(names[len(arguments) :], len(arguments)):
        if not any(each in rest for each in names[position:]):
            break
        if name not in rest:
            raise TypeError(
                helped(
                    f"forward() missing required argument: '{name}' (position {position - 1})",
                    given=f"the later argument {next(iter(rest))!r} by name",
                    fix="give the arguments before it, too: defaults are not filled in",
                )
            )
        placed.append(rest.pop(name))
    for name in rest:
        raise TypeError(
            helped(
                f"forward() got an unexpected keyword argument '{name}'",
                expected=f"arguments that have a position: {', '.join(names)}",
            )
        )
    return tuple(placed)


class InplaceFunction(Function):
    """torch's old base for functions with an in-place form."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """torch's old base for nested inputs; refused when applied."""

    @classmethod
    def apply(cls, *arguments: Any, **named: Any) -> Any:
        """Always raises."""
        raise NotImplementedError(
            helped("NestedIOFunction is not supported", fix="flatten the inputs and use Function")
        )


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that cannot be differentiated itself; doing so raises."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *arguments: Any) -> Any:
        recording = is_grad_enabled()
        before = set_mode(False)
        try:
            outputs = function(ctx, *arguments)
        finally:
            set_mode(before)
        involved = any(
            isinstance(each, RUNTIME.tensor) and each.requires_grad for each in arguments
        )
        if not recording or not involved:
            return outputs
        message = (
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        marked = tuple([
            not_again(each, message) if isinstance(each, RUNTIME.tensor) else each
            for each in values
        ])  # fmt: skip
        return marked if isinstance(outputs, tuple) else marked[0]

    return wrapper
