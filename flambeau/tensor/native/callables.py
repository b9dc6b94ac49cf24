"""Native callables of operators: made over a closure, which stays the general path.

Keeps     the closure is what a call means; a native callable learns from each call the closure had
          to take which way such calls go, and takes the next one itself.
Touches   library, binding (plans of gradients), ops.
Not here  the closures (closures.py), native code (record_text.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final

from flambeau.gradients.plan import Plan
from flambeau.tensor.binding import Binding
from flambeau.tensor.native.library import Library, Ways, library, make_callable, special_value
from flambeau.tensor.native.record_text import CALLABLE, GRADIENT, NO_VALUE, RUN_TIME
from flambeau.tensor.tensor import Tensor

Function = Callable[..., Any]
_NUMBERS: Final = (int, float)
_WAYS: Final[dict[tuple[str, str], Ways]] = {}


def walk() -> Callable[..., bool] | None:
    """The native backward pass over ordinary nodes, or None."""
    native = library()
    return None if native is None else native.walk


def program(plan: Plan) -> int:
    """Address of what the walk wants to know of a plan, 0 where it does not run its nodes."""
    native = library()
    return 0 if native is None else native.program(plan)


def _ways(library: Library, binding: Binding, form: str) -> Ways:
    found = _WAYS.get((binding.name, form))
    if found is None:
        found = _WAYS[binding.name, form] = Ways(library)
    return found


def _flags(binding: Binding, signature: Any) -> int:
    flags = RUN_TIME if signature.number_format else 0
    layout = signature.out_layout
    if binding.operator.differentiable and layout is not None and layout.dtype.category >= 2:
        flags |= GRADIENT
    return flags


def unary(binding: Binding, function: Function, signatures: Mapping[Any, Any]) -> Function:
    """The native form of a closure of one tensor; the closure itself where there is none."""
    native = library()
    if native is None:
        return function
    ways = _ways(native, binding, "fresh")

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if len(arguments) == 1 and not named and isinstance(arguments[0], Tensor):
            layout = arguments[0]._layout
            signature = signatures.get(layout)
            if signature is not None:
                ways.remember(
                    layout, None, NO_VALUE, signature, (layout,), _flags(binding, signature)
                )
        return found

    def attach(attributes: Any, input: Any, out: Any, site: Any) -> None:
        plan = binding.gradient_plan
        plan.attach(attributes, (input,), out, site)
        _set_plan(made, plan, 1)

    made = make_callable(
        native, native.unary, python, ways, attach=attach, mark=binding.mark_inference
    )
    return made  # type: ignore[no-any-return]


def binary(
    binding: Binding, function: Function, signatures: Mapping[Any, Any], extra: tuple[Any, ...]
) -> Function:
    """The native form of a closure of a tensor and a tensor or number."""
    native = library()
    if native is None:
        return function
    ways = _ways(native, binding, "fresh")
    specials = binding.parameters[1].specials

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if len(arguments) == 2 and not named and isinstance(arguments[0], Tensor):
            _learn(binding, ways, signatures, arguments[0]._layout, arguments[1], specials)
        return found

    def attach(attributes: Any, input: Any, other: Any, out: Any, site: Any) -> None:
        plan = binding.gradient_plan
        plan.attach(attributes, (input, other, *extra), out, site)
        _set_plan(made, plan, 2)

    made = make_callable(
        native, native.binary, python, ways, specials=specials, extra=extra, attach=attach,
        mark=binding.mark_inference,
    )  # fmt: skip
    return made  # type: ignore[no-any-return]


def inplace(
    binding: Binding, function: Function, signature_of: Callable[..., Any], count: int
) -> Function:
    """The native form of name_(): signature_of(target, other) tells what a write records."""
    native = library()
    if native is None:
        return function
    ways = _ways(native, binding, "inplace")
    specials = binding.parameters[1].specials if count == 2 else ()

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if len(arguments) == count and not named and isinstance(arguments[0], Tensor):
            target = arguments[0]._layout
            if count == 1:
                signature = signature_of(target)
                if signature is not None:
                    ways.remember(
                        target, None, NO_VALUE, signature, (), _flags(binding, signature)
                    )
            else:
                known = _Asked(signature_of)
                _learn(binding, ways, known, target, arguments[1], specials)
        return found

    address = native.inplace_unary if count == 1 else native.inplace_binary
    made = make_callable(native, address, python, ways, specials=specials)
    return made  # type: ignore[no-any-return]


class _Asked:
    """A function of key parts as the mapping _learn reads."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def get(self, key: tuple[Any, ...]) -> Any:
        """The signature of such calls, or None."""
        return self._ask(*key)


def _learn(
    binding: Binding, ways: Ways, signatures: Any, left: Any, other: Any, specials: tuple[float, ...]
) -> None:
    """Remember the way of a call that Python took, where native code can take it."""
    kind = type(other)
    if isinstance(other, Tensor):
        right = other._layout
        signature = signatures.get((left, right))
        layouts: Any = (left, right)
        value = NO_VALUE
    elif kind in _NUMBERS:
        if not -(2**63) <= other < 2**63 and kind is int:
            return
        right = kind
        value = special_value(specials, other)
        key = (left, kind) if value == NO_VALUE else (left, kind, other)
        signature = signatures.get(key)
        layouts = (left, None)
    else:
        return
    if signature is not None:
        ways.remember(left, right, value, signature, layouts, _flags(binding, signature))


def _set_plan(made: Any, plan: Plan, n_tensors: int) -> None:
    """Let native code make this operator's nodes, if they are of the common shape."""
    kinds = [role for _, role in plan.roles]
    simple = not plan.multiple and kinds[:n_tensors] == ["tensor"] * n_tensors
    if not simple or len(plan.positions) != n_tensors or not plan.has_vjp:
        return
    if not plan.operator.differentiable:
        return
    native = library()
    if native is None:
        return
    saves = 0
    for case in range(1, 1 << n_tensors):
        flags = plan.saves(tuple([bool(case >> n & 1) for n in range(n_tensors)]))
        left, right = flags[0], flags[1] if n_tensors == 2 else False
        saves |= (left | right << 1 | flags[-1] << 2) << 3 * case
    words = ctypes.c_uint64 * len(CALLABLE)
    table = words.from_address(id(made) + CALLABLE["vectorcall"])
    table[(CALLABLE["saves"] - CALLABLE["vectorcall"]) // 8] = saves
    table[(CALLABLE["plan"] - CALLABLE["vectorcall"]) // 8] = native.keep(plan)
