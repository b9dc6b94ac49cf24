"""The math words as closed formulas over the plain words: expand(k, word, operands).

Keeps     one formula a word and dtype, the same for every width, device and optimisation level:
          only + - * / fma sqrt rint and bit operations, selects instead of branches, fma only
          where it is written. Garbage lanes never trap.
Touches   the vocabulary's words through the reader it is given.
Not here  the formulas (exponential.py and its neighbours, by family), their coefficients
          (coefficients.py), their measured errors (tests/codegen/mathlib).

float16 and bfloat16 never arrive here: formulas are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.codegen.mathlib import (
    arcs,
    exponential,
    gamma,
    hyperbolic,
    remainder,
    special,
    trigonometric,
)
from flambeau.codegen.vocabulary import MATH_WORDS

_FAMILIES: Final = (
    exponential,
    hyperbolic,
    trigonometric,
    arcs,
    special,
    gamma,
    remainder,
)


def _formula(word: str, suffix: str) -> Callable[..., Any]:
    name = f"{word}_{suffix}"
    for family in _FAMILIES:
        if hasattr(family, name):
            return getattr(family, name)
    raise NotImplementedError(f"no family of mathlib defines {name}")


_FORMULAS: Final = {
    kind: {word: _formula(word, kind.name) for word in MATH_WORDS}
    for kind in (dtypes.float32, dtypes.float64)
}


def expand(k: Any, word: str, arguments: Sequence[Any]) -> Any:
    """Operand of reader `k` for a math word of operands that are float32 or float64."""
    kind = k.dtype_of(arguments[0])
    formulas = _FORMULAS.get(kind)
    if formulas is None:
        raise TypeError(f"{word} of {kind.name}: math words take float32 or float64 only")
    return formulas[word](k, *arguments)
