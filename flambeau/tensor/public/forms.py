"""Functions with several forms under one name, each form an operator of its own.

Keeps     the form is chosen by the kinds of the arguments, as torch's signatures say.
Touches   functions, indexing.keys.
Not here  functions made of several operators (composed.py)."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.dtypes import dtype
from flambeau.gradients.recording.drawn import shows
from flambeau.ops.define import REGISTRY, type_name
from flambeau.tensor import functions, number_rules
from flambeau.tensor.arguments import refused, refuses
from flambeau.tensor.arguments.parameters import in_own_words
from flambeau.tensor.indexing import keys as index_keys
from flambeau.tensor.inplace import check_overlap, stored
from flambeau.tensor.tensor import Tensor, result_tuple


def _extreme(name: str, pairwise: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    given = in_own_words(named, ("input", "other", "dim", "keepdim"))
    rest = list(arguments)
    tensor = rest.pop(0) if rest else given.pop("input", None)
    if not isinstance(tensor, Tensor):
        raise refused(name, arguments, named)
    out = given.pop("out", None)
    is_whole = not rest and not given
    if given and isinstance(given.get("dim"), Tensor):
        given["dim"] = number_rules.integer(given["dim"], name, "dim", 2)
    second = rest.pop(0) if rest else given.pop("other", given.pop("dim", None))
    if is_whole:
        found = getattr(functions, name)(tensor)
        return stored(found, out)
    if isinstance(second, Tensor):
        return getattr(functions, pairwise)(tensor, second, **({} if out is None else {"out": out}))
    if isinstance(second, bool) or not hasattr(second, "__index__"):
        raise refused(name, arguments, named)
    keepdim = rest.pop(0) if rest else given.pop("keepdim", False)
    if rest or given or not isinstance(keepdim, bool):
        raise refused(name, arguments, named)
    found = getattr(functions, name + "_dim")(tensor, second.__index__(), bool(keepdim))
    return stored(result_tuple(name, ("values", "indices"), tuple(found)), out)


@refuses("max")
def max(*arguments: Any, **named: Any) -> Any:
    """Largest of all elements; (values, indices) along a dim; or the larger of two tensors."""
    return _extreme("max", "maximum", arguments, named)


@refuses("min")
def min(*arguments: Any, **named: Any) -> Any:
    """Smallest of all elements; (values, indices) along a dim; or the smaller of two tensors."""
    return _extreme("min", "minimum", arguments, named)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where the condition holds, other elsewhere; with the condition alone, its places."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if out is not None:
        return functions.where(condition, input, other, out=out)
    return functions.where(condition, input, other)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """This tensor where the condition holds, other elsewhere."""
    return functions.where(condition, self, other)


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """Places of the elements that are not 0: a row each, or (as_tuple) a tensor a dim."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"nonzero(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    if as_tuple:
        if not input._layout.shape:
            input = functions.unsqueeze(input, 0)
        return tuple(functions.unbind(index_keys.nonzero(input), 1))
    found = index_keys.nonzero(input)
    return stored(
        found, out,
        "nonzero: Expected out tensor to have scalar type Long but got scalar type{given}",
    )  # fmt: skip


def argwhere(input: Tensor) -> Tensor:
    """Places of the elements that are not 0, a row each."""
    return nonzero(input)


@shows("MaskedSelectBackward0")
@refuses("masked_select")
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """Elements where the mask is true, as one row."""
    if mask._layout.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = shapes.broadcast_shapes(mask._layout.shape, input._layout.shape)
    whole = functions.expand(input, shape) if input._layout.shape != shape else input
    if mask._layout.shape != shape:
        mask = functions.expand(mask, shape)
    if not shape:
        whole, mask = functions.unsqueeze(whole, 0), functions.unsqueeze(mask, 0)
    if out is not None:
        check_overlap(out, (whole, mask), "masked_select")
    found: Tensor = index_keys.gathered(whole, mask)
    return stored(found, out, "masked_select(): self and result must have the same scalar type")


@refuses("reshape")
def reshape(input: Tensor, shape: Any) -> Tensor:
    """The elements under another shape: a view where strides allow, else a copy."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"reshape(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    return input.reshape(shape)


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size, or of given sizes, along a dim: views."""
    return functions.split(tensor, split_size_or_sections, dim)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size along a dim: views."""
    return functions.chunk(input, chunks, dim)


@refuses("tensor_split")
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, sections: Any = None,
    indices: Any = None, tensor_indices_or_sections: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Parts cut at indices, or into so many parts, along a dim: views.

    Either may come as a tensor of int64, whose values are read.

    >>> import flambeau as torch
    >>> [len(part) for part in tensor_split(torch.arange(7), torch.tensor([1, 3]))]
    [1, 2, 4]
    """
    given = [indices_or_sections, sections, indices, tensor_indices_or_sections]
    chosen = [each for each in given if each is not None]
    if len(chosen) != 1:
        raise TypeError("tensor_split(): indices or a number of sections")
    cuts = chosen[0]
    if isinstance(cuts, Tensor):
        cuts = _read_cuts(cuts)
    elif isinstance(cuts, float):
        raise TypeError("tensor_split(): indices and numbers of sections are ints")
    return functions.tensor_split(input, cuts, dim)


def _read_cuts(cuts: Tensor) -> Any:
    start = "tensor_split expected tensor_indices_or_sections to "
    if cuts._layout.dtype is not dtypes.int64:
        raise RuntimeError(f"{start}have dtype of long, but got {type_name(cuts._layout)}")
    if cuts._layout.ndim > 1:
        raise RuntimeError(
            f"{start}be a zero-dimensional or one-dimensional tensor, but got a tensor with "
            f"{cuts._layout.ndim} dims"
        )
    return cuts.tolist()


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """float_power in place, of what is float64 or complex128 already."""
    found = functions.float_power(functions.clone(self), exponent)
    if found._layout.dtype is not self._layout.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {type_name(self._layout)} but the "
            f"operation's result requires dtype {type_name(found._layout)}"
        )
    return self.copy_(found)


