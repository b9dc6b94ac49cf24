"""Division of a vector by one number: by its reciprocal, corrected to the bits of a division.

Keeps     every bit of a division, special values included.
Touches   llvm_reader, the scope of the vector.
Not here  divisors that differ from lane to lane: the machine divides.
Source    Brisebarre, Muller and Raina, Accelerating correctly rounded floating-point division
          when the divisor is known in advance, IEEE Trans. Computers 53 (2004); Markstein (1990).

With r the reciprocal rounded, q = x r is nearly the quotient; e = x - q d is exact, and q + e r
rounds to what a division gives, in three instructions where a division takes ten cycles a
vector. That holds while nothing underflows or overflows on the way. So d is to be of ordinary
size, which is known once a row; and where a lane of x is small or -0, or the result no number,
the vector is divided after all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flambeau.base.errors import present
from flambeau.codegen.llvm_reader import SCALAR_TYPES, LlvmReader, Operand
from flambeau.codegen.vocabulary import BUILDER, Expression

if TYPE_CHECKING:
    from flambeau.codegen.nest_text.vectors import VectorScope

# Of each type: a divisor of ordinary size lies between 2^-n and 2^n; the two highest bits of an
# exponent, one of which is set in every number from 2^(2 - 2^(b - 2)) on, b the exponent's bits.
ORDINARY: Final = {"float": 62, "double": 500}
LARGE_BITS: Final = {"float": 0x6000_0000, "double": 0x6000_0000_0000_0000}
# Rows of fewer elements are divided: waiting for the reciprocal takes as long.
SHORT: Final = 128


def quotient(scope: VectorScope, division: Expression) -> Operand:
    """The vector `division.arguments[0]` by what every lane divides by."""
    divided, divisor = division.arguments
    of = division.dtype
    scalar = SCALAR_TYPES[of]
    limit = 2.0 ** ORDINARY[scalar]
    size = BUILDER.abs(divisor)
    ordinary = BUILDER.and_(BUILDER.ge(size, 1.0 / limit), BUILDER.le(size, limit))
    x, d = scope.value(divided), scope.value(divisor)
    r = scope.value(BUILDER.div(BUILDER.constant(1.0, of), divisor))
    worth = scope.frame.entry.emit(f"icmp sge i64 {scope.frame.word('inner_size')}, {SHORT}")
    # A reader of its own: what only one of the ways computes is not there for what follows.
    reader = LlvmReader(scope.reader.lanes, scope.reader.module)
    reader.lines = lines = scope.reader.lines
    full, fresh = reader.type_of(scalar), reader.module.fresh
    multiply, divide, after = fresh("multiply"), fresh("divide"), fresh("quotient")
    row = present(scope.outer, "the row of a vector")
    usual = reader.emit(f"and i1 {row.lifted(ordinary, row.reader).text}, {worth}")
    lines += [f"  br i1 {usual}, label %{multiply}, label %{divide}, !prof !1", f"{multiply}:"]
    near = reader.mul(x, r)
    exact = reader.fma(reader.fma(reader.neg(near), d, x), r, near)
    odd = _odd_lanes(reader, x, exact)
    lines += [f"  br i1 {odd}, label %{divide}, label %{after}, !prof !2", f"{divide}:"]
    plain = reader.emit(f"fdiv {full} {x.text}, {d.text}")
    lines += [f"  br label %{after}", f"{after}:"]
    return reader.operand(f"phi {full} [{exact.text}, %{multiply}], [{plain}, %{divide}]", of)


def _odd_lanes(reader: LlvmReader, x: Operand, result: Operand) -> str:
    """i1: some lane of x is small or -0, or of the result no number. Those of +0, of which masked
    rows are full, are not odd."""
    scalar = SCALAR_TYPES[x.dtype]
    whole = f"i{8 * x.dtype.itemsize}"
    bits = reader.emit(f"bitcast {reader.type_of(scalar)} {x.text} to {reader.type_of(whole)}")
    large = reader.splat(str(LARGE_BITS[scalar]), whole)
    high = reader.emit(f"and {reader.type_of(whole)} {bits}, {large}")
    zero = reader.splat("0", whole)
    small = reader.emit(f"icmp eq {reader.type_of(whole)} {high}, {zero}")
    some = reader.emit(f"icmp ne {reader.type_of(whole)} {bits}, {zero}")
    small = reader.emit(f"and {reader.type_of('i1')} {small}, {some}")
    half = reader.lanes // 2
    # Two halves are asked in one comparison.
    first, second = (reader.part(result.text, scalar, at, half) for at in (0, half))
    lanes = f"<{half} x i1>"
    odd = reader.emit(f"fcmp uno <{half} x {scalar}> {first}, {second}")
    for at in (0, half):
        odd = reader.emit(f"or {lanes} {odd}, {reader.part(small, 'i1', at, half)}")
    mask = reader.emit(f"bitcast {lanes} {odd} to i{half}")
    return reader.emit(f"icmp ne i{half} {mask}, 0")
