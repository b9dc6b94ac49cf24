"""What a matrix product is given: sizes, batches, where its matrices lie; and what a plan is.

Keeps     products are described by numbers alone; merging batches and transposing the product
          change which loop computes an element, never its arithmetic.
Touches   base.dtypes, jit (what a step's text is).
Not here  which kernels and blocks (grid.py), the steps (plan.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from flambeau.base.dtypes import dtype
from flambeau.devices.cpu.jit import Text


class Operand(NamedTuple):
    """An argument known when the plan is bound: an address "a", "b", "c" or "workspace" + bytes."""

    name: str
    n_bytes: int = 0


@dataclass(frozen=True)
class ProductStep:
    """One step of the runner's program; `arguments` are the kernel's words in order."""

    name: str
    text: Text
    n_units: int
    chunk_units: int
    arguments: tuple[int | Operand, ...]
    scratch_bytes: int


@dataclass(frozen=True)
class ProductPlan:
    """Steps in order, and the bytes of 64-byte aligned workspace they share."""

    steps: tuple[ProductStep, ...]
    workspace_bytes: int = 0


class Matrix(NamedTuple):
    """Where an operand lies: byte strides of its batch dimensions, rows and columns."""

    operand: Operand
    batch: tuple[int, ...]
    row: int
    column: int

    def transposed(self) -> Matrix:
        return self._replace(row=self.column, column=self.row)

    def moved(self, n_bytes: int) -> Matrix:
        name, offset = self.operand
        return self._replace(operand=Operand(name, offset + n_bytes))


class Product(NamedTuple):
    """C = A B for every batch entry."""

    sizes: tuple[int, ...]
    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    c: Matrix

    def swapped(self) -> Product:
        """The transposed product, which computes the same elements from the same fma."""
        return self._replace(
            m=self.n, n=self.m, a=self.b.transposed(), b=self.a.transposed(),
            c=self.c.transposed(),
        )  # fmt: skip

    def with_matrices(self, matrices: list[Matrix]) -> Product:
        """The same product of matrices (a, b, c) that lie elsewhere."""
        a, b, c = matrices
        return self._replace(a=a, b=b, c=c)


def merged(product: Product) -> Product:
    """Fewer batch dimensions: those of size 1 go, neighbours that are one in memory join, and one
    over which an operand does not change becomes part of the other's rows or columns."""
    keep = [d for d, size in enumerate(product.sizes) if size > 1]
    matrices = [product.a, product.b, product.c]
    if not keep:
        matrices = [Matrix(each.operand, (), each.row, each.column) for each in matrices]
        return product.with_matrices(matrices)._replace(sizes=())
    sizes = [product.sizes[d] for d in keep]
    strides = [[each.batch[d] for d in keep] for each in matrices]
    d = len(sizes) - 1
    while d > 0:
        if all(each[d - 1] == each[d] * sizes[d] for each in strides):
            sizes[d - 1] *= sizes.pop(d)
            for each in strides:
                each[d - 1] = each.pop(d)
        d -= 1
    matrices = [
        each._replace(batch=tuple(steps)) for each, steps in zip(matrices, strides, strict=True)
    ]
    product = product.with_matrices(matrices)._replace(sizes=tuple(sizes))
    if not sizes:
        return product
    rows = _joined(product)
    if rows is not None:
        return rows
    columns = _joined(product.swapped())
    return product if columns is None else columns.swapped()


def _joined(product: Product) -> Product | None:
    """The last batch dimension as more rows, where B does not change along it and the rows of the
    others go on from entry to entry; None elsewhere."""
    if product.b.batch[-1] != 0:
        return None
    matrices = []
    for each in (product.a, product.b, product.c):
        batch, last = each.batch[:-1], each.batch[-1]
        if each is product.b:
            matrices.append(each._replace(batch=batch))
        elif product.m == 1 or last == product.m * each.row:
            row = last if product.m == 1 else each.row
            matrices.append(each._replace(batch=batch, row=row))
        else:
            return None
    m = product.m * product.sizes[-1]
    return product.with_matrices(matrices)._replace(sizes=product.sizes[:-1], m=m)


def oriented(product: Product, kind: dtype) -> Product:
    """The product or its transpose, whichever suits the kernels better."""
    size = kind.itemsize
    m, n, c = product.m, product.n, product.c
    if m == 1:
        return product
    if n == 1:
        return product.swapped()
    if c.column != size and c.row == size:
        product = product.swapped()
    m, n, b = product.m, product.n, product.b
    if b.column != size and b.row == size and m <= 16 and n > 2 * m:
        # B would have to be transposed whole for the sake of few rows; A is read as it lies.
        return product.swapped()
    return product
