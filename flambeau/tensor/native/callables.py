"""Native callables of operators: made over a closure, which stays the general path.

Keeps     the closure is what a call means; a native callable learns from each call the closure had
          to take which way such calls go, and takes the next one itself.
Touches   library, binding (plans of gradients), ops.
Not here  the closures (closures.py), native code (text/)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from flambeau.base.devices import META
from flambeau.base.layout import Layout
from flambeau.gradients.autocast import POLICIES
from flambeau.gradients.recording.inplace import attach_view
from flambeau.gradients.recording.plan import Plan
from flambeau.tensor.binding import ABSENT, BINDINGS, Binding
from flambeau.tensor.native import tables
from flambeau.tensor.native.library import (
    Library,
    Ways,
    make_callable,
    ready,
    set_word,
    special_value,
    specials_address,
    when_made,
)
from flambeau.tensor.native.tables import (
    NO_VALUE,
    ROW,
    SHAPE,
)
from flambeau.tensor.native.ways import (
    ROW_KINDS,
    GeneralWays,
    ViewWays,
    gradient_flags,
)
from flambeau.tensor.number_rules import may_overflow
from flambeau.tensor.tensor import Tensor

Function = Callable[..., Any]
_WAYS: Final[dict[tuple[str, str], Ways]] = {}


def walk() -> tuple[Function, Function] | None:
    """The native backward pass: finding the nodes, running the ordinary ones. None without it."""
    native = ready()
    return None if native is None else (native.discover, native.walk)


def program(plan: Plan) -> int:
    """Address of what the walk wants to know of a plan, 0 where it does not run its nodes."""
    native = ready()
    return 0 if native is None else native.program(plan)


def renew() -> None:
    """Tell plans that were made before the native walk what it knows of them."""
    for bound in BINDINGS.values():
        bound.renew_plan(program)


when_made(renew)


def _ways(library: Library, binding: Binding, form: str) -> Ways:
    found = _WAYS.get((binding.name, form))
    if found is None:
        found = _WAYS[binding.name, form] = Ways(library)
    return found


def _shown_for(function: Any, made: Any) -> Function:
    """The native callable, as what a __torch_function__ is shown when Python's function is taken
    over."""
    function.shown = made
    made.public = getattr(function, "public", None)
    return made


def unary(binding: Binding, function: Function, signatures: Mapping[Any, Any]) -> Function:
    """The native form of a closure of one tensor; the closure itself where there is none."""
    native = ready()
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
                    layout, None, NO_VALUE, signature, (layout,), gradient_flags(binding, signature)
                )
        return found

    def attach(attributes: Any, input: Any, out: Any, site: Any) -> None:
        plan = binding.gradient_plan
        if not told:
            told.append(plan)
            _set_plan(made, plan, 1)
        plan.attach(attributes, (input,), out, site)

    made = make_callable(
        native, native.unary, python, ways, attach=attach, mark=binding.mark_inference,
        rest=general(binding, python), pausable=binding.name in POLICIES,
    )  # fmt: skip
    return _shown_for(function, made)


def binary(
    binding: Binding, function: Function, signatures: Mapping[Any, Any], extra: tuple[Any, ...]
) -> Function:
    """The native form of a closure of a tensor and a tensor or number."""
    native = ready()
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
        mark=binding.mark_inference, rest=general(binding, python),
        pausable=binding.name in POLICIES,
    )  # fmt: skip
    return _shown_for(function, made)


_OPTIONAL_KINDS: Final = ("OptionalTensor", "OptionalNumber", "OptionalOperand")


def view(binding: Binding, function: Function, packs: bool = False) -> Function:
    """The native form of a view operator. packs: takes sizes one by one."""
    native = ready()
    parameters = binding.parameters
    if native is None or parameters[0].kind != "Tensor":
        return function
    if any(p.kind != "attribute" for p in parameters[1:]):
        return function
    ways = ViewWays(binding)

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        ways.learn(arguments, named, packs)
        return found

    attach = _general_attach(native, binding)

    def attach_parts(attributes: Any, operands: Any, out: Any, site: Any) -> None:
        if out.__class__ is tuple:
            attach_view(binding.gradient_plan, attributes, operands[0], out, site)
        else:
            attach(attributes, operands, out, site)

    made = make_callable(
        native, native.view, python, ways, attach=attach_parts,
        shape=_shape(native, binding, packs),
    )  # fmt: skip
    attach.made = made
    return _shown_for(function, made)


def getitem(binding: Binding, function: Function, memo_key: str) -> Function:
    """The native form of x[int] over Python's x[key]; binding: of `select`."""
    native = ready()
    if native is None:
        return function
    attach = _general_attach(native, binding)
    key = _OneKey(memo_key)
    made = make_callable(native, native.getitem, function, key, attach=attach, shape=1)
    attach.made = made
    return made


def guard(asking: Any) -> Any:
    """The native form of a function written in Python that asks who takes a call over
    (taken_over.overridable): nobody is asked where that is seen at sight."""
    native = ready()
    if native is None or getattr(asking, "unasked", None) is None:
        return asking
    made = make_callable(native, native.guard, asking.unasked, _OneKey(""), rest=asking, shape=1)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "public"):
        setattr(made, name, getattr(asking, name))
    return _shown_for(asking, made)


class _OneKey:
    """The one key native code needs."""

    def __init__(self, found: str) -> None:
        self.found = found


