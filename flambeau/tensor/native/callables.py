"""Native callables of operators: made over a closure, which stays the general path.

Keeps     the closure is what a call means; a native callable learns from each call the closure had
          to take which way such calls go, and takes the next one itself.
Touches   library, binding (plans of gradients), ops.
Not here  the closures (closures.py), native code (record_text.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final

from flambeau.base.devices import META
from flambeau.base.layout import Layout
from flambeau.gradients.plan import Plan
from flambeau.tensor.binding import ABSENT, Binding
from flambeau.tensor.native.library import Library, Ways, library, make_callable, special_value
from flambeau.tensor.native.record_text import CALLABLE, GRADIENT, NO_VALUE, RUN_TIME
from flambeau.tensor.tensor import Tensor

Function = Callable[..., Any]
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
    told: list[Plan] = []

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if len(arguments) == 1 and not named and isinstance(arguments[0], Tensor):
            layout = arguments[0]._layout
            signature = signatures.get(layout)
            if signature is not None and not ways.knows(layout, None, NO_VALUE):
                ways.remember(
                    layout, None, NO_VALUE, signature, (layout,), _flags(binding, signature)
                )
        return found

    def attach(attributes: Any, input: Any, out: Any, site: Any) -> None:
        plan = binding.gradient_plan
        if not told:
            told.append(plan)
            _set_plan(made, plan, 1)
        plan.attach(attributes, (input,), out, site)

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
    told: list[Plan] = []
    specials = binding.parameters[1].specials

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if len(arguments) == 2 and not named and isinstance(arguments[0], Tensor):
            _learn(binding, ways, signatures, arguments[0]._layout, arguments[1], specials)
        return found

    def attach(attributes: Any, input: Any, other: Any, out: Any, site: Any) -> None:
        plan = binding.gradient_plan
        if not told:
            told.append(plan)
            _set_plan(made, plan, 2)
        plan.attach(attributes, (input, other, *extra), out, site)

    made = make_callable(
        native, native.binary, python, ways, specials=specials, extra=extra, attach=attach,
        mark=binding.mark_inference,
    )  # fmt: skip
    return made  # type: ignore[no-any-return]


def inplace(binding: Binding, function: Function) -> Function:
    """The native form of name_() where it writes a tensor, or a tensor and a tensor or number."""
    native = library()
    parameters = binding.parameters
    required = [p for p in parameters if p.default is ABSENT]
    count = len(required)
    if native is None or binding.has_bounds or count > 2 or required != list(parameters[:count]):
        return function
    if any(p.kind not in ("Tensor", "Operand", "Number") for p in required):
        return function
    ways = _ways(native, binding, "inplace")
    specials = parameters[1].specials if count == 2 else ()

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if len(arguments) == count and not named:
            _learn_inplace(binding, ways, arguments, specials)
        return found

    address = native.inplace_unary if count == 1 else native.inplace_binary
    return make_callable(native, address, python, ways, specials=specials)  # type: ignore[no-any-return]


def _learn_inplace(
    binding: Binding, ways: Ways, arguments: tuple[Any, ...], specials: tuple[float, ...]
) -> None:
    """Remember the way of a write that Python did, where native code can do it."""
    target, others = arguments[0]._layout, arguments[1:]
    if target.device is META:
        return
    right, value = None, NO_VALUE
    if others:
        found = _operand(others[0], specials)
        if found is None:
            return
        right, value = found
    if ways.knows(target, right, value):
        return
    call = binding.taken_apart(binding.arranged(arguments, {}))
    signature = binding.signatures.get(("inplace", *call.key))
    plain = () if value != NO_VALUE or isinstance(right, Layout) or not others else others
    if signature is None or tuple(call.numbers) != plain or len(call.tensors) > len(arguments):
        return
    ways.remember(target, right, value, signature, (), _flags(binding, signature))


def _operand(other: Any, specials: tuple[float, ...]) -> tuple[Any, int] | None:
    """What a second operand puts into a way: its layout or type, and its value if it is named."""
    kind = type(other)
    if isinstance(other, Tensor):
        return other._layout, NO_VALUE
    if kind is float or (kind is int and -(2**63) <= other < 2**63):
        return kind, special_value(specials, other)
    return None


def _learn(
    binding: Binding, ways: Ways, signatures: Mapping[Any, Any], left: Any, other: Any,
    specials: tuple[float, ...],
) -> None:
    """Remember the way of a call that Python took, where native code can take it."""
    found = _operand(other, specials)
    if found is None or ways.knows(left, *found):
        return
    right, value = found
    is_number = not isinstance(right, Layout)
    key = (left, right) if value == NO_VALUE else (left, right, other)
    signature = signatures.get(key)
    if signature is not None:
        layouts = (left, None if is_number else right)
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
