"""SparseTensor: coordinates and values, and what follows from one of them.

Keeps     duplicates add up, in the order given; gradients reach the values. Dims of coordinates
          come first, then dims that each value has of its own.
Touches   tensor (functions), gradients (that there are such tensors).
Not here  making them (making.py), products and folds over dims (products.py), functions of torch
          that are given one (serving.py)."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau.base import dtypes
from flambeau.base.shapes import wrap_dim
from flambeau.gradients.members import get_grad, set_grad
from flambeau.gradients.modes import is_grad_enabled
from flambeau.gradients.recording.inplace import check_writable
from flambeau.gradients.runtime import RUNTIME
from flambeau.tensor import Size, Tensor
from flambeau.tensor import functions as t
from flambeau.tensor.index_bounds import first_outside
from flambeau.tensor.public import distinct, formats, forms, printing

__all__ = ["SparseTensor"]


class _Shape:
    """What gradients are compared by; no layout, so that no operator takes it for one."""

    def __init__(self, sparse: SparseTensor) -> None:
        self.shape = tuple(sparse.shape)
        self.dtype = sparse.dtype
        self.device = sparse.device


class SparseTensor:
    """A tensor of which only some elements are stored."""

    layout = formats.sparse_coo
    is_sparse = True
    is_sparse_csr = False
    is_cuda = False
    is_meta = False
    is_quantized = False
    _autograd: Any = None
    _base: Any = None
    _versions: Any = None

    def __init__(self, indices: Tensor, values: Tensor, shape: Any, is_coalesced: bool) -> None:
        RUNTIME.has_sparse = True
        self._index = indices
        self._value = values
        self.shape = Size(shape)
        self._coalesced = is_coalesced
        self._layout = _Shape(self)

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
    def ndim(self) -> int:
        """Dims of both kinds."""
        return len(self.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether the values want a gradient."""
        return bool(self._value.requires_grad)

    @property
    def is_leaf(self) -> bool:
        """Whether the values were made by the user."""
        return bool(self._value.is_leaf)

    @property
    def grad_fn(self) -> Any:
        """The node that made the values."""
        return self._value.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient, stored at the same coordinates; None before there is one."""
        found = get_grad(self._value)
        return None if found is None else self._with_values(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        set_grad(self._value, None if value is None else value.coalesce()._value)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dim."""
        return self.shape if dim is None else self.shape[wrap_dim(dim, self.ndim)]

    def dim(self) -> int:
        """Dims of both kinds."""
        return len(self.shape)

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: elements do not lie one after the other."""
        return (0,) * self.ndim if dim is None else 0

    def numel(self) -> int:
        """Elements, stored or not."""
        return prod(self.shape)

    nelement = numel

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._value.itemsize)

    def __len__(self) -> int:
        return int(self.shape[0])

    def is_floating_point(self) -> bool:
        """Whether the values are floats."""
        return bool(self._value.is_floating_point())

    def is_complex(self) -> bool:
        """Whether the values are complex."""
        return bool(self._value.is_complex())

    def sparse_dim(self) -> int:
        """Dims that coordinates name."""
        return int(self._index.shape[0])

    def dense_dim(self) -> int:
        """Dims of each value."""
        return int(self._value.ndim) - 1

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
        """Coordinates of the stored elements, in order."""
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

    def _keys(self) -> Tensor:
        """Each coordinate as one number, in row-major order."""
        keys = t.zeros((self._nnz(),), dtype=dtypes.int64)
        for dim in range(self.sparse_dim()):
            keys = keys * self.shape[dim] + self._index[dim]
        return keys

    def coalesce(self) -> SparseTensor:
        """The tensor with its indices in order and duplicates added up."""
        if self._coalesced:
            return self
        kept, places = distinct.unique(self._keys(), return_inverse=True)
        zeros = t.zeros((kept.shape[0], *self._value.shape[1:]), dtype=self.dtype)
        values = t.index_add(zeros, 0, places, self._value)
        return SparseTensor(self._coordinates(kept), values, self.shape, True)

    def _coordinates(self, keys: Tensor) -> Tensor:
        """The coordinates of numbers in row-major order."""
        columns = []
        for dim in reversed(range(self.sparse_dim())):
            rest = t.div(keys, max(self.shape[dim], 1), rounding_mode="floor")
            columns.append(keys - rest * self.shape[dim])
            keys = rest
        if not columns:
            return t.zeros((0, keys.shape[0]), dtype=dtypes.int64)
        return t.stack(columns[::-1], 0)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """All elements."""
        rows = prod(self.shape[: self.sparse_dim()])
        zeros = t.zeros((rows, *self._value.shape[1:]), dtype=self.dtype)
        found = t.index_add(zeros, 0, self._keys(), self._value).reshape(tuple(self.shape))
        return found if dtype is None else found.to(dtype)

    def to_sparse(self, *arguments: Any, **named: Any) -> SparseTensor:
        """The tensor itself."""
        return self

    to_sparse_coo = to_sparse

    def to_sparse_csr(self, dense_dim: int | None = None) -> Any:
        """The matrix by rows."""
        from flambeau.sparse.csr import of_coordinates

        return of_coordinates(self)

    def _with_values(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._index, values, self.shape, self._coalesced)

    def to(self, *arguments: Any, **named: Any) -> SparseTensor:
        """The tensor with values of another dtype or on another device."""
        values = self._value.to(*arguments, **named)
        return self if values is self._value else self._with_values(values)

    def type(self, dtype: Any = None, *arguments: Any, **named: Any) -> Any:
        """Its old type's name, or the tensor in another dtype."""
        if dtype is None:
            return self._value.type().replace("torch.", "torch.sparse.")
        return self._with_values(self._value.type(dtype))

    def cpu(self) -> SparseTensor:
        """The tensor itself."""
        return self

    def cuda(self, *arguments: Any, **named: Any) -> SparseTensor:
        """torch's error: there is no such device here."""
        return self._with_values(self._value.cuda(*arguments, **named))

    def detach(self) -> SparseTensor:
        """The tensor without history."""
        return self._with_values(self._value.detach())

    def detach_(self) -> SparseTensor:
        """The tensor itself, taken out of its graph."""
        self._value = self._value.detach()
        return self

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy."""
        made = self._with_values(t.clone(self._value))
        made._index = t.clone(self._index)
        return made

    def __deepcopy__(self, memo: Any) -> SparseTensor:
        return self.detach().clone().requires_grad_(self.requires_grad)

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Let the values want a gradient."""
        self._value.requires_grad_(requires_grad)
        return self

    def zero_(self) -> SparseTensor:
        """Forget all stored elements."""
        return self.hold(self._index[:, :0], self._value.detach()[:0], True)

    def hold(
        self, indices: Tensor, values: Tensor, is_coalesced: bool, shape: Any = None
    ) -> SparseTensor:
        """Store these elements from now on: a write in place, in the tensor's own dtype.

        Raises   RuntimeError: the tensor is a leaf that wants a gradient, in grad mode."""
        if is_grad_enabled():
            check_writable(self._value)
        self._index, self._coalesced = indices, is_coalesced
        self._value = values.to(self.dtype)
        if shape is not None:
            self.shape = Size(shape)
            self._layout = _Shape(self)
        return self

    def unsqueeze(self, dim: int) -> SparseTensor:
        """One more dim of coordinates, of size 1, or one more of the values."""
        dim = wrap_dim(dim, self.ndim + 1)
        shape = (*self.shape[:dim], 1, *self.shape[dim:])
        count = self.sparse_dim()
        if dim > count:
            values = self._value.unsqueeze(dim - count + 1)
            return SparseTensor(self._index, values, shape, self._coalesced)
        columns = [self._index[each] for each in range(count)]
        columns.insert(dim, t.zeros((self._nnz(),), dtype=dtypes.int64))
        return SparseTensor(t.stack(columns, 0), self._value, shape, self._coalesced)

    def permute(self, *dims: Any) -> SparseTensor:
        """The dims in another order; those of coordinates stay before those of values."""
        order = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        if len(order) != self.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the "
                f"length of the desired ordering of dimensions i.e. input.dim() = {self.ndim} is "
                f"not equal to len(dims) = {len(order)}"
            )
        order = [wrap_dim(dim, self.ndim) for dim in order]
        if len(set(order)) != self.ndim:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        count = self.sparse_dim()
        if sorted(order[:count]) != list(range(count)):
            raise RuntimeError(
                "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
                "allowed.Please use to_dense() first"
            )
        index = t.stack([self._index[dim] for dim in order[:count]], 0)
        own = [0, *(dim - count + 1 for dim in order[count:])]
        values = self._value if own == sorted(own) else self._value.permute(own)
        shape = [self.shape[dim] for dim in order]
        same = order[:count] == list(range(count))
        return SparseTensor(index, values, shape, self._coalesced and same)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two dims exchanged."""
        dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
        count = self.sparse_dim()
        if dim0 >= count or dim1 >= count:
            raise RuntimeError(
                "sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                f"{count}, d0: {dim0}, d1: {dim1}"
            )
        order = list(range(self.ndim))
        order[dim0], order[dim1] = dim1, dim0
        return self if dim0 == dim1 else self.permute(order)

    def t(self) -> SparseTensor:
        """The transpose of a matrix."""
        if self.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
                f"{self.sparse_dim()} sparse and {self.dense_dim()} dense dimensions"
            )
        return self if self.ndim < 2 else self.transpose(0, 1)

    T = property(t)
    mT = property(t)  # noqa: N815 - torch's name

    def _with_rows(self, chosen: Any, dim: int, index: Any = None) -> SparseTensor:
        """Only the stored elements that `chosen` names, without `dim` or with its `index`."""
        columns = [self._index[n].index_select(0, chosen) for n in range(self.sparse_dim())]
        shape = list(self.shape)
        if index is None:
            del columns[dim], shape[dim]
        else:
            columns[dim], shape[dim] = index
        kept = t.stack(columns, 0)
        return SparseTensor(kept, self._value.index_select(0, chosen), shape, self._coalesced)

    def index_select(self, dim: int, index: Any) -> SparseTensor:
        """Places of a dim of coordinates, in the order asked for."""
        dim = wrap_dim(dim, self.ndim)
        if dim >= self.sparse_dim():
            values = self._value.index_select(dim - self.sparse_dim() + 1, index)
            shape = (*self.shape[:dim], index.shape[0], *self.shape[dim + 1 :])
            return SparseTensor(self._index, values, shape, self._coalesced)
        outside = first_outside(index, 0, self.shape[dim])
        if outside is not None:
            raise IndexError(
                f"index_select(): index contains {outside} that is out of range for tensor of size "
                f"{list(self.shape)} at dimension {dim}"
            )
        pairs = forms.nonzero(index.unsqueeze(1) == self._index[dim].unsqueeze(0))
        found = self._with_rows(pairs[:, 1], dim, (pairs[:, 0], index.shape[0]))
        found._coalesced = False
        return found

    def select(self, dim: int, index: int) -> Any:
        """One place of a dim of coordinates, without the dim."""
        dim = wrap_dim(dim, self.ndim)
        size = self.shape[dim]
        if not -size <= index < size:
            raise IndexError(
                f"select(): index {index} out of range for tensor of size {list(self.shape)} at "
                f"dimension {dim}"
            )
        if dim >= self.sparse_dim():
            values = self._value.select(dim - self.sparse_dim() + 1, index)
            shape = (*self.shape[:dim], *self.shape[dim + 1 :])
            return SparseTensor(self._index, values, shape, self._coalesced)
        chosen = forms.nonzero(self._index[dim] == index % size)[:, 0]
        if self.sparse_dim() == 1:
            return self._value.index_select(0, chosen).sum(0)
        return self._with_rows(chosen, dim)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(each, int) for each in keys):
            raise not_for_sparse("as_strided")
        if len(keys) > self.ndim:
            raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
        found: Any = self
        for each in keys:
            found = found.select(0, each)
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        if name.startswith("is_"):
            return getattr(self._value, name)

        def refused(*arguments: Any, **named: Any) -> Any:
            raise not_for_sparse(name)

        return refused

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        return bool(self.to_dense())

    def item(self) -> Any:
        """The one element as a number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.to_dense().item()

    def numpy(self) -> Any:
        """torch's error: there is no array to share."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def backward(self, *arguments: Any, **named: Any) -> None:
        """The gradient of the values."""
        self._value.backward(*arguments, **named)

    def __repr__(self) -> str:
        parts = []
        for name, part in (("indices=", self._index), ("values=", self._value.detach())):
            pad = " " * (7 + len(name))
            parts.append(name + part_text(part).replace("\n", "\n" + pad).replace(pad + "\n", "\n"))
        tail = f"size={tuple(self.shape)}, nnz={self._nnz()}"
        element = "" if self.dtype in _UNSAID else f", dtype={self.dtype}"
        grad = ", requires_grad=True" if self.requires_grad and self.is_leaf else ""
        if not self.is_leaf:
            grad = f", grad_fn=<{type(self.grad_fn).__name__}>"
        tail += f"{element}, layout=torch.sparse_coo{grad}"
        return "tensor(" + ",\n       ".join([*parts, tail]) + ")"


_UNSAID = (dtypes.float32, dtypes.int64, dtypes.bool_)


def part_text(part: Tensor) -> str:
    """A part of a sparse tensor as it is shown: without its dtype."""
    if not part.numel():
        return f"tensor([], size={tuple(part.shape)})"
    return printing.repr_of(part).replace(f", dtype={part.dtype})", ")")


def not_for_sparse(name: str) -> NotImplementedError:
    """torch's error of an operator that sparse tensors have not."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend."
    )
