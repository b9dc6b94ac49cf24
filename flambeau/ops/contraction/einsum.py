"""einsum: sums of products over named dims.

Keeps     two operands at a time, left to right, each pair one batched matrix product.
Touches   ops.define, base.shapes.
Not here  choosing a better order of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from flambeau.base import dtypes, shapes
from flambeau.base.layout import contiguous
from flambeau.ops.contraction.matmul import check_dtypes
from flambeau.ops.define import Operator, Tensors, operator


def _check_letters(equation: str, term: str, position: int) -> None:
    for label in term.replace("...", ""):
        if label == ".":
            raise RuntimeError(
                f"einsum(): found '.' for operand {position} that is not part of any ellipsis"
            )
        if not label.isalpha():
            raise RuntimeError(
                "einsum(): invalid subscript given at index "
                f"{equation.index(label)} in the equation string, subscripts must be in [a-zA-Z]"
            )


@lru_cache(maxsize=1024)
def parsed(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """(labels of each operand, labels of the result); dims of "..." get capital Greek letters.

    >>> parsed("ij,jk", (2, 2))
    (('ij', 'jk'), 'ik')
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        fewer = len(terms) > len(ranks)
        raise RuntimeError(
            "einsum(): fewer operands were provided than specified in the equation"
            if fewer
            else "einsum(): more operands were provided than specified in the equation"
        )
    n_hidden = max(
        [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)
         if "..." in term], default=0,
    )  # fmt: skip
    hidden = "".join(chr(0x391 + place) for place in range(max(n_hidden, 0)))
    for position, term in enumerate(terms):
        _check_letters(equation, term, position)
    found = []
    for position, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        named = len(term.replace("...", ""))
        own = rank - named
        labels = term.replace("...", hidden[len(hidden) - own :] if own > 0 else "")
        if own < 0 and "..." in term:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the "
                f"number of dimensions ({rank}) for operand {position}"
            )
        if len(labels) != rank or own < 0:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match "
                f"the number of dimensions ({rank}) for operand {position} and no ellipsis was "
                "given"
            )
        found.append(labels)
    if arrow:
        return tuple(found), right.replace("...", hidden)
    together = "".join(found)
    once = sorted({each for each in together if together.count(each) == 1 and each not in hidden})
    return tuple(found), hidden + "".join(once)


def label_sizes(terms: Sequence[str], operands: Sequence[Any]) -> dict[str, int]:
    """Size of every label; 1 broadcasts."""
    sizes: dict[str, int] = {}
    for position, (labels, operand) in enumerate(zip(terms, operands, strict=True)):
        own: dict[str, int] = {}
        for label, size in zip(labels, operand.shape, strict=True):
            if own.setdefault(label, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {position} but the sizes "
                    f"don't match, {size} != {own[label]}"
                )
            known = sizes.get(label, 1)
            if known != 1 and size not in (1, known):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {position} which "
                    f"does not broadcast with previously seen size {known}"
                )
            sizes[label] = size if known == 1 else known
    return sizes


@operator("einsum", function=False)
class Einsum(Operator):
    """torch.einsum(equation, *operands)."""

    holomorphic = True
    out = False

    def infer(self, operands: Tensors, equation: str) -> Any:
        terms, result = parsed(equation, tuple(each.ndim for each in operands))
        sizes = label_sizes(terms, operands)
        for label in result:
            if label not in sizes:
                raise RuntimeError(
                    f"einsum(): output subscript {label} does not appear in the equation for any "
                    "input operand"
                )
        if len(set(result)) != len(result):
            label = next(each for each in result if result.count(each) > 1)
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the output"
            )
        for each in operands[1:]:
            check_dtypes(operands[0], each, "bmm")
        element = operands[0].dtype
        if len(operands) == 1 and element.category < 2 and set(terms[0]) - set(result):
            element = dtypes.int64  # a sum
        shape = tuple(sizes[label] for label in result)
        return contiguous(shape, element, shapes.common_device(operands))

    def lower(self, b: Any, operands: Any, equation: str) -> Any:
        terms, result = parsed(equation, tuple(len(each.shape) for each in operands))
        sizes = label_sizes(terms, operands)
        labels, value = _single(b, terms[0], operands[0])
        for position in range(1, len(terms)):
            other_labels, other = _single(b, terms[position], operands[position])
            later = set(result).union(*terms[position + 1 :])
            labels, value = _paired(b, labels, value, other_labels, other, later, sizes)
        dropped = tuple(dim for dim, label in enumerate(labels) if label not in result)
        if dropped:
            if len(terms) == 1 and value.dtype.category < 2:
                value = b.convert(value, dtypes.int64)
            value = _sum(b, value, dropped)
            labels = "".join(label for label in labels if label in result)
        value = b.permute(value, tuple(labels.index(label) for label in result))
        return b.expand(value, tuple(sizes[label] for label in result))

    def vjp(self, t: Any, grad: Any, operands: Any, equation: str, needs: Any) -> Any:
        terms, result = parsed(equation, tuple(each.dim() for each in operands))
        sizes = label_sizes(terms, operands)
        found: list[Any] = []
        for position in range(len(operands)):
            if not needs[0][position]:
                found.append(None)
                continue
            found.append(_operand_gradient(t, grad, operands, terms, result, position, sizes))
        return (found,)

    def samples(self, s: Any) -> list[Any]:
        return [
            s([s.real(3, 4), s.real(4, 5)], "ij,jk->ik"),
            s([s.real(2, 3, 4), s.real(2, 4, 5)], "bij,bjk"),
            s([s.real(3, 4)], "ij->j"),
            s([s.real(3, 3)], "ii->i"),
            s([s.real(2, 3), s.real(3), s.real(2, 4)], "ij,j,ik->k"),
            s([s.real(2, 5, 3), s.real(3, 4)], "...i,ij->...j"),
        ]


