"""What an operator is: one class that holds inference, formula or lowering, gradient and samples.

Keeps     an operator is a description: it names no engine, no device and no tensor class. Names of
          parameters carry meaning, so nothing is said twice (see Operator).
Touches   base; formulas speak only through the `k`, lowerings through the `b`, gradients through
          the `t` that they are given.
Not here  the functions and methods made from it (tensor/binding.py), the builder `b`
          (engine/planning/lowering/lower.py), the vocabulary `k` (codegen/vocabulary.py).

    @operator("sigmoid", aliases=("special.expit", "nn.functional.sigmoid"))
    class Sigmoid(Elementwise):
        '''Logistic function, 1 / (1 + e^-x), element by element.'''
        promote = INT_TO_FLOAT
        def formula(self, k, input):
            return k.div(1, k.add(1, k.exp(k.neg(input))))
        def vjp(self, t, grad, out):
            return grad * (out * (1 - out))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Any, ClassVar, Final, TypeVar

from flambeau.base import dtypes, promotion, shapes
from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout, contiguous
from flambeau.base.promotion import BOOL_RESULT, DEFAULT, INT_TO_FLOAT, SAME, Scalar
from flambeau.ops import names

__all__ = [
    "AS_GIVEN", "BOOL_RESULT", "DEFAULT", "INT_TO_FLOAT", "REGISTRY", "SAME", "Bound",
    "Elementwise", "Inferred", "Number", "Operand", "Operator", "OptionalNumber", "OptionalOperand",
    "OptionalTensor", "Reduction", "Scalar", "Sizes", "Tensor", "Tensors", "Underivable", "View",
    "c_type_name", "check_floating", "not_implemented", "operator", "type_name",
]  # fmt: skip

# Kinds of operands, spelled as annotations; see Operator. An operand is a layout in inference, a
# value in lowering, an expression in formulas and a tensor in gradients, hence Any.
Tensor = Any
Operand = Any
OptionalTensor = Any
OptionalOperand = Any
Tensors = Any
Number = Any
OptionalNumber = Any
Sizes = Any

# (operand, "indices.2" for one of a sequence; lowest value; one above the highest; the error that
# a value outside raises)
# Operand, its values' range [low, high), the error; None for both: anything but 0, a divisor.
Bound = tuple[str, int | None, int | None, Callable[[int], Exception]]

# out_refusal of operators whose result has the dtype of their input and no other.
AS_GIVEN: Final = "Found dtype {given} but expected {result}"
OPERAND_KINDS: Final = frozenset(
    ("Layout", "Tensor", "Operand", "OptionalTensor", "OptionalOperand", "Tensors", "Number",
     "OptionalNumber")
)  # fmt: skip


class Inferred:
    """Outcome of inference: layouts of the outputs and attributes as lowering and gradient want
    them (dims wrapped, defaults filled, dtypes chosen)."""

    __slots__ = ("attributes", "outputs")

    def __init__(self, outputs: tuple[Layout, ...], attributes: dict[str, Any]) -> None:
        self.outputs: Final = outputs
        self.attributes: Final = attributes


class Operator:
    """Base of all operators.

    The parameters of `infer` (of `formula` for elementwise operators, of `view` for views) are the
    public signature: same names, order, kinds and defaults as torch's function. Annotations say
    what each is:

        (none), Tensor or Layout   a tensor; inference sees its Layout
        Operand                  a tensor or a Python number; inference sees a Layout or a Scalar
        OptionalTensor, OptionalOperand   the same or None
        Tensors                  a sequence of tensors; inference sees a tuple of Layouts
        Number, OptionalNumber   a Python number that may change from call to call without making
                                 a new kernel; inference sees a Scalar, formulas an operand
        Sizes                    an attribute: ints, as a sequence or (in methods) one by one
        anything else            an attribute: part of the signature, hashable (lists become tuples)

    `lower(self, b, <operands and attributes by name>)` says it in loops. `vjp(self, t, grad, ...)`
    returns the cotangent of each tensor operand in order (None: no gradient; a single value for
    one operand). Its parameter names say what is saved: operands and Numbers by their names, `out`
    (or the names in `returns`) for the result, attributes by theirs, `<operand>_layout` for shape
    and dtype only (saves nothing), `needs` for a tuple of bools, one an operand. A cotangent of a
    broadcast shape is summed, one of another dtype converted, by whoever calls vjp. With several
    outputs `grad` is the first one's cotangent, `grad_<name>` that of the result `name` (None where
    there is none), `grads` all of them.

    Everything is called by name or in the order of the signature. `t` holds every registered
    operator under its name, the internal ones (function=False) included.
    """

    name: ClassVar[str] = ""
    methods: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    function: ClassVar[bool] = True  # a name of its own under torch
    inplace: ClassVar[bool] = False  # has name_()
    # In place, elements that it does not choose (by an index, a mask) are left alone: where others
    # share their memory, they are not written back.
    writes_chosen: ClassVar[bool] = False
    out: ClassVar[bool] = True  # takes out=
    returns: ClassVar[tuple[str, ...]] = ()  # field names when there are several outputs
    shows_names: ClassVar[bool] = True  # whether the user's tuple has these fields, too
    # Operands written, for an operator that only updates what it is given: lower returns their new
    # values in this order (a list for an operand that is a list), infer no outputs.
    updates: ClassVar[tuple[str, ...]] = ()
    # Values of a Number or Operand that choose another formula, {"exponent": (2, 3, 0.5)}: they
    # are part of the signature, and formula or lower gets the Python number itself.
    specials: ClassVar[dict[str, tuple[float, ...]]] = {}
    # Operand -> names its cotangent reads; absent: whatever vjp names. Saves less.
    saved_for: ClassVar[dict[str, tuple[str, ...]]] = {}
    # Attributes that hold sizes (ints, nested tuples of them) and are used as sizes alone: plans
    # are shared between calls that differ in them.
    sizes: ClassVar[tuple[str, ...]] = ()
    # torch's error for an out= tensor of another dtype than the result's; None: any dtype that the
    # result can be cast to will do. {result}, {given}: as type_name names them, {c_...}: as
    # c_type_name does.
    out_refusal: ClassVar[str | None] = (
        "Expected out tensor to have dtype {c_result}, but got {c_given} instead"
    )
    # Without dtype=, an out= tensor's dtype is the one computed in.
    follows_out: ClassVar[bool] = False
    # vjp multiplies the cotangent by derivatives of a function that is real on real numbers: of
    # complex ones whoever calls it hands in the conjugates (gradients.recording.plan).
    holomorphic: ClassVar[bool] = False
    differentiable: ClassVar[bool] = True

    def infer(self, *operands: Any, **attributes: Any) -> Layout | tuple[Layout, ...] | Inferred:
        """Layouts of the outputs; raises torch's errors. Sees layouts, never values."""
        raise NotImplementedError

    def takes_out(self, result: dtype, given: dtype) -> bool:
        """Whether an out= tensor of dtype `given` will do; asked where out_refusal is a text."""
        return result is given

    def lower(self, b: Any, *operands: Any, **attributes: Any) -> Any:
        """The outputs as values of the lowering builder `b`."""
        raise NotImplementedError

    # Attribute without which no values are bounded, so that calls without it pay nothing.
    bounds_need: ClassVar[str] = ""

    def bounds(self, *operands: Any, **attributes: Any) -> list[Bound]:
        """Values that index operands may have; called as infer is."""
        return []

    def samples(self, s: Any) -> list[Any]:
        """Argument lists for the tests, made by `s` (ops/samples.py)."""
        return []