def _moment(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    # std(input, unbiased), std(input, dim, unbiased, keepdim), std(input, dim, *, correction).
    if len(arguments) == 1 and not named:
        found = getattr(functions, name)(*arguments)
        if arguments[0]._layout.n_elements <= 1:
            _warn_of_few(name, arguments[0], found, 1)
        return found
    given = in_own_words(named, ("input", "dim", "keepdim"))
    if len(arguments) == 2 and isinstance(arguments[1], bool):
        given["unbiased"] = arguments[1]
        arguments = arguments[:1]
    unbiased = arguments[2] if len(arguments) > 2 else given.get("unbiased")
    if unbiased is not None and not isinstance(unbiased, bool):
        raise refused(name, arguments, named)
    found = getattr(functions, name)(*arguments, **given)
    correction = given.get("correction")
    if correction is None:
        correction = 0 if unbiased is False else 1
    _warn_of_few(name, arguments[0] if arguments else given["input"], found, correction)
    return found


def _warn_of_few(name: str, input: Tensor, found: Tensor, correction: Any) -> None:
    """torch's warning where single elements are to spread."""
    n_results = found._layout.n_elements
    if (input._layout.n_elements // n_results if n_results else 0) <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel).",
            stacklevel=4,
        )


@refuses("std")
def std(*arguments: Any, **named: Any) -> Any:
    """Standard deviation over all elements or dims; divides by n - correction."""
    return _moment("std", arguments, named)


@refuses("var")
def var(*arguments: Any, **named: Any) -> Any:
    """Variance over all elements or dims; divides by n - correction."""
    return _moment("var", arguments, named)


def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None,
    dtype: dtype | None = None,
) -> Tensor:  # fmt: skip
    """Vector norm of order p over all elements or dims ("fro": 2)."""
    found = functions.norm(input, p, dim, keepdim, dtype)
    return stored(found, out)


def _put_where(input: Tensor, indices: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Integer indices and the dims they choose from; masks become the places of their Trues."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError("index_put(): argument 'indices' (position 1) must be tuple of Tensors, "
                        f"not {type(indices).__name__}")  # fmt: skip
    found: list[Tensor] = []
    dims: list[int] = []
    at = 0
    for each in indices:
        if each is None:
            at += 1
        else:
            columns = index_keys.places(input._layout, at, each)
            found += columns
            dims += range(at, at + len(columns))
            at += len(columns)
    if not dims:
        if any(each is None for each in indices):
            raise TypeError("expected Tensor as element 0 in argument 0, but got NoneType")
        raise RuntimeError("index_put(): expected at least one tensor of indices, but got none")
    return tuple(found), tuple(dims)


