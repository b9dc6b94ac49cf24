"""torch.library: operators that a program defines, with kernels and gradients of their own.

Keeps     a kernel runs without a history; the gradient is the one that is registered, and asking
          for another raises. What is defined is at torch.ops.NAMESPACE.NAME.
Touches   _ops.py, autograd.function.
Not here  operators of flambeau's own (ops/, docs/adding_an_operator.md)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

from flambeau import _ops
from flambeau.autograd.function import Function
from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr
from flambeau.gradients.modes import is_grad_enabled, no_grad
from flambeau.tensor import Tensor
from flambeau.utils._pytree import tree_leaves

__all__ = [
    "CustomOpDef", "Library", "OpOverload", "custom_op", "define", "impl", "impl_abstract",
    "infer_schema", "register_autocast", "register_autograd", "register_fake", "register_kernel",
    "register_vmap",
]  # fmt: skip

OpOverload = _ops.OpOverload
# Keys whose kernels are differentiated through, and those that keep to registered gradients.
_DIFFERENTIATED: Final = ("Autograd", "AutogradCPU", "CompositeImplicitAutograd")
_PLAIN: Final = ("CPU", "CompositeExplicitAutograd", "BackendSelect", "")


class CustomOpDef:
    """An operator of a program: called, it runs its kernel."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._name = name
        self._schema: str | None = None
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._cast_to: dict[str, dtypes.dtype] = {}
        self._function: Any = None  # what calls without arguments by name run, once there was one
        self.__name__ = name.partition(".")[0]

    def _define(self, schema: str) -> None:
        """Be an operator from now on: at torch.ops, of this schema."""
        self._schema = schema
        packet = _ops.namespace(self._namespace).packet(self.__name__)
        overload = self._name.partition(".")[2]
        self._opoverload: OpOverload = packet.add(overload or "default", self)

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        tensors = [each for each in tree_leaves((arguments, named)) if isinstance(each, Tensor)]
        arguments, named = self._cast(arguments, named)
        if any(each.is_meta for each in tensors):
            if self._fake is None:
                raise NotImplementedError(
                    f"{self._opoverload}: attempted to run this operator with Meta tensors, but "
                    "there was no fake impl or Meta kernel registered for this operator."
                )
            return self._fake(*arguments, **named)
        for key in _DIFFERENTIATED:
            if key in self._kernels:
                return self._kernels[key](*arguments, **named)
        if is_grad_enabled() and any(each.requires_grad for each in tensors):
            return self._with_history(arguments, named)
        return self._run(arguments, named)

    def _run(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        kernel = self._kernel()
        if kernel is None:
            raise NotImplementedError(
                helped(
                    f"Could not run '{self._opoverload.name()}' with arguments from the 'CPU' "
                    "backend.",
                    given=f"kernels for {sorted(self._kernels) or 'nothing'}",
                    fix="register one: torch.library.impl, or the function under custom_op",
                )
            )
        with no_grad():
            made = kernel(*arguments, **named)
        given = {id(each) for each in tree_leaves((arguments, named)) if isinstance(each, Tensor)}
        if any(id(each) in given for each in tree_leaves(made) if isinstance(each, Tensor)):
            raise RuntimeError(
                helped(
                    f"{self.__name__}: The output of this custom operator (1) must not also be an "
                    "input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns.",
                    fix="return a clone: `return x.clone()`",
                )
            )
        return made

    def _with_history(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        arguments, named = self._by_place(arguments, named)
        if named:
            return self._function_for(named).apply(*arguments)
        if self._function is None:
            self._function = self._function_for({})
        return self._function.apply(*arguments)

    def _function_for(self, named: dict[str, Any]) -> Any:
        """The autograd Function of calls with these arguments by name."""
        definition = self

        def forward(ctx: Any, *given: Any) -> Any:
            made = definition._run(given, named)
            if definition._setup_context is not None:
                by_name = {"keyword_only_inputs": named} if definition._has_names_only() else {}
                definition._setup_context(ctx=ctx, inputs=given, output=made, **by_name)
            return made

        def backward(ctx: Any, *grads: Any) -> Any:
            if definition._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {definition._opoverload} but no autograd formula "
                    "was registered. Please use register_autograd to add one."
                )
            return definition._backward(ctx, *grads)

        return type(
            f"GeneratedBackwardFor_{str(self._opoverload).replace('.', '_')}", (Function,),
            {"forward": staticmethod(forward), "backward": staticmethod(backward)},
        )  # fmt: skip

    def _kernel(self) -> Callable[..., Any] | None:
        return next((self._kernels[key] for key in _PLAIN if key in self._kernels), None)

    def _has_names_only(self) -> bool:
        kernel = self._kernel()
        parameters = {} if kernel is None else inspect.signature(kernel).parameters
        return any(each.kind is each.KEYWORD_ONLY for each in parameters.values())

    def _by_place(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments, defaults too, by place where they have one: a gradient has one each."""
        kernel = self._kernel()
        if kernel is None:
            return arguments, named
        bound = inspect.signature(kernel).bind(*arguments, **named)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _cast(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        if not self._cast_to:
            return arguments, named
        from flambeau.gradients.autocast import is_autocast_enabled
        from flambeau.utils._pytree import tree_map

        for device, wanted in self._cast_to.items():
            if is_autocast_enabled(device):
                cast = functools.partial(_cast_to, wanted)
                given: tuple[Any, Any] = tree_map(cast, (arguments, named))
                return given
        return arguments, named

    def register_fake(self, abstract_fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What tensors without data (device "meta") give."""
        self._fake = abstract_fn
        return abstract_fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The gradient: backward(ctx, *grads), after setup_context(ctx, inputs, output)."""
        self._backward = backward
        self._setup_context = setup_context

    def register_kernel(
        self, device_types: str | Iterable[str] | None, fn: Callable[..., Any] | None = None, /
    ) -> Any:
        """A kernel for tensors of some devices; without one, a decorator."""

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            _enter(self, device_types, kernel)
            return kernel

        return register if fn is None else register(fn)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Taken, and not needed: vmap computes the samples one after the other."""
        return (lambda given: given) if func is None else func

    def register_autocast(self, device_type: str, cast_inputs: dtypes.dtype) -> None:
        """Convert floating inputs to a dtype where autocast is on."""
        self._cast_to[device_type] = cast_inputs


def _cast_to(wanted: dtypes.dtype, value: Any) -> Any:
    floating = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(wanted) if floating else value


_DEFINITIONS: Final[dict[str, CustomOpDef]] = {}


def _parts(qualified: str) -> tuple[str, str]:
    namespace, separator, name = qualified.partition("::")
    if not separator or not namespace or not name:
        raise ValueError(
            f"Expected `{qualified}` to be of the form `namespace::name`: a namespace is needed to "
            "keep the operators of libraries apart."
        )
    return namespace, name


def _definition(op: Any) -> CustomOpDef:
    """What is behind an operator or its name: kernels may be there before the operator is."""
    if isinstance(op, CustomOpDef):
        return op
    name = op.name() if isinstance(op, OpOverload) else str(op).removesuffix(".default")
    if name not in _DEFINITIONS:
        _DEFINITIONS[name] = CustomOpDef(*_parts(name))
    return _DEFINITIONS[name]


def _enter(definition: CustomOpDef, keys: str | Iterable[str] | None, kernel: Any) -> None:
    for key in ("CPU",) if keys is None else (keys,) if isinstance(keys, str) else keys:
        key = {"cpu": "CPU", "default": "CompositeExplicitAutograd"}.get(key, key)
        if key == "Meta":
            definition._fake = kernel
        else:
            definition._kernels[key] = kernel


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str],
    device_types: Any = None, schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make a function with annotations an operator; without one, a decorator.

    name           "namespace::name"
    mutates_args   names of the arguments that the function writes to
    schema         the signature; None reads it from the annotations
    Raises   ValueError: an argument without annotation, or of a type that operators do not take

    >>> import flambeau as torch
    >>> @custom_op("changelog::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> torch.ops.changelog.twice(torch.ones(2))
    tensor([2., 2.])
    """

    def made(function: Callable[..., Any]) -> CustomOpDef:
        namespace, base = _parts(name)
        told = schema or infer_schema(function, mutates_args=mutates_args)
        definition = _DEFINITIONS[name] = CustomOpDef(namespace, base)
        definition._define(base + told.removeprefix(base))
        _enter(definition, device_types, function)
        return definition

    return made if fn is None else made(fn)


_TYPES: Final[dict[Any, str]] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
    dtypes.dtype: "ScalarType",
}  # fmt: skip


def _type_name(annotation: Any) -> str | None:
    """What a schema calls a type; None for one that operators do not take."""
    from collections.abc import Sequence
    from types import NoneType, UnionType
    from typing import Union, get_args, get_origin

    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        rest = [each for each in inner if each is not NoneType]
        if len(rest) == 1 and len(inner) == 2:
            found = _type_name(rest[0])
            return found and found + "?"
        return "Scalar" if set(rest) == {int, float, bool} else None
    if origin in (list, Sequence) and len(inner) == 1:
        found = _type_name(inner[0])
        return found and found + "[]"
    return None


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None,
    tags: Any = (),
) -> str:  # fmt: skip
    """The schema that a function's annotations mean.

    Raises   ValueError: an argument without annotation, or of a type that operators do not take

    >>> import flambeau as torch
    >>> def scale(x: torch.Tensor, by: float = 1.0) -> torch.Tensor: ...
    >>> infer_schema(scale, mutates_args=())
    '(Tensor x, float by=1.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function, eval_str=True)
    written, starred = [], False
    for name, each in signature.parameters.items():
        if each.annotation is inspect.Parameter.empty:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. Got func with "
                f"signature {signature})"
            )
        kind = _type_name(each.annotation)
        if kind is None:
            raise ValueError(
                f"infer_schema(func): Parameter {name} has unsupported type {each.annotation}. "
                f"Got func with signature {signature})"
            )
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            written.append("*")
        if mutates_args == "unknown" or name in mutates_args:
            kind = kind.replace("Tensor", f"Tensor(a{len(written)}!)", 1)
        default = "" if each.default is inspect.Parameter.empty else f"={each.default}"
        written.append(f"{kind} {name}{default}")
    return f"{op_name or ''}({', '.join(written)}) -> {_returned(signature)}"


def _returned(signature: inspect.Signature) -> str:
    from typing import get_args, get_origin

    given = signature.return_annotation
    if given is None or given is inspect.Signature.empty:
        return "()"
    parts = get_args(given) if get_origin(given) is tuple else (given,)
    names = [_type_name(each) for each in parts]
    if None in names:
        raise ValueError(
            f"infer_schema(func): Return has unsupported type {given}. Got func with signature "
            f"{signature})"
        )
    told = ", ".join(map(str, names))
    return f"({told})" if get_origin(given) is tuple else told


class Library:
    """Operators of one namespace, defined by schemas.

    kind           "DEF" or "FRAGMENT" to define, "IMPL" to give kernels
    dispatch_key   the key of kernels that are given without one
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: " + kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema, "name(Tensor x) -> Tensor"; returns its name."""
        name = schema.partition("(")[0].strip()
        _definition(f"{self.ns}::{name}")._define(schema)
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *,
        with_keyset: bool = False, allow_override: bool = True,
    ) -> None:  # fmt: skip
        """Give an operator its kernel for a key.

        Raises   NotImplementedError: an operator of torch's own library"""
        if self.ns == "aten":
            raise NotImplementedError(
                helped(
                    f"aten::{op_name}: kernels are given to operators that a program has defined",
                    fix="define one: Library.define, or torch.library.custom_op",
                )
            )
        named = op_name if isinstance(op_name, OpOverload) else f"{self.ns}::{op_name}"
        _enter(_definition(named), dispatch_key or self.dispatch_key, fn)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Define operator "namespace::name" by its schema, "(Tensor x) -> Tensor"."""
    namespace, name = _parts(qualname)
    Library(namespace, "FRAGMENT").define(name + schema)


def impl(
    qualname: Any, types: str | Iterable[str], func: Callable[..., Any] | None = None, *,
    lib: Any = None,
) -> Any:  # fmt: skip
    """Give an operator its kernel for devices or keys; without one, a decorator."""
    return _definition(qualname).register_kernel(types, func)


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Give an operator its kernel for devices; without one, a decorator."""
    return _definition(op).register_kernel(device_types, func)


def register_fake(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:  # fmt: skip
    """What an operator gives for tensors without data; without a function, a decorator."""
    definition = _definition(op)
    return definition.register_fake if func is None else definition.register_fake(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *,
    setup_context: Callable[..., Any] | None = None, lib: Any = None,
) -> None:  # fmt: skip
    """Give an operator its gradient."""
    _definition(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Taken, and not needed: vmap computes the samples one after the other."""
    return _definition(op).register_vmap(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: dtypes.dtype, /, *, lib: Any = None
) -> None:
    """Convert an operator's floating inputs to a dtype where autocast is on."""
    _definition(op).register_autocast(device_type, cast_inputs)


__getattr__ = module_getattr(__name__)
