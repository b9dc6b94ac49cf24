"""torch.sparse: two-dimensional COO matrices with their product and gradient.

Keeps     one format; what it cannot do it refuses by name.
Touches   coo.
Not here  the matrices (coo.py)."""

from __future__ import annotations

from typing import Any

from flambeau.base import dtypes
from flambeau.base.missing import module_getattr
from flambeau.sparse.coo import SparseTensor, mm, sparse_coo_tensor, spmm, sum, to_sparse

__all__ = [
    "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "SparseTensor", "mm", "sparse_coo_tensor", "spmm", "sum",
    "to_sparse",
]  # fmt: skip


def _constructor(name: str, element: Any) -> Any:
    def make(indices: Any, values: Any, size: Any = None) -> SparseTensor:
        return sparse_coo_tensor(indices, values.to(element), size)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A matrix of {element} from its indices, values and size."
    return make


FloatTensor = _constructor("FloatTensor", dtypes.float32)
DoubleTensor = _constructor("DoubleTensor", dtypes.float64)
HalfTensor = _constructor("HalfTensor", dtypes.float16)
LongTensor = _constructor("LongTensor", dtypes.int64)
IntTensor = _constructor("IntTensor", dtypes.int32)
ShortTensor = _constructor("ShortTensor", dtypes.int16)
CharTensor = _constructor("CharTensor", dtypes.int8)
ByteTensor = _constructor("ByteTensor", dtypes.uint8)

__getattr__ = module_getattr(__name__)
