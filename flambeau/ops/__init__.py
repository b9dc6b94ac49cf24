"""What every operator means: one class each, by family. Importing this fills the REGISTRY."""

from flambeau.ops import (
    contraction,
    creation,
    elementwise,
    indexing,
    reduction,
    rows,
    update,
    views,
)
from flambeau.ops.define import REGISTRY

__all__ = [
    "REGISTRY", "contraction", "creation", "elementwise", "indexing", "reduction", "rows",
    "update", "views",
]  # fmt: skip
