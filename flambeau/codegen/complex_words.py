"""Formulas over complex numbers: every word spelled out over real and imaginary parts.

Keeps     a complex operand is a Pair of real expressions, and so is a complex result: what reads
          expressions (fusion, kernels, readers) never meets a complex dtype.
Touches   base.dtypes, vocabulary; complex_functions for exp, log and their kin.
Not here  where the parts lie in memory (engine/planning/lowering/lower.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.dtypes import dtype
from flambeau.codegen.vocabulary import MATH_WORDS, Expression, ExpressionBuilder


class Pair:
    """A complex operand of a formula: real and imaginary part, of the dtype's real dtype."""

    __slots__ = ("dtype", "imag", "real")

    def __init__(self, real: Expression, imag: Expression, of: dtype) -> None:
        self.real = real
        self.imag = imag
        self.dtype = of

    def __repr__(self) -> str:
        return f"({self.real!r}, {self.imag!r})"


class ComplexVocabulary(ExpressionBuilder):
    """The vocabulary over Pairs; words of real operands alone are those of ExpressionBuilder."""

    def apply(self, word: str, arguments: tuple[Any, ...], result: dtype, value: Any = None) -> Any:
        """As in Vocabulary; a Pair where an operand is one."""
        if not any(isinstance(each, Pair) for each in arguments):
            return super().apply(word, arguments, result, value)
        if word in _WORDS:
            return _WORDS[word](self, *arguments)
        if word in MATH_WORDS:
            from flambeau.codegen import complex_functions

            return complex_functions.expand(self, word, arguments)
        raise TypeError(f"the word {word!r} has no meaning for complex numbers")

    def pair(self, real: Any, imag: Any) -> Pair:
        """The complex number real + imag i; both of one real dtype, or one a Python number."""
        real, imag = self._same(real, imag)
        return Pair(real, imag, real.dtype.to_complex())

    def real(self, operand: Any) -> Any:
        """Real part; of a real operand itself."""
        return operand.real if isinstance(operand, Pair) else operand

    def imag(self, operand: Any) -> Any:
        """Imaginary part; of a real operand 0."""
        return operand.imag if isinstance(operand, Pair) else self.constant(0, operand.dtype)

    def conj(self, operand: Any) -> Any:
        """The complex conjugate; of a real operand itself."""
        if not isinstance(operand, Pair):
            return operand
        return Pair(operand.real, self.neg(operand.imag), operand.dtype)

    def constant(self, value: Any, result: dtype) -> Any:
        """Literal of dtype `result`."""
        if not result.is_complex:
            return super().constant(value, result)
        part = result.to_real()
        value = complex(value)
        return Pair(super().constant(value.real, part), super().constant(value.imag, part), result)

    def convert(self, operand: Any, result: dtype) -> Any:
        """As in Vocabulary. A real number gets an imaginary part of 0, a complex one loses its
        imaginary part, or is True where either part is not 0."""
        if isinstance(operand, Pair):
            part = result.to_real()
            if result.is_complex:
                real, imag = (super(ComplexVocabulary, self).convert(each, part)
                              for each in (operand.real, operand.imag))  # fmt: skip
                return operand if result is operand.dtype else Pair(real, imag, result)
            if result is dtypes.bool_:
                return self.ne(operand, 0)
            return super().convert(operand.real, part)
        if result.is_complex:
            part = result.to_real()
            return Pair(super().convert(operand, part), super().constant(0, part), result)
        return super().convert(operand, result)

    def _same(self, *operands: Any) -> list[Any]:
        """Python numbers made constants; real operands beside complex ones made complex."""
        complex_dtype = next((each.dtype for each in operands if isinstance(each, Pair)), None)
        if complex_dtype is None:
            if not any(isinstance(each, complex) for each in operands):
                return super()._same(*operands)
            beside = next(each.dtype for each in operands if not isinstance(each, _NUMBERS))
            complex_dtype = beside.to_complex()
        return [
            self.constant(each, complex_dtype)
            if isinstance(each, _NUMBERS)
            else self.convert(each, complex_dtype)
            for each in operands
        ]


_NUMBERS: Final = (bool, int, float, complex)


