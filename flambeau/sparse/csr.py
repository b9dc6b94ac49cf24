"""SparseRows: a matrix by compressed rows (CSR), as graph programs use it.

Keeps     its columns, values and where each row starts; products are those of its coordinates.
Touches   coo, products.
Not here  other compressed forms (CSC, BSR): they are refused."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.sparse import products
from flambeau.sparse.coo import SparseTensor, part_text
from flambeau.tensor import Size, Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.public import formats, printing, ranges

__all__ = ["SparseRows", "of_coordinates", "sparse_csr_tensor"]


class SparseRows:
    """A matrix of which only some elements are stored, row after row."""

    layout = formats.sparse_csr
    is_sparse = False
    is_sparse_csr = True
    is_cuda = False
    ndim = 2

    def __init__(self, starts: Tensor, columns: Tensor, values: Tensor, shape: Any) -> None:
        self._starts = starts
        self._columns = columns
        self._value = values
        self.shape = Size(shape)

    dtype = property(lambda self: self._value.dtype)
    device = property(lambda self: self._value.device)
    requires_grad = property(lambda self: bool(self._value.requires_grad))

    def crow_indices(self) -> Tensor:
        """Where each row starts, and the last one ends."""
        return self._starts

    def col_indices(self) -> Tensor:
        """The column of each stored element."""
        return self._columns

    def values(self) -> Tensor:
        """The stored elements."""
        return self._value

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dim."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Two."""
        return 2

    def numel(self) -> int:
        """Elements, stored or not."""
        return self.shape[0] * self.shape[1]

    def _nnz(self) -> int:
        return int(self._value.shape[0])

    def requires_grad_(self, requires_grad: bool = True) -> SparseRows:
        """Let the values want a gradient."""
        self._value.requires_grad_(requires_grad)
        return self

    def to_sparse_coo(self) -> SparseTensor:
        """The matrix by coordinates."""
        counts = self._starts[1:] - self._starts[:-1]
        rows = ranges.arange(self.shape[0]).repeat_interleave(counts)
        index = t.stack([rows, self._columns.to(dtypes.int64)], 0)
        return SparseTensor(index, self._value, self.shape, True)

    to_sparse = to_sparse_coo

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseRows:
        """The matrix itself."""
        return self

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements."""
        return self.to_sparse_coo().to_dense(dtype)

    def _with_values(self, values: Tensor) -> SparseRows:
        return SparseRows(self._starts, self._columns, values, self.shape)

    def to(self, *arguments: Any, **named: Any) -> SparseRows:
        """The matrix with values of another dtype or on another device."""
        return self._with_values(self._value.to(*arguments, **named))

    def float(self) -> SparseRows:
        """The matrix in float32."""
        return self.to(dtypes.float32)

    def double(self) -> SparseRows:
        """The matrix in float64."""
        return self.to(dtypes.float64)

    def detach(self) -> SparseRows:
        """The matrix without history."""
        return self._with_values(self._value.detach())

    def clone(self) -> SparseRows:
        """A copy."""
        return self._with_values(t.clone(self._value))

    def sum(self) -> Tensor:
        """Sum of all elements."""
        return self._value.sum()

    def mm(self, other: Any) -> Any:
        """Product with a matrix."""
        return products.mm(self.to_sparse_coo(), other)

    def matmul(self, other: Any) -> Any:
        """Product with a matrix or a vector."""
        return products.matmul(self.to_sparse_coo(), other)

    __matmul__ = matmul

    def __rmatmul__(self, other: Any) -> Any:
        return products.mm(other, self.to_sparse_coo())

    def __mul__(self, number: Any) -> SparseRows:
        return self._with_values(self._value * number)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> SparseRows:
        return self._with_values(self._value / number)

    def __neg__(self) -> SparseRows:
        return self._with_values(-self._value)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """What a function of torch's answers that was given a matrix by rows."""
        name = getattr(func, "__name__", str(func))
        whole = {
            "mm": products.mm, "matmul": products.matmul, "mv": products.matmul,
            "addmm": products.addmm, "__matmul__": products.matmul,
        }  # fmt: skip
        found = whole.get(name) or vars(cls).get(name)
        if not callable(found):
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'SparseCsrCPU' backend."
            )
        given = [each.to_sparse_coo() if isinstance(each, cls) and name in whole else each
                 for each in args]  # fmt: skip
        return found(*given, **(kwargs or {}))

    def __repr__(self) -> str:
        parts = []
        for name, part in (
            ("crow_indices=", self._starts), ("col_indices=", self._columns),
            ("values=", self._value.detach()),
        ):  # fmt: skip
            pad = " " * (7 + len(name))
            text = part_text(part)
            parts.append(name + text.replace("\n", "\n" + pad))
        text = ",\n       ".join(parts)
        unsaid = self.dtype in (dtypes.float32, dtypes.int64, dtypes.bool_)
        element = [] if unsaid else [f"dtype={self.dtype}"]
        suffixes = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}", *element]
        suffixes += ["layout=torch.sparse_csr", *["requires_grad=True"] * self.requires_grad]
        return printing.with_suffixes("tensor(" + text, suffixes, 7)


def of_coordinates(given: SparseTensor) -> SparseRows:
    """A matrix of coordinates by rows."""
    if given.ndim != 2:
        raise RuntimeError(
            "Only tensors with two sparse dimensions can be converted to the SparseCsr layout, got "
            f"self with {given.sparse_dim()} sparse dimensions."
        )
    kept = given.coalesce()
    counts = t.zeros((kept.shape[0] + 1,), dtype=dtypes.int64).index_add(
        0, kept._index[0] + 1, t.ones((kept._nnz(),), dtype=dtypes.int64)
    )
    return SparseRows(counts.cumsum(0), kept._index[1].contiguous(), kept._value, kept.shape)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseRows:  # fmt: skip
    """A matrix from where its rows start, and the columns and values of its elements.

    >>> import flambeau as torch
    >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0]).to_dense()
    tensor([[0., 2.],
            [3., 0.]])
    """
    starts, columns, value = (
        each if isinstance(each, Tensor) else creation.tensor(each)
        for each in (crow_indices, col_indices, values)
    )
    value = value if dtype is None else value.to(dtype)
    if starts.ndim != 1 or columns.ndim != 1 or value.ndim != 1:
        raise RuntimeError(
            "crow_indices and col_indices must have 1 dim, and values 1, of a matrix: batches and "
            "blocks are not supported"
        )
    if columns.shape[0] != value.shape[0]:
        raise RuntimeError(
            f"number of columns ({columns.shape[0]}) and of values ({value.shape[0]}) must match"
        )
    if size is None:
        width = int(columns.max().item()) + 1 if columns.numel() else 0
        size = (starts.shape[0] - 1, width)
    if requires_grad:
        value = value.detach().requires_grad_()
    return SparseRows(starts, columns, value, size)
