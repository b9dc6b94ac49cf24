"""Every fill kernel by name: which functions it needs and what writes it.

Keeps     a name's text depends on nothing but this package's source.
Touches   the files beside it.
Not here  compiling and calling (random/kernels.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from flambeau.random.native import continuous, integers, normal, rejection, uniform
from flambeau.random.native.convert import (
    add_load_doubles,
    add_store_doubles,
    add_store_integers,
)
from flambeau.random.native.fill import Fill
from flambeau.random.native.layout import DTYPE_CODES
from flambeau.random.native.twister import add_unit_double, add_unit_many
from flambeau.random.native.writer import Module

Add = Callable[[Module], None]
Recipe = tuple[Callable[[Fill], None], tuple[Add, ...]]

_ONE_EACH: Final = (add_unit_many, add_store_doubles)
_NORMALS: Final = (normal.add_normals, add_store_doubles)
_SAMPLED: Final = (add_unit_double, add_load_doubles, add_store_doubles, rejection.add_logarithms)
_ANY_DTYPE: Final = partial(
    add_store_doubles,
    dtypes=tuple(name for name in DTYPE_CODES if name[0] not in "ub" or name == "bfloat16"),
)

RECIPES: Final[dict[str, Recipe]] = {
    "skip": (uniform.skip, ()),
    "words": (uniform.words, ()),
    "uniform_float64": (uniform.uniform_float64, ()),
    "bernoulli": (uniform.bernoulli, ()),
    "bernoulli_each_float32": (partial(uniform.bernoulli_each, dtype="float32"), ()),
    "bernoulli_each_float64": (partial(uniform.bernoulli_each, dtype="float64"), ()),
    "normal": (partial(normal.one_at_a_time, logarithmic=False), _NORMALS),
    "log_normal": (partial(normal.one_at_a_time, logarithmic=True), _NORMALS),
    "normal_blocks_float64": (normal.blocks_float64, ()),
    "integers_narrow": (integers.integers_narrow, (add_store_integers,)),
    "integers_wide": (integers.integers_wide, (add_store_integers,)),
    "permutation_narrow": (integers.permutation_narrow, ()),
    "permutation_wide": (integers.permutation_wide, ()),
    "exponential": (continuous.exponential, _ONE_EACH),
    "geometric": (continuous.geometric, (add_unit_many, _ANY_DTYPE)),
    "cauchy": (continuous.cauchy, _ONE_EACH),
    "rrelu_noise": (
        continuous.rrelu_noise,
        (add_unit_double, add_load_doubles, add_store_doubles),
    ),
    "poisson": (
        rejection.poisson,
        (*_SAMPLED, rejection.add_log_factorial, rejection.add_poisson),
    ),
    "binomial": (rejection.binomial, (*_SAMPLED, rejection.add_stirling, rejection.add_binomial)),
    "gamma": (rejection.gamma, (*_SAMPLED, normal.add_one_normal, rejection.add_gamma)),
    "dirichlet": (rejection.dirichlet, (*_SAMPLED, normal.add_one_normal, rejection.add_gamma)),
    "multinomial": (rejection.multinomial, _SAMPLED),
    "multinomial_once": (rejection.multinomial_once, (add_unit_many, *_SAMPLED)),
}
for _dtype in ("float32", "float16", "bfloat16"):
    RECIPES[f"uniform_{_dtype}"] = (partial(uniform.uniform_small, dtype=_dtype), ())
    RECIPES[f"normal_blocks_{_dtype}"] = (partial(normal.blocks_small, dtype=_dtype), ())


def text_of(name: str, function: str) -> str:
    """LLVM text of one fill, as a function of this name."""
    write, functions = RECIPES[name]
    fill = Fill(functions)
    write(fill)
    return fill.finish(function)