def _general_attach(native: Library, binding: Binding) -> Any:
    """Python's attach for what native code hands over; tells it the plan the first time, unless
    results are several: their history is Python's."""
    told: list[Plan] = []

    def attach(attributes: Any, operands: Any, out: Any, site: Any) -> None:
        plan = binding.gradient_plan
        if not told and not plan.multiple:
            told.append(plan)
            _set_general_plan(attach.made, native, plan)  # type: ignore[attr-defined]
        plan.attach(attributes, operands, out, site)

    return attach


def general(binding: Binding, function: Function) -> Function:
    """The native form of an operator with fresh results and any parameters."""
    native = ready()
    operator, parameters = binding.operator, binding.parameters
    if native is None or binding.is_view or operator.updates:
        return function
    if len(parameters) > tables.MAXIMUM_PARAMETERS - 2:
        return function
    if any(parameter.kind not in ROW_KINDS for parameter in parameters):
        return function
    ways = GeneralWays(native, binding)

    def python(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        if "out" not in named:
            ways.learn(arguments, named)
        return found

    attach = _general_attach(native, binding)
    made = make_callable(
        native, native.general, python, ways, attach=attach, mark=binding.mark_inference,
        shape=_shape(native, binding), pausable=binding.name in POLICIES,
    )  # fmt: skip
    attach.made = made
    return _shown_for(function, made)


def _shape(native: Library, binding: Binding, packs: bool = False) -> int:
    """Words that tell native code an operator's parameters."""
    rows = len(binding.parameters)
    row_words = tables.ROW_BYTES // 8
    words = native._words(len(SHAPE) - 1 + rows * row_words)
    words[SHAPE["count"] // 8] = rows
    words[SHAPE["positional"] // 8] = binding.n_positional
    words[SHAPE["packs"] // 8] = packs
    for number, parameter in enumerate(binding.parameters):
        start = SHAPE["rows"] // 8 + number * row_words
        row = {
            "kind": ROW_KINDS[parameter.kind],
            "default": 0 if parameter.default is ABSENT else native.keep(parameter.default),
            "name": native.keep(sys.intern(parameter.name)),
            "specials": specials_address(native, parameter.specials),
            "optional": parameter.kind in _OPTIONAL_KINDS,
        }
        for name, word in row.items():
            words[start + ROW[name] // 8] = word
    return ctypes.addressof(words)


def _set_general_plan(made: Any, native: Library, plan: Plan) -> None:
    """Let native code make this operator's nodes: up to three tensors, none in sequences."""
    n_tensors = len(plan.positions)
    if plan.multiple or plan.has_sequences or not plan.has_vjp or not 1 <= n_tensors <= 3:
        return
    if not plan.operator.differentiable:
        return
    words = native._words(1 << n_tensors)
    words[0] = sum(1 << position for position in plan.positions)
    for case in range(1, 1 << n_tensors):
        flags = plan.saves(tuple([bool(case >> n & 1) for n in range(n_tensors)]))
        words[case] = sum(flag << slot for slot, flag in enumerate(flags))
    set_word(made, "saves", ctypes.addressof(words))
    set_word(made, "plan", native.keep(plan))


def inplace(binding: Binding, function: Function) -> Function:
    """The native form of name_() where it writes a tensor, or a tensor and a tensor or number."""
    native = ready()
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
    made = make_callable(native, address, python, ways, specials=specials)
    return _shown_for(function, made)


def _learn_inplace(
    binding: Binding, ways: Ways, arguments: tuple[Any, ...], specials: tuple[float, ...]
) -> None:
    """Remember the way of a write that Python did, where native code can do it."""
    target, others = arguments[0]._layout, arguments[1:]
    if target.device is META or may_overflow(binding.name, target.dtype):
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
    ways.remember(target, right, value, signature, (), gradient_flags(binding, signature))


def _operand(other: Any, specials: tuple[float, ...]) -> tuple[Any, int] | None:
    """What a second operand puts into a way: its layout or type, and its value if it is named."""
    kind = type(other)
    if isinstance(other, Tensor):
        return other._layout, NO_VALUE
    if kind is float or (kind is int and -(2**63) <= other < 2**63):
        return kind, special_value(specials, other)
    return None


def _learn(
    binding: Binding,
    ways: Ways,
    signatures: Mapping[Any, Any],
    left: Any,
    other: Any,
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
        ways.remember(left, right, value, signature, layouts, gradient_flags(binding, signature))


def _set_plan(made: Any, plan: Plan, n_tensors: int) -> None:
    """Let native code make this operator's nodes, if they are of the common shape."""
    kinds = [role for _, role in plan.roles]
    simple = not plan.multiple and kinds[:n_tensors] == ["tensor"] * n_tensors
    if not simple or len(plan.positions) != n_tensors or not plan.has_vjp:
        return
    if not plan.operator.differentiable:
        return
    native = ready()
    if native is None:
        return
    saves = 0
    for case in range(1, 1 << n_tensors):
        flags = plan.saves(tuple([bool(case >> n & 1) for n in range(n_tensors)]))
        left, right = flags[0], flags[1] if n_tensors == 2 else False
        saves |= (left | right << 1 | flags[-1] << 2) << 3 * case
    set_word(made, "saves", saves)
    set_word(made, "plan", native.keep(plan))