def _lone_mask(input: Tensor, indices: Any) -> tuple[Tensor, Any]:
    """A single mask without dims writes all or nothing: it becomes a mask over a first dim of one
    element. Beside other indices such a mask counts for nothing, as in torch."""
    if not isinstance(indices, (tuple, list)) or len(indices) != 1:
        return input, indices
    mask = indices[0]
    if not isinstance(mask, Tensor) or mask.ndim:
        return input, indices
    if mask._layout.dtype not in (dtypes.bool_, dtypes.uint8):
        return input, indices
    if not input._layout.ndim:
        raise IndexError("too many indices for tensor of dimension 0 (got 1)")
    return functions.unsqueeze(input, 0), (functions.reshape(mask, (1,)),)


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with values written, or added, at indices."""
    whole, indices = _lone_mask(input, indices)
    found, dims = _put_where(whole, indices)
    made: Tensor = functions.index_put(whole, found, values, accumulate, dims=dims)
    return made if whole is input else made.squeeze(0)


def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Values written, or added, at indices in place."""
    whole, indices = _lone_mask(input, indices)
    found, dims = _put_where(whole, indices)
    functions.index_put_(whole, found, values, accumulate, dims=dims)
    return input


def einsum(*arguments: Any) -> Tensor:
    """Sums of products of elements, said by letters: einsum("ij,jk->ik", a, b).

    The form einsum(a, [0, 1], b, [1, 2], [0, 2]) names dims by numbers below 52.
    """
    if not arguments or (len(arguments) == 1 and not isinstance(arguments[0], str)):
        raise ValueError("einsum(): must specify the equation string and at least one operand, or "
                         "at least one operand and its subscripts list")  # fmt: skip
    if isinstance(arguments[0], str):
        equation, operands = arguments[0], arguments[1:]
    else:
        equation, operands = _from_sublists(arguments)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if len(operands) == 1 and isinstance(operands[0], Tensor):
        seen = _einsum_view(operands[0], equation)
        if seen is not None:
            return seen
    return functions.einsum(tuple(operands), equation)


def _einsum_view(operand: Tensor, equation: str) -> Tensor | None:
    """What sums nothing of one operand: its dims in another order, diagonals among them."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    labels = list(left)
    distinct = list(dict.fromkeys(labels))
    wanted = list(right) if arrow else sorted(each for each in labels if labels.count(each) == 1)
    if len(labels) != operand._layout.ndim or not left.isalpha() or "," in left:
        return None
    if sorted(wanted) != sorted(distinct):
        return None
    REGISTRY["einsum"].infer((operand._layout,), equation)  # its errors
    seen = operand
    for label in distinct:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            seen = functions.diagonal(seen, 0, first, second)
            del labels[second], labels[first]
            labels.append(label)
    return functions.permute(seen, tuple(labels.index(label) for label in wanted))


def _from_sublists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    operands = arguments[0 : len(arguments) - 1 : 2]
    lists = [_letters(each) for each in arguments[1::2]]
    equation = ",".join(lists)
    if len(arguments) % 2:
        equation += "->" + _letters(arguments[-1])
    return equation, operands


def _letters(places: Any) -> str:
    made = ""
    for place in places:
        if place is Ellipsis:
            made += "..."
        elif not 0 <= place < 52:
            raise ValueError(
                "einsum(): subscript in subscripts list is not within the valid range [0, 52)"
            )
        else:
            made += chr(ord("A") + place) if place < 26 else chr(ord("a") + place - 26)
    return made


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector along a dim of its own, expanded over the others."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            stacklevel=2,
        )
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing
        )
    swapped = indexing == "xy" and len(tensors) >= 2
    vectors = list(tensors)
    if swapped:
        vectors[0], vectors[1] = vectors[1], vectors[0]
    for place, each in enumerate(vectors):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(each).__name__}"
            )
        if each._layout.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {each}"
            )
    shape = tuple([each._layout.n_elements for each in vectors])
    grids = []
    for dim, each in enumerate(vectors):
        own = [1] * len(shape)
        own[dim] = shape[dim]
        grids.append(functions.expand(each.reshape(own), shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)