def _sum(b: Any, value: Any, dims: tuple[int, ...]) -> Any:
    total = b.reduce("sum", b.convert(value, value.dtype.compute), dims)
    return b.convert(total, value.dtype)


def _single(b: Any, labels: str, value: Any) -> tuple[str, Any]:
    """Repeated labels of one operand become diagonals."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            shape, strides = list(value.shape), list(value.strides)
            shape[first] = min(shape[first], shape[second])
            strides[first] += strides[second]
            del shape[second], strides[second]
            value = value.with_view(tuple(shape), tuple(strides))
            labels = labels[:second] + labels[second + 1 :]
    return labels, value


def _paired(
    b: Any, left_labels: str, left: Any, right_labels: str, right: Any, later: set[str],
    sizes: dict[str, int],
) -> tuple[str, Any]:  # fmt: skip
    """The product of two operands, summed over labels nobody needs later."""
    summed = [each for each in left_labels if each in right_labels and each not in later]
    batch = [each for each in left_labels if each in right_labels and each in later]
    for labels, value, other in ((left_labels, left, "left"), (right_labels, right, "right")):
        shared = set(summed) | set(batch)
        alone = [label for label in labels if label not in shared and label not in later]
        if alone:
            value = _sum(b, value, tuple(labels.index(each) for each in alone))
            labels = "".join(each for each in labels if each not in alone)
        if other == "left":
            left_labels, left = labels, value
        else:
            right_labels, right = labels, value
    rows = [each for each in left_labels if each not in summed and each not in batch]
    columns = [each for each in right_labels if each not in summed and each not in batch]
    one = _arranged(b, left, left_labels, batch, rows, summed, sizes)
    other_value = _arranged(b, right, right_labels, batch, summed, columns, sizes)
    product = b.product(one, other_value)
    order = [*batch, *rows, *columns]
    return "".join(order), b.reshape(product, tuple(sizes[each] for each in order))


def _arranged(
    b: Any, value: Any, labels: str, batch: list[str], first: list[str], second: list[str],
    sizes: dict[str, int],
) -> Any:  # fmt: skip
    """The operand as (batch..., first, second) with the last two groups merged."""
    order = [*batch, *first, *second]
    moved = b.permute(value, tuple(labels.index(each) for each in order))
    moved = b.expand(moved, tuple(sizes[each] for each in order))
    batch_sizes = tuple(sizes[each] for each in batch)
    merged = (prod([sizes[each] for each in first]), prod([sizes[each] for each in second]))
    return b.reshape(moved, (*batch_sizes, *merged))


def _operand_gradient(
    t: Any, grad: Any, operands: Any, terms: Any, result: str, position: int, sizes: dict[str, int]
) -> Any:
    """einsum of the cotangent with the other operands, to this operand's labels."""
    labels = terms[position]
    others = [place for place in range(len(terms)) if place != position]
    unique = "".join(dict.fromkeys(labels))
    known = set(result).union(*[terms[place] for place in others])
    seen = "".join(label for label in unique if label in known)
    names = ",".join([result, *[terms[place] for place in others]])
    found = t.einsum((grad, *[operands[place] for place in others]), f"{names}->{seen}")
    # Labels that only this operand has were summed away: every place has the same gradient.
    for dim, label in enumerate(unique):
        if label not in known:
            found = found.unsqueeze(dim)
    found = found.expand([sizes[label] for label in unique])
    if unique == labels:
        return found
    for label in unique:  # diagonals go back to where they were taken
        while unique.count(label) < labels.count(label):
            dim = unique.index(label)
            size = found.shape[dim]
            shape = (*found.shape[:dim], size, size, *found.shape[dim + 1 :])
            found = t.diagonal_backward(found.movedim(dim, -1), shape, 0, dim, dim + 1)
            unique = unique[: dim + 1] + label + unique[dim + 1 :]
    order = _match(unique, labels)
    return found.permute(order)


def _match(have: str, wanted: str) -> list[int]:
    """Permutation that brings labels, some repeated, into the wanted order."""
    free = list(range(len(have)))
    order = []
    for label in wanted:
        place = next(each for each in free if have[each] == label)
        free.remove(place)
        order.append(place)
    return order
