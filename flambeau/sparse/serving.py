"""What operators and torch's functions do with sparse tensors.

Keeps     what sparse tensors have not is refused in torch's words; functions that leave 0 at 0 are
          those of the coalesced values.
Touches   coo, making, products.
Not here  the tensors (coo.py), the arithmetic of products (products.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base import dtypes
from flambeau.base.promotion import SCALAR_TYPE_NAMES
from flambeau.sparse import making, products
from flambeau.sparse.coo import SparseTensor, not_for_sparse
from flambeau.tensor import Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.public import queries

_OF_VALUES: Final = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "conj_physical", "deg2rad", "erf", "erfinv",
    "expm1", "floor", "frac", "log1p", "neg", "positive", "rad2deg", "relu", "round", "sgn", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "isnan", "isinf", "isposinf", "isneginf",
    "nan_to_num", "signbit",
)  # fmt: skip
_CASTS: Final = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16, "int": dtypes.int32, "long": dtypes.int64,
    "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_,
}  # fmt: skip


def _of_values(name: str) -> Callable[..., SparseTensor]:
    def function(self: SparseTensor, *arguments: Any, **named: Any) -> SparseTensor:
        kept = self.coalesce()
        return kept._with_values(getattr(kept._value, name)(*arguments, **named))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name} of the values."
    return function


def _cast(element: Any) -> Callable[[SparseTensor], SparseTensor]:
    return lambda self: self.to(element)


def _is_number(value: Any) -> bool:
    return not isinstance(value, SparseTensor) and (
        not isinstance(value, Tensor) or value.ndim == 0
    )


def add(one: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """one + alpha * other: a dense tensor takes a sparse one, not the other way."""
    if isinstance(one, SparseTensor):
        if not isinstance(other, SparseTensor):
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        return _joined(one, other, alpha)
    return products.dense_sum(one, other, alpha)


def _joined(one: SparseTensor, other: SparseTensor, alpha: Any) -> SparseTensor:
    if one.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(one.shape)} != "
            f"{list(other.shape)}"
        )
    if one._index is other._index:
        return one._with_values(one._value + other._value * alpha)
    index = t.cat([one._index, other._index], 1)
    values = other._value * alpha
    element = queries.result_type(one._value, values)
    joined = t.cat([one._value.to(element), values.to(element)], 0)
    made = SparseTensor(index, joined, one.shape, False)
    # Of two in order, torch makes one in order.
    return made.coalesce() if one._coalesced and other._coalesced else made


def sub(one: Any, other: Any, *, alpha: Any = 1) -> Any:
    """one - alpha * other."""
    return add(one, other, alpha=-alpha)


def mul(one: Any, other: Any) -> Any:
    """Element by element, sparse wherever one of both is."""
    if not isinstance(one, SparseTensor):
        one, other = other, one
    if _is_number(other):
        return one._with_values(one._value * other)
    if isinstance(other, SparseTensor):
        one, other = one.coalesce(), other.coalesce().to_dense()
    elif other.shape != one.shape:
        other = other.expand(tuple(one.shape))
    return one._with_values(one._value * making.sparse_mask(other, one)._value)


def div(one: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    """Quotients by a number."""
    if not isinstance(one, SparseTensor) or not _is_number(other):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(other.shape)} for divisor)"
        )
    kept = one if rounding_mode is None else one.coalesce()
    return kept._with_values(t.div(kept._value, other, rounding_mode=rounding_mode))


def pow(one: SparseTensor, exponent: Any) -> SparseTensor:
    """Powers of the coalesced values."""
    kept = one.coalesce()
    return kept._with_values(kept._value**exponent)


# torch's sentences about results that the dtype written to does not hold.
_NOT_HELD: Final = {
    "add": "Can't convert result type {} to output {} in add operation",
    "mul": "Can't convert result type {} to output {}",
    "div": "result type {} can't be cast to the desired output type {}",
}


def _check_held(function: Callable[..., Any], made: Any, kept: Any) -> None:
    if not queries.can_cast(made.dtype, kept.dtype):
        names = [SCALAR_TYPE_NAMES[each.dtype.name] for each in (made, kept)]
        raise RuntimeError(_NOT_HELD[function.__name__].format(*names))


def _inplace(function: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: Any, *arguments: Any, **named: Any) -> Any:
        made = function(self, *arguments, **named)
        _check_held(function, made, self)
        if isinstance(self, SparseTensor):
            return self.hold(made._index, made._value, made._coalesced)
        return self.copy_(made.to_dense() if isinstance(made, SparseTensor) else made)

    return changed


def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Store what another sparse tensor stores, with its size.

    Raises   RuntimeError: only one of both is sparse, or their numbers of sparse dims differ."""
    if not isinstance(self, SparseTensor) or not isinstance(src, SparseTensor):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {src.type()}"
        )
    count, others = self.sparse_dim(), src.sparse_dim()
    if count != others and self._nnz():
        raise RuntimeError(
            f"changing the number of sparse dimensions (from {count} to {others}) on a non-empty "
            "sparse tensor is not supported."
        )
    return self.hold(t.clone(src._index), t.clone(src._value), src._coalesced, src.shape)