def _by_parts(word: str) -> Callable[..., Pair]:
    def apply(k: ComplexVocabulary, *operands: Pair) -> Pair:
        of = operands[0].dtype
        part = of.to_real()
        real = k.apply(word, tuple([each.real for each in operands]), part)
        return Pair(real, k.apply(word, tuple([each.imag for each in operands]), part), of)

    return apply


def _product(k: ComplexVocabulary, left: Pair, right: Pair) -> Pair:
    # Never fused: x * conj(x) has an imaginary part of exactly 0 only where both products round.
    real = k.sub(k.mul(left.real, right.real), k.mul(left.imag, right.imag))
    imag = k.add(k.mul(left.real, right.imag), k.mul(left.imag, right.real))
    return Pair(real, imag, left.dtype)


def _fma(k: ComplexVocabulary, left: Pair, right: Pair, addend: Pair) -> Pair:
    return k.add(k.mul(left, right), addend)


def _quotient(k: ComplexVocabulary, left: Pair, right: Pair) -> Pair:
    """Smith's algorithm: by the larger part of the divisor, so that no square overflows."""
    wide = k.ge(k.abs(right.real), k.abs(right.imag))
    large = k.select(wide, right.real, right.imag)
    small = k.select(wide, right.imag, right.real)
    ratio = k.div(small, large)
    divisor = k.add(large, k.mul(small, ratio))
    first = k.select(wide, left.real, left.imag)
    second = k.select(wide, left.imag, left.real)
    real = k.div(k.add(first, k.mul(second, ratio)), divisor)
    imag = k.div(k.sub(second, k.mul(first, ratio)), divisor)
    imag = k.select(wide, imag, k.neg(imag))
    # Divided by zero: each part by it, as the real quotient. NaN beside 0 is no zero.
    zero = k.add(k.abs(large), k.abs(small))
    is_zero = k.eq(zero, 0)
    real = k.select(is_zero, k.div(left.real, zero), real)
    return Pair(real, k.select(is_zero, k.div(left.imag, zero), imag), left.dtype)


def _absolute(k: ComplexVocabulary, operand: Pair) -> Expression:
    """Length, without overflow on the way."""
    real, imag = k.abs(operand.real), k.abs(operand.imag)
    if real.dtype is dtypes.float32:
        wide_real, wide_imag = k.convert(real, dtypes.float64), k.convert(imag, dtypes.float64)
        square = k.fma(wide_real, wide_real, k.mul(wide_imag, wide_imag))
        length = k.convert(k.sqrt(square), dtypes.float32)
    else:
        high, low = k.max(real, imag), k.min(real, imag)
        ratio = k.div(low, high)
        length = k.mul(high, k.sqrt(k.fma(ratio, ratio, 1.0)))
        length = k.select(k.eq(low, 0), high, length)
    infinite = k.or_(k.eq(real, _INFINITY), k.eq(imag, _INFINITY))
    return k.select(infinite, _INFINITY, length)


def _square_root(k: ComplexVocabulary, operand: Pair) -> Pair:
    from flambeau.codegen import complex_functions

    return complex_functions.square_root(k, operand)


def _select(k: ComplexVocabulary, condition: Expression, yes: Pair, no: Pair) -> Pair:
    real = k.select(condition, yes.real, no.real)
    return Pair(real, k.select(condition, yes.imag, no.imag), yes.dtype)


_INFINITY: Final = float("inf")
_WORDS: Final[dict[str, Callable[..., Any]]] = {
    "add": _by_parts("add"),
    "sub": _by_parts("sub"),
    "neg": _by_parts("neg"),
    "mul": _product,
    "fma": _fma,
    "div": _quotient,
    "abs": _absolute,
    "sqrt": _square_root,
    "select": _select,
    "eq": lambda k, a, b: k.and_(k.eq(a.real, b.real), k.eq(a.imag, b.imag)),
    "ne": lambda k, a, b: k.or_(k.ne(a.real, b.real), k.ne(a.imag, b.imag)),
    "isnan": lambda k, a: k.or_(k.isnan(a.real), k.isnan(a.imag)),
}

COMPLEX: Final = ComplexVocabulary()
