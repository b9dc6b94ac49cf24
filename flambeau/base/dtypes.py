"""Element types: names, sizes in bytes, categories, ranges, storage formats.

Keeps     one object per dtype, compared by identity; `repr` is torch's.
Touches   nothing: plain Python, no import.
Not here  which dtype an operation computes in (promotion.py)."""

from __future__ import annotations

from typing import Any, Final


class dtype:  # noqa: N801 - torch's name; users write torch.dtype
    """Type of one element; shapes and devices are elsewhere. Compare with `is`.

    >>> float32.itemsize, float32.is_floating_point, bool_.category
    (4, True, 0)
    """

    __slots__ = (
        "category",
        "code",
        "compute",
        "format",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "name",
        "short_name",
    )

    def __init__(
        self, name: str, short_name: str, itemsize: int, category: int, signed: bool, code: str
    ) -> None:
        self.name: Final = name
        self.short_name: Final = short_name
        self.itemsize: Final = itemsize
        # 0 bool, 1 integer, 2 floating, 3 complex: torch's categories, in promotion order.
        self.category: Final = category
        self.is_floating_point: Final = category == 2
        self.is_complex: Final = category == 3
        self.is_signed: Final = signed
        # struct's format character, "" where struct has none (bfloat16, complex).
        self.format: Final = code
        self.code: Final = name
        # dtype in which formulas are evaluated; results are rounded back after every operator.
        self.compute: dtype = self

    @property
    def n_bits(self) -> int:
        """Width of one element in bits."""
        return self.itemsize * 8

    def to_real(self) -> dtype:
        """Dtype of the real part: complex64 gives float32, others themselves."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """Complex dtype whose parts are this floating dtype."""
        return complex128 if self is float64 or self is complex128 else complex64

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[object, ...]:
        return (by_name, (self.name,))

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self


bool_ = dtype("bool", "b1", 1, 0, False, "?")
uint8 = dtype("uint8", "u8", 1, 1, False, "B")
uint16 = dtype("uint16", "u16", 2, 1, False, "H")
uint32 = dtype("uint32", "u32", 4, 1, False, "I")
uint64 = dtype("uint64", "u64", 8, 1, False, "Q")
int8 = dtype("int8", "i8", 1, 1, True, "b")
int16 = dtype("int16", "i16", 2, 1, True, "h")
int32 = dtype("int32", "i32", 4, 1, True, "i")
int64 = dtype("int64", "i64", 8, 1, True, "q")
float16 = dtype("float16", "f16", 2, 2, True, "e")
bfloat16 = dtype("bfloat16", "bf16", 2, 2, True, "")
float32 = dtype("float32", "f32", 4, 2, True, "f")
float64 = dtype("float64", "f64", 8, 2, True, "d")
float8_e4m3fn = dtype("float8_e4m3fn", "f8_e4m3fn", 1, 2, True, "")
float8_e5m2 = dtype("float8_e5m2", "f8_e5m2", 1, 2, True, "")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "f8_e4m3fnuz", 1, 2, True, "")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "f8_e5m2fnuz", 1, 2, True, "")
complex64 = dtype("complex64", "c64", 8, 3, True, "")
complex128 = dtype("complex128", "c128", 16, 3, True, "")

float16.compute = float32
bfloat16.compute = float32
# Floats that are stored, moved and converted; few operators compute with them (codegen/float8.py).
EIGHT_BITS: Final = (float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz)
for _each in EIGHT_BITS:
    _each.compute = float32

# Integers that go together with no other integers, nor with bool or complex numbers.
WIDE_UNSIGNED: Final = (uint16, uint32, uint64)
ALL: Final = (
    bool_, uint8, int8, int16, int32, int64, *WIDE_UNSIGNED,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
FLOATING: Final = (float16, bfloat16, float32, float64)
INTEGERS: Final = (uint8, int8, int16, int32, int64, *WIDE_UNSIGNED)
ALIASES: Final = {
    "half": float16, "float": float32, "double": float64, "short": int16, "int": int32,
    "long": int64, "cfloat": complex64, "cdouble": complex128,
}  # fmt: skip
_BY_NAME: Final = {each.name: each for each in (*ALL, *EIGHT_BITS)}


def by_name(name: str) -> dtype:
    """Dtype called `name`; KeyError when there is none."""
    return _BY_NAME[name]


# Python's types where a dtype is asked for.
PYTHON_TYPES: Final = {bool: bool_, int: int64, float: float64, complex: complex128}


def or_python(given: Any) -> Any:
    """The dtype that one of Python's types means; anything else as it is."""
    return PYTHON_TYPES.get(given, given) if given.__class__ is type else given


def asked_for(given: Any, name: str) -> dtype:
    """The dtype that an argument of function `name` means, or torch's TypeError.

    >>> asked_for(float, "ones")
    torch.float64
    """
    if given.__class__ is dtype:
        return given
    found = or_python(given)
    if found.__class__ is not dtype:
        raise TypeError(
            f"{name}(): argument 'dtype' must be torch.dtype, not {type(given).__name__}"
        )
    return found


# (mantissa bits, largest finite, smallest normal) of the floating dtypes, for finfo and tests.
FLOAT_FACTS: Final = {
    float8_e4m3fn: (3, 448.0, 2.0**-6),
    float8_e5m2: (2, 57344.0, 2.0**-14),
    float8_e4m3fnuz: (3, 240.0, 2.0**-7),
    float8_e5m2fnuz: (3, 57344.0, 2.0**-15),  # eps is 0.125 in torch, half a step
    float16: (10, 65504.0, 2.0**-14),
    bfloat16: (7, 2.0**127 * (2 - 2.0**-7), 2.0**-126),
    float32: (23, 2.0**127 * (2 - 2.0**-23), 2.0**-126),
    float64: (52, 1.7976931348623157e308, 2.0**-1022),
}

# torch.inf, torch.nan, torch.pi, torch.e.
INFINITY: Final = float("inf")
NAN: Final = float("nan")
PI: Final = 3.141592653589793
E: Final = 2.718281828459045