def parameter_kinds(function: Any, n_skipped: int) -> dict[str, str]:
    """Parameter -> its annotation as written, "Tensor" where there is none, in order."""
    code = function.__code__
    names = code.co_varnames[n_skipped : code.co_argcount + code.co_kwonlyargcount]
    annotations = function.__annotations__
    return {name: str(annotations.get(name, "Tensor")) for name in names}


class Elementwise(Operator):
    """An operator whose result at a place depends on its operands at that place alone.

    `formula(self, k, operands...)` gets operands converted to the dtype computed in (the promoted
    dtype's `compute`; bool is computed as uint8 unless `keeps_bool`) and returns the result in it,
    or a bool for BOOL_RESULT. Only tensors and Operands promote, a Number takes their dtype.
    """

    promote: ClassVar[str] = DEFAULT
    inplace = True
    out_refusal: ClassVar[str | None] = None
    keeps_bool: ClassVar[bool] = False
    # Whether there is a formula for complex numbers, and whether its result is then real; else
    # torch's error, the class and message if not "<kernel>" not implemented.
    takes_complex: ClassVar[bool] = False
    gives_real: ClassVar[bool] = False
    complex_error: ClassVar[tuple[type[Exception], str] | None] = None
    complex_kernel: ClassVar[str] = ""
    # Name of torch's kernel, for operators that torch has for floating dtypes only.
    floating_kernel: ClassVar[str] = ""
    # Whether torch has the operator for float32 and float64 alone.
    refuses_halves: ClassVar[bool] = False
    # Operands that the formula takes as they are where they have one element; all others are
    # rounded to the promoted dtype first, numbers too, which tells where that is short.
    taken_exactly: ClassVar[tuple[str, ...]] = ()
    # Operand -> range in which the formula is smooth, for samples.
    domain: ClassVar[dict[str, tuple[float, float]]] = {}

    def formula(self, k: Any, *operands: Any, **attributes: Any) -> Any:
        """The scalar formula, in the vocabulary `k`."""
        raise NotImplementedError

    def kinds(self) -> dict[str, str]:
        """Kind of each parameter of the signature."""
        return parameter_kinds(type(self).formula, 2)

    def validate(self, arguments: dict[str, Any]) -> None:
        """Refuse arguments (layouts, Scalars and attributes by name) with torch's errors."""

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        """(dtype computed in, dtype of the result) for the operands that promote."""
        return promotion.promote(self.promote, operands)

    def check(self, common: dtype) -> None:
        """Refuse dtypes, with torch's errors; `common` is the dtype computed in."""
        if self.floating_kernel and not common.is_floating_point:
            raise not_implemented(self.floating_kernel, common)
        if self.refuses_halves and common in (dtypes.float16, dtypes.bfloat16):
            raise not_implemented(self.kernel_name(), common)

    def kernel_name(self) -> str:
        """What torch calls its kernel in messages about dtypes."""
        default = f"{self.name.removeprefix('special_')}_cpu"
        return self.complex_kernel or self.floating_kernel or default

    def check_complex(self, common: dtype) -> None:
        """Refuse complex numbers where there is no formula for them."""
        if self.complex_error is not None:
            raise self.complex_error[0](self.complex_error[1])
        if not self.takes_complex:
            raise not_implemented(self.kernel_name(), common)

    def infer(self, *operands: Any, **named: Any) -> Inferred:
        """Broadcast shape, promoted dtype; shared by all elementwise operators."""
        kinds = self.kinds()
        arguments = {**dict(zip(kinds, operands, strict=False)), **named}
        self.validate(arguments)
        promoting = []
        attributes = {}
        for name, value in arguments.items():
            if kinds[name] not in OPERAND_KINDS:
                attributes[name] = value
            elif "Number" not in kinds[name] and value is not None:
                promoting.append(value)
        common, result = self.promoted(tuple(promoting), attributes)
        if common.is_complex:
            self.check_complex(common)
            result = result.to_real() if self.gives_real else result
        else:
            self.check(common)
        out = shapes.elementwise_layout(tuple(promoting), result)
        return Inferred((out,), {**attributes, "common": common})

    def lower(self, b: Any, *operands: Any, common: dtype, **named: Any) -> Any:
        """One map over the broadcast domain."""
        arguments = {**dict(zip(self.kinds(), operands, strict=False)), **named}
        values = {name: value for name, value in arguments.items() if hasattr(value, "shape")}

        as_byte = common is dtypes.bool_ and not self.keeps_bool
        compute = dtypes.uint8 if as_byte else common.compute
        rounded = self._rounded(values, common)

        def formula(k: Any, *expressions: Any) -> Any:
            given = dict(zip(values, expressions, strict=True))
            for name in rounded:
                given[name] = k.convert(k.convert(given[name], common), compute)
            return self.formula(k, **{**arguments, **given})

        result = dtypes.bool_ if self.promote is BOOL_RESULT else common
        if self.gives_real:
            result = result.to_real()
        return b.map(formula, *values.values(), compute=compute, dtype=result)

    def _rounded(self, values: dict[str, Any], common: dtype) -> list[str]:
        """Operands of another dtype than a short one that they are promoted to."""
        if common.compute is common or not common.is_floating_point:
            return []
        kinds = self.kinds()
        return [
            name
            for name, value in values.items()
            if value.dtype is not common
            and kinds[name] in OPERAND_KINDS
            and "Number" not in kinds[name]
            and not (name in self.taken_exactly and all(size == 1 for size in value.shape))
        ]

    def samples(self, s: Any) -> list[Any]:
        """Same shapes, broadcast shapes, no dims and no elements, within `domain`."""
        return s.elementwise(self)


