"""torch.sparse: tensors of which only some elements are stored, by coordinates or by rows.

Keeps     two formats, COO of any dims and CSR of matrices; what they cannot do they refuse.
Touches   the files beside it.
Not here  any logic."""

from __future__ import annotations

from flambeau.base import dtypes
from flambeau.base.missing import module_getattr
from flambeau.sparse.coo import SparseTensor
from flambeau.sparse.csr import SparseRows, sparse_csr_tensor
from flambeau.sparse.making import (
    old_constructor,
    sparse_coo_tensor,
    sparse_mask,
    to_sparse,
    to_sparse_coo,
    to_sparse_csr,
)
from flambeau.sparse.products import addmm, log_softmax, mm, softmax, spmm, sum
from flambeau.sparse.serving import torch_function

__all__ = [
    "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "SparseRows", "SparseTensor", "addmm", "log_softmax", "mm",
    "softmax", "sparse_coo_tensor", "sparse_csr_tensor", "sparse_mask", "spmm", "sum", "to_sparse",
    "to_sparse_coo", "to_sparse_csr", "torch_function",
]  # fmt: skip

FloatTensor = old_constructor("FloatTensor", dtypes.float32)
DoubleTensor = old_constructor("DoubleTensor", dtypes.float64)
HalfTensor = old_constructor("HalfTensor", dtypes.float16)
LongTensor = old_constructor("LongTensor", dtypes.int64)
IntTensor = old_constructor("IntTensor", dtypes.int32)
ShortTensor = old_constructor("ShortTensor", dtypes.int16)
CharTensor = old_constructor("CharTensor", dtypes.int8)
ByteTensor = old_constructor("ByteTensor", dtypes.uint8)

__getattr__ = module_getattr(__name__)