def add_(one: Any, other: Any, *, alpha: Any = 1) -> Any:
    """one += alpha * other."""
    if isinstance(one, Tensor) and other.sparse_dim() == 1 and one.shape == other.shape:
        values = other._value * alpha
        _check_held(add, values, one)
        return one.index_add_(0, other._index[0], values.to(one.dtype))
    return _inplace(add)(one, other, alpha=alpha)


def _add_into(self: SparseTensor, dense: Any) -> Any:
    """dense += self, where nothing is asked whether it takes the call over: in a backward pass."""
    return add_(dense, self)


def sub_(one: Any, other: Any, *, alpha: Any = 1) -> Any:
    """one -= alpha * other."""
    return add_(one, other, alpha=-alpha)


def norm(self: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Tensor:
    """Norm of all elements."""
    if dim is not None:
        raise not_for_sparse("norm")
    return self.coalesce()._value.norm(p)


def sum(self: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Sum of all elements, or over dims."""
    return products.sum(self, dim, dtype)


def zeros_like(self: SparseTensor, *, dtype: Any = None, **named: Any) -> SparseTensor:
    """A tensor of this size that stores nothing."""
    made = self.detach().to(self.dtype if dtype is None else dtype)
    return SparseTensor(made._index, made._value, made.shape, True).zero_()


FUNCTIONS: Final[dict[str, Any]] = {
    "add": add, "sub": sub, "subtract": sub, "mul": mul, "multiply": mul, "div": div,
    "divide": div, "true_divide": div, "pow": pow, "add_": add_, "sub_": sub_,
    "copy_": copy_, "mul_": _inplace(mul), "div_": _inplace(div), "mm": products.mm,
    "matmul": products.matmul, "mv": products.matmul, "spmm": products.mm,
    "addmm": products.addmm, "sum": sum, "norm": norm,
    "cat": products.cat, "concat": products.cat, "sparse_mask": making.sparse_mask,
    "stack": products.stack, "zeros_like": zeros_like, "empty_like": zeros_like,
    "__add__": add, "__radd__": lambda one, other: add(other, one), "__sub__": sub,
    "__rsub__": lambda one, other: sub(other, one), "__mul__": mul, "__rmul__": mul,
    "__truediv__": div, "__pow__": pow, "__matmul__": products.matmul,
    "__rmatmul__": lambda one, other: products.matmul(other, one), "__neg__": _of_values("neg"),
    "__iadd__": add_, "__isub__": sub_, "__imul__": _inplace(mul),
    "__itruediv__": _inplace(div), "rmul": mul,
    **{name: _of_values(name) for name in _OF_VALUES},
}  # fmt: skip


def torch_function(
    cls: type, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """What a function of torch's answers that was given a sparse tensor."""
    name = getattr(func, "__name__", str(func))
    named = dict(kwargs or {})
    found = FUNCTIONS.get(name)
    if found is None and args and isinstance(args[0], SparseTensor):
        found = vars(SparseTensor).get(name)
    if not callable(found):
        raise not_for_sparse(name)
    return found(*args, **named)


def _refusing(name: str) -> Callable[..., Any]:
    def refused(*arguments: Any, **named: Any) -> Any:
        raise not_for_sparse(name)

    return refused


def _install() -> None:
    """Give the class its operators and the methods that functions are."""
    for name, function in FUNCTIONS.items():
        if not name.startswith("__r") or name == "__radd__":
            setattr(SparseTensor, name, function)
    for name in ("__rsub__", "__rmul__", "__rmatmul__"):
        setattr(SparseTensor, name, FUNCTIONS[name])
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(SparseTensor, f"__{name}__", _refusing(name))
    for name, element in _CASTS.items():
        setattr(SparseTensor, name, _cast(element))
    SparseTensor.add_into = _add_into  # type: ignore[attr-defined]
    SparseTensor.__torch_function__ = classmethod(torch_function)  # type: ignore[attr-defined]


_install()