class Underivable:
    """Mixed in before an operator that has no derivative in torch: results require grad where an
    operand does, and the backward pass raises when it arrives at them."""

    name: ClassVar[str]

    def vjp(self, t: Any, grad: Any) -> Any:
        """Raise torch's error."""
        raise RuntimeError(
            helped(
                f"derivative for aten::{self.name} is not implemented",
                fix=f"call torch.{self.name} on x.detach(), or under torch.no_grad()",
            )
        )


def type_name(given: Any) -> str:
    """torch's name of a dtype, or of a layout's, in messages: Float, Long ..."""
    element: dtype = given if isinstance(given, dtype) else given.dtype
    return promotion.SCALAR_TYPE_NAMES[element.name]


def c_type_name(given: Any) -> str:
    """torch's C++ name of a layout's dtype, for the messages that use it."""
    return promotion.C_TYPE_NAMES[given.dtype.name]


def check_floating(kernel: str, given: Layout) -> None:
    """Refuse what torch's kernel does not exist for."""
    if not given.dtype.is_floating_point:
        raise not_implemented(kernel, given.dtype)


def not_implemented(kernel: str, given: dtype) -> NotImplementedError:
    """torch's error where a kernel does not exist for a dtype."""
    message = f"\"{kernel}\" not implemented for '{type_name(given)}'"
    return NotImplementedError(helped(message, fix=_another_dtype(given)))


