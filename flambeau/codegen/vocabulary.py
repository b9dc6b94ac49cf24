"""The closed scalar vocabulary that formulas speak, and the expressions they build.

Keeps     every word has one meaning on every device; expressions are immutable and interned,
          so that equal formulas are one object and a kernel's text is canonical.
Touches   base.dtypes only.
Not here  what a word costs or how it is written out: that is what readers are for
          (llvm_reader.py, exact_reader/, cost_reader.py, c_reader.py); how exp and its kin
          are built from the plain words (mathlib/).

A formula is a function of a vocabulary `k` and its operands. Operands are opaque to it; Python
numbers may stand wherever an operand may and take the dtype of the operand beside them.
Words never promote: both operands of a word have the same dtype (convert first).
"""

from __future__ import annotations

from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype

# word -> what dtype it returns: "same" as its (first) operand, "bool", or told by the caller.
PLAIN_WORDS: Final = {
    # floating and integer
    "add": "same", "sub": "same", "mul": "same", "neg": "same", "abs": "same",
    "min": "same", "max": "same",  # NaN propagates; -0 < +0
    # floating only
    "div": "same", "fma": "same", "sqrt": "same", "rint": "same", "floor": "same",
    "ceil": "same", "trunc": "same", "copysign": "same",
    # integer only. quotient truncates, modulo has the dividend's sign (as C); divisor 0 gives 0,
    # smallest // -1 wraps. Shift counts outside [0, width) give 0 (or the sign for shift_right).
    "quotient": "same", "modulo": "same", "shift_left": "same", "shift_right": "same",
    "shift_right_logical": "same",
    # bool and integer
    "and_": "same", "or_": "same", "xor": "same", "not_": "same",
    # comparisons; every comparison with NaN is False but ne, which is True
    "eq": "bool", "ne": "bool", "lt": "bool", "le": "bool", "gt": "bool", "ge": "bool",
    "isnan": "bool",
}  # fmt: skip
# Built by mathlib from the plain words, for float32 and float64.
MATH_WORDS: Final = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan",
    "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "erf", "erfc", "erfinv", "lgamma", "digamma", "fmod", "sigmoid",
)  # fmt: skip


# Integers that floating numbers become by way of int64; the others by way of int32. uint64 takes
# what lies between int64's end and its own as it is.
THROUGH_INT64: Final = frozenset((dtypes.int64, dtypes.uint8, dtypes.uint32, dtypes.uint64))


class Expression:
    """One word applied to operands, or a leaf. Interned: equal expressions are one object.

    word      a word of the vocabulary, "select", "convert", "bitcast", or a leaf:
              "constant" (value: int, float or bool), "number" (value: index of a run-time scalar),
              "load" (value: index of an access), "index" (value: a loop dimension),
              "reduced" (value: index of a reduction), "kept" (value: index of a scratch row)
    arguments operands, in order
    dtype     of the result; never float16 or bfloat16 except for "load", "convert" and the leaves
              of those: formulas are evaluated in dtype.compute
    value     what a leaf means
    """

    __slots__ = ("arguments", "depth", "dtype", "uses_index", "value", "word")

    word: str
    arguments: tuple[Expression, ...]
    dtype: dtype
    value: Any
    depth: int
    uses_index: bool  # whether a position along a loop dimension is among its leaves

    def __repr__(self) -> str:
        inner = [repr(each) for each in self.arguments]
        if self.value is not None:
            inner.append(repr(self.value))
        return f"{self.word}.{self.dtype.short_name}({', '.join(inner)})"


_INTERNED: dict[tuple[Any, ...], Expression] = {}
_INTERNED_LIMIT: Final = 200_000


