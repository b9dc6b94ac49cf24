"""SparseTensor: a matrix as coordinates and values, its products and their gradients.

Keeps     duplicates add up, in the order given; gradients reach the values and the dense factor.
Touches   tensor (functions, creation).
Not here  other formats and operators: they are refused."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.errors import helped
from flambeau.tensor import Size, Tensor, creation
from flambeau.tensor import functions as t
from flambeau.tensor.public import distinct, formats, forms, printing

__all__ = ["SparseTensor", "mm", "sparse_coo_tensor", "spmm", "sum", "to_sparse"]


class SparseTensor:
    """A matrix of which only some elements are stored."""

    layout = formats.sparse_coo
    is_sparse = True
    is_cuda = False
    ndim = 2

    def __init__(self, indices: Tensor, values: Tensor, shape: Any, is_coalesced: bool) -> None:
        self._index = indices
        self._value = values
        self.shape = Size(shape)
        self._coalesced = is_coalesced

    # What it holds ------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """Dtype of the values."""
        return self._value.dtype

    @property
    def device(self) -> Any:
        """Where the values are."""
        return self._value.device

    @property
    def requires_grad(self) -> bool:
        """Whether the values want a gradient."""
        return bool(self._value.requires_grad)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dim."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Two."""
        return 2

    def numel(self) -> int:
        """Elements of the whole matrix."""
        rows, columns = self.shape
        return rows * columns

    def is_floating_point(self) -> bool:
        """Whether the values are floats."""
        return bool(self._value.is_floating_point())

    def is_complex(self) -> bool:
        """Whether the values are complex."""
        return bool(self._value.is_complex())

    def sparse_dim(self) -> int:
        """Two."""
        return 2

    def dense_dim(self) -> int:
        """None."""
        return 0

    def _nnz(self) -> int:
        return self._value.shape[0]

    def _indices(self) -> Tensor:
        return self._index

    def _values(self) -> Tensor:
        return self._value

    def is_coalesced(self) -> bool:
        """Whether indices are in order and none comes twice."""
        return self._coalesced

    def indices(self) -> Tensor:
        """Rows and columns of the stored elements, in order."""
        self._check_coalesced("indices")
        return self._index

    def values(self) -> Tensor:
        """The stored elements, in order."""
        self._check_coalesced("values")
        return self._value

    def _check_coalesced(self, name: str) -> None:
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
            )

    # What it becomes ----------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """The matrix with its indices in order and duplicates added up."""
        if self._coalesced:
            return self
        columns = self.shape[1]
        keys = self._index[0] * columns + self._index[1]
        kept, places = distinct.unique(keys, return_inverse=True)
        values = t.zeros(tuple(kept.shape), dtype=self.dtype)
        values = t.index_add(values, 0, places, self._value)
        rows = t.div(kept, columns, rounding_mode="floor")
        return SparseTensor(t.stack([rows, kept - rows * columns], 0), values, self.shape, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements."""
        keys = self._index[0] * self.shape[1] + self._index[1]
        flat = t.index_add(t.zeros((self.numel(),), dtype=self.dtype), 0, keys, self._value)
        found = flat.reshape(tuple(self.shape))
        return found if dtype is None else found.to(dtype)

    def _with_values(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._index, values, self.shape, self._coalesced)

    def to(self, *arguments: Any, **named: Any) -> SparseTensor:
        """The matrix with values of another dtype or on another device."""
        return self._with_values(self._value.to(*arguments, **named))

    def float(self) -> SparseTensor:
        """The matrix in float32."""
        return self.to(dtypes.float32)

    def double(self) -> SparseTensor:
        """The matrix in float64."""
        return self.to(dtypes.float64)

    def cpu(self) -> SparseTensor:
        """The matrix itself."""
        return self

    def cuda(self, *arguments: Any, **named: Any) -> SparseTensor:
        """torch's error: there is no such device here."""
        return self._with_values(self._value.cuda(*arguments, **named))

    def detach(self) -> SparseTensor:
        """The matrix without history."""
        return self._with_values(self._value.detach())

    def clone(self) -> SparseTensor:
        """A copy."""
        made = self._with_values(t.clone(self._value))
        made._index = t.clone(self._index)
        return made

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Let the values want a gradient."""
        self._value.requires_grad_(requires_grad)
        return self

    def t(self) -> SparseTensor:
        """The transpose."""
        swapped = t.flip(self._index, (0,))
        return SparseTensor(swapped, self._value, (self.shape[1], self.shape[0]), False)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """The transpose, or the matrix itself."""
        return self if dim0 % 2 == dim1 % 2 else self.t()

    def sum(self) -> Tensor:
        """Sum of all elements."""
        return t.sum(self._value)

    def mm(self, other: Any) -> Tensor:
        """Product with a dense matrix."""
        return mm(self, other)

    matmul = mm

    def __matmul__(self, other: Any) -> Tensor:
        if other.ndim == 1:
            return mm(self, other.unsqueeze(1)).squeeze(1)
        return mm(self, other)

    def __mul__(self, number: Any) -> SparseTensor:
        return self._with_values(self._value * number)

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> SparseTensor:
        return self._with_values(self._value / number)

    def __neg__(self) -> SparseTensor:
        return self._with_values(-self._value)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, SparseTensor):
            _same_size(self, other)
            index = t.cat([self._index, other._index], 1)
            values = t.cat([self._value, other._value], 0)
            return SparseTensor(index, values, self.shape, False)
        return self.to_dense() + other

    __radd__ = __add__

    def __repr__(self) -> str:
        parts = []
        for name, part in (("indices=", self._index), ("values=", self._value.detach())):
            pad = " " * (7 + len(name))
            parts.append(name + printing.repr_of(part).replace("\n", "\n" + pad))
        tail = f"size={tuple(self.shape)}, nnz={self._nnz()}"
        element = "" if self.dtype in (dtypes.float32, dtypes.int64) else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad else ""
        tail += f"{element}, layout=torch.sparse_coo{grad}"
        return "tensor(" + ",\n       ".join([*parts, tail]) + ")"


def _same_size(one: SparseTensor, other: SparseTensor) -> None:
    if one.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(one.shape)} != "
            f"{list(other.shape)}"
        )


def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """A matrix from the rows and columns of its elements and their values.

    >>> import flambeau as torch
    >>> torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).to_dense()
    tensor([[0., 2.],
            [3., 0.]])
    """
    index = indices if isinstance(indices, Tensor) else creation.tensor(indices)
    value = values if isinstance(values, Tensor) else creation.tensor(values)
    index = index.to(dtypes.int64)
    value = value.to(dtype) if dtype is not None else value
    value = value.to(device) if device is not None else value
    if index.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(index.shape)}")
    if index.shape[0] != 2 or value.ndim != 1:
        raise NotImplementedError(
            helped(
                "sparse_coo_tensor: only two-dimensional matrices of numbers are supported",
                given=f"{index.shape[0]} sparse and {value.ndim - 1} dense dims",
                fix="a dense tensor",
            )
        )
    if index.shape[1] != value.shape[0]:
        raise RuntimeError(
            "number of dimensions must be sparse_dim (2) + dense_dim (0), but got "
            f"{index.shape[1]} indices and {value.shape[0]} values"
        )
    shape = _checked_size(index, size)
    if requires_grad:
        value = value.detach().requires_grad_()
    return SparseTensor(index, value, shape, bool(is_coalesced))


def _checked_size(index: Tensor, size: Any) -> tuple[int, ...]:
    """The matrix's size, by default as large as its indices ask for."""
    if not index.numel():
        return (0, 0) if size is None else tuple(size)
    lowest, highest = t.amin(index, 1).tolist(), t.amax(index, 1).tolist()
    needed = tuple(last + 1 for last in highest)
    shape = needed if size is None else tuple(size)
    for dim in (0, 1):
        if lowest[dim] < 0:
            raise RuntimeError(f"found negative index {lowest[dim]} for dim {dim}")
        if needed[dim] > shape[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but found "
                f"index {needed[dim] - 1}"
            )
    return shape