def _another_dtype(given: dtype) -> str:
    """What to convert to: a kernel that lacks float32 or float64 is one for integers or masks."""
    if given.is_complex:
        return "take a real number of it: .real or .abs()"
    if given in (dtypes.float32, dtypes.float64):
        return "compare first, as in x != 0, or convert with .to(torch.int64)"
    return "convert with .to(torch.float32)"


class EveryDim(tuple[int, ...]):
    """The dims of a reduction for which none were given: nodes of graphs are named after that."""

    __slots__ = ()


class Reduction(Operator):
    """An operator that folds dimensions away: `kind` is one of codegen.loops.REDUCTIONS.

    Covers the plain cases (sum, amax ...); others override infer or lower.
    """

    kind: ClassVar[str] = ""

    def infer(
        self, input: Layout, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Inferred:
        """Shape without the reduced dims (or 1 with keepdim), the dtype torch gives."""
        result = self.result_dtype(input.dtype, dtype)
        dims = shapes.reduced_dims(input, dim)
        if dim is None:
            dims = EveryDim(dims)
        shape = shapes.reduced_shape(input.shape, dims, keepdim)
        out = contiguous(shape, result, input.device)
        return Inferred((out,), {"dim": dims, "keepdim": keepdim, "dtype": result})

    def result_dtype(self, given: dtype, wanted: dtype | None) -> dtype:
        """Dtype of the result; the input's unless asked otherwise."""
        return wanted or given

    def lower(self, b: Any, input: Any, dim: Any, keepdim: bool, dtype: dtype) -> Any:
        """One reduction in the result's compute dtype."""
        return b.reduce(self.kind, b.convert(input, dtype), dim, keepdim)


class View(Operator):
    """An operator whose result shares its input's memory: no record, no kernel.

    `view(self, input: Layout, ...) -> (Layout, offset in elements)`, the offset counted from the
    input's. Raises torch's errors. Remembered per
    layout. None: the memory cannot be seen so; the result is the same view of a contiguous_copy.
    A list of such pairs: a sequence of results (split, unbind ...), and vjp takes `grads`.
    """

    out = False

    def view(
        self, input: Layout, *attributes: Any, **named: Any
    ) -> tuple[Layout, int] | list[tuple[Layout, int]] | None:
        """Layout and relative offset of the result."""
        raise NotImplementedError


def where_needed(parts: Iterable[Any], needs: Iterable[bool]) -> tuple[Any, ...]:
    """Gradients as vjp returns them: None for operands that need none."""
    return tuple([part if needed else None for part, needed in zip(parts, needs, strict=True)])


class Registry(MutableMapping[str, Operator]):
    """Operators by name. One of flambeau's own is imported, with its file, when it is first asked
    for; names.py says where each is. To go through all of them imports all files."""

    def __init__(self) -> None:
        self._loaded: dict[str, Operator] = {}

    def __getitem__(self, name: str) -> Operator:
        found = self._loaded.get(name)
        if found is None:
            import_module(f"flambeau.ops.{names.FILES[name]}")
            found = self._loaded[name]
        return found

    def __setitem__(self, name: str, made: Operator) -> None:
        where = names.FILES.get(name)
        own, known = type(made), type(self._loaded.get(name))
        same = (own.__module__, own.__qualname__) == (known.__module__, known.__qualname__)
        if same and own is not known and where is not None:
            return  # an interrupt broke its file's import off, which has begun again
        foreign = where is not None and own.__module__ != f"flambeau.ops.{where}"
        if name in self._loaded or foreign:
            raise ValueError(f"operator {name!r} is defined twice")
        self._loaded[name] = made

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or name in names.FILES

    def __iter__(self) -> Iterator[str]:
        for file in dict.fromkeys(names.FILES.values()):
            import_module(f"flambeau.ops.{file}")
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def added(self) -> dict[str, Operator]:
        """Operators that are not flambeau's own: registered by a program."""
        return {name: one for name, one in self._loaded.items() if name not in names.FILES}


REGISTRY: Final = Registry()
_Class = TypeVar("_Class", bound=type[Operator])


def operator(
    name: str,
    *,
    methods: tuple[str, ...] | None = None,
    aliases: tuple[str, ...] = (),
    function: bool = True,
    **settings: Any,
) -> Callable[[_Class], _Class]:
    """Register a class as operator `name`.

    methods    Tensor methods it becomes; default: (name,) where function is True. With `inplace`
               each has a form with "_" too; a name given with "_" is that form alone ("copy_").
    aliases    further public names, dotted from torch: "special.expit", "nn.functional.relu"
    settings   class attributes to set (inplace=False, returns=("values", "indices") ...)
    """

    def register(cls: _Class) -> _Class:
        cls.name = name
        cls.methods = (name,) if methods is None and function else (methods or ())
        cls.aliases = aliases
        cls.function = function
        for key, value in settings.items():
            setattr(cls, key, value)
        REGISTRY[name] = cls()
        return cls

    return register