def expression(
    word: str, arguments: tuple[Expression, ...], result: dtype, value: Any = None
) -> Expression:
    """The one expression with these parts."""
    # repr tells -0.0 from 0.0 and 1 from 1.0 and True, which == does not.
    key = (word, arguments, result, repr(value) if value is not None else None)
    found = _INTERNED.get(key)
    if found is not None:
        return found
    made = Expression()
    made.word = word
    made.arguments = arguments
    made.dtype = result
    made.value = value
    depth = 0
    made.uses_index = word == "index"
    for each in arguments:
        if each.depth > depth:
            depth = each.depth
        if each.uses_index:
            made.uses_index = True
    made.depth = depth + 1
    if len(_INTERNED) >= _INTERNED_LIMIT:
        _INTERNED.clear()  # identity is only relied on while one kernel is built
    return _INTERNED.setdefault(key, made)


class Vocabulary:
    """Base of the readers: spells each word as a call of `apply`.

    A reader's operands are whatever `apply` returns; `dtype_of` must tell their dtype.
    """

    @property
    def has_scale(self) -> bool:
        """Whether the reader has `scale(x, n)`: x * 2^n rounded once, for a whole number n and x
        between a half and two; whatever x is, 0 where n is below the exponents of the dtype."""
        return False

    def apply(self, word: str, arguments: tuple[Any, ...], result: dtype, value: Any = None) -> Any:
        """Operand for `word` of `arguments`; the only method a reader must give, with dtype_of."""
        raise NotImplementedError

    def dtype_of(self, operand: Any) -> dtype:
        """Dtype of an operand this reader returned."""
        raise NotImplementedError

    def constant(self, value: float | bool, result: dtype) -> Any:
        """Literal of dtype `result`; floats are rounded to it once."""
        if result.is_floating_point:
            value = float(value)
        return self.apply("constant", (), result, value)

    def convert(self, operand: Any, result: dtype) -> Any:
        """Value converted as torch's `.to`: float to int truncates (out of range is defined by
        the low bits of the conversion to int64 for THROUGH_INT64, to int32 for the others; NaN
        and what is beyond that give its smallest), to bool is `!= 0`, to a narrower float rounds
        to nearest even."""
        if self.dtype_of(operand) is result:
            return operand
        return self.apply("convert", (operand,), result)

    def bitcast(self, operand: Any, result: dtype) -> Any:
        """Same bits read as another dtype of the same width."""
        return self.apply("bitcast", (operand,), result)

    def select(self, condition: Any, yes: Any, no: Any) -> Any:
        """`yes` where condition, else `no`; both are evaluated."""
        yes, no = self._same(yes, no)
        return self.apply("select", (condition, yes, no), self.dtype_of(yes))

    def real(self, operand: Any) -> Any:
        """The real part; see complex_words.py."""
        return operand

    def _same(self, *operands: Any) -> list[Any]:
        """Operands with Python numbers made constants of the dtype beside them."""
        for each in operands:
            if not isinstance(each, (bool, int, float)):
                result = self.dtype_of(each)
                return [
                    self.constant(one, result) if isinstance(one, (bool, int, float)) else one
                    for one in operands
                ]
        raise TypeError("a word needs at least one operand that is not a Python number")

    def __getattr__(self, word: str) -> Any:
        """The method for a word, made at first use and kept on the class."""
        if word in PLAIN_WORDS:
            returns_bool = PLAIN_WORDS[word] == "bool"
        elif word in MATH_WORDS:
            returns_bool = False
        else:
            raise AttributeError(f"the scalar vocabulary has no word {word!r}")

        def method(self: Vocabulary, *operands: Any) -> Any:
            arguments = tuple(self._same(*operands))
            result = dtypes.bool_ if returns_bool else self.dtype_of(arguments[0])
            return self.apply(word, arguments, result)

        method.__name__ = word
        setattr(Vocabulary, word, method)
        return method.__get__(self)


class ExpressionBuilder(Vocabulary):
    """Reader that records what a formula says as an Expression."""

    def apply(
        self, word: str, arguments: tuple[Any, ...], result: dtype, value: Any = None
    ) -> Expression:
        return expression(word, arguments, result, value)

    def dtype_of(self, operand: Any) -> dtype:
        return operand.dtype


BUILDER: Final = ExpressionBuilder()
