"""Complex numbers and their parts: conjugates, angles, numbers made of two real ones.

Keeps     a cotangent of a complex number is dL/dx + i dL/dy, as torch's.
Touches   ops.define.
Not here  views of the parts (views/complex_views.py), lengths and directions (arithmetic.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base.dtypes import dtype
from flambeau.base.errors import helped
from flambeau.base.layout import Layout
from flambeau.ops.define import INT_TO_FLOAT, Elementwise, Tensor, operator, type_name

PI = 3.141592653589793


@operator("conj_physical")
class Conjugate(Elementwise):
    """The complex conjugate; of real numbers, themselves."""

    takes_complex = True

    def formula(self, k: Any, input: Tensor) -> Any:
        return k.conj(input) if k.dtype_of(input).is_complex else input

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.conj_physical(grad)


@operator("angle", inplace=False)
class Angle(Elementwise):
    """Angle of the number in the complex plane, in (-pi, pi]: of a negative number pi."""

    promote = INT_TO_FLOAT
    takes_complex = True
    gives_real = True

    def formula(self, k: Any, input: Tensor) -> Any:
        if k.dtype_of(input).is_complex:
            return k.atan2(k.imag(input), k.real(input))
        angle = k.select(k.lt(input, 0), k.constant(PI, k.dtype_of(input)), 0.0)
        return k.select(k.isnan(input), input, angle)

    def vjp(self, t: Any, grad: Any, input: Any) -> Any:
        if not input._layout.dtype.is_complex:
            return t.zeros_like(grad)
        return t.masked_fill(grad * 1j / t.conj_physical(input), input == 0, 0)


class OfTwoReals(Elementwise):
    """A complex number of two real ones of one dtype."""

    inplace = False

    def validate(self, arguments: dict[str, Any]) -> None:
        first, second = arguments.values()
        names = [type_name(each) for each in (first, second)]
        if names == ["Half", "Half"]:
            raise NotImplementedError(
                helped(
                    "there is no complex dtype of half precision",
                    fix="the parts as .float() first: complex64",
                )
            )
        if not set(names) <= {"Float", "Double"}:
            raise RuntimeError(
                f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} "
                f"and {names[1]}"
            )
        if first.dtype is not second.dtype:
            raise RuntimeError(
                f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for "
                "second argument"
            )

    def promoted(
        self, operands: tuple[Any, ...], attributes: dict[str, Any]
    ) -> tuple[dtype, dtype]:
        given: Layout = operands[0]
        return given.dtype, given.dtype.to_complex()

    def lower(self, b: Any, *operands: Any, common: dtype, **named: Any) -> Any:
        values = (*operands, *named.values())
        compute = common.compute

        def formula(k: Any, first: Any, second: Any) -> Any:
            return self.formula(k, *(k.convert(k.real(each), compute) for each in (first, second)))

        return b.map(formula, *values, dtype=common.to_complex())


@operator("complex")
class Complex(OfTwoReals):
    """real + imag i."""

    def formula(self, k: Any, real: Tensor, imag: Tensor) -> Any:
        return k.pair(real, imag)

    def vjp(self, t: Any, grad: Any) -> Any:
        return t.real(grad), t.imag(grad)


@operator("polar")
class Polar(OfTwoReals):
    """The number of this length at this angle."""

    domain = {"abs": (0.3, 2.0)}

    def formula(self, k: Any, abs: Tensor, angle: Tensor) -> Any:
        return k.pair(k.mul(abs, k.cos(angle)), k.mul(abs, k.sin(angle)))

    def vjp(self, t: Any, grad: Any, angle: Any, out: Any) -> Any:
        direction = t.polar(t.ones_like(angle), angle)
        return (
            t.real(grad * t.conj_physical(direction)),
            t.real(grad * t.conj_physical(out * 1j)),
        )