def to_sparse(self: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements of a matrix that are not 0, as a sparse one."""
    if self.ndim != 2 or sparse_dim not in (None, 2):
        raise NotImplementedError(
            helped(
                "to_sparse: only matrices can be made sparse",
                given=f"a tensor of {self.ndim} dims, sparse_dim={sparse_dim}",
                expected="a matrix and sparse_dim=2",
            )
        )
    index = forms.nonzero(self.detach()).mT.contiguous()
    keys = index[0] * self.shape[1] + index[1]
    return SparseTensor(index, t.take(self, keys), self.shape, True)


def mm(sparse: Any, dense: Any) -> Tensor:
    """Product of a sparse and a dense matrix."""
    if not isinstance(sparse, SparseTensor):
        plain: Tensor = dense.to_dense() if isinstance(dense, SparseTensor) else dense
        return t.mm(sparse, plain)
    if isinstance(dense, SparseTensor):
        dense = dense.to_dense()
    if dense.ndim != 2:
        raise RuntimeError(f"mm: Expected dim 2 tensor for mat2, got {dense.ndim}D")
    if sparse.shape[1] != dense.shape[0]:
        raise RuntimeError(
            f"addmm: Argument #3 (dense): Expected dim 0 size {sparse.shape[1]}, got "
            f"{dense.shape[0]}"
        )
    rows, columns = sparse._index[0], sparse._index[1]
    terms = t.index_select(dense, 0, columns) * sparse._value.unsqueeze(1)
    empty = t.zeros((sparse.shape[0], dense.shape[1]), dtype=terms.dtype)
    return t.index_add(empty, 0, rows, terms)


spmm = mm


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """Sum of all elements; sums over a dim are refused, since their result is sparse in torch."""
    if dim is not None:
        raise NotImplementedError(
            helped(
                "sparse.sum: sums over a dim are not supported",
                given=f"dim={dim}",
                fix="input.to_dense().sum(dim)",
            )
        )
    return (input if dtype is None else input.to(dtype)).sum()
