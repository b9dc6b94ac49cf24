"""What every operator means: one class each, by family. Importing this fills the REGISTRY."""

from flambeau.ops import creation, elementwise, indexing, reduction, views
from flambeau.ops.define import REGISTRY

__all__ = ["REGISTRY", "creation", "elementwise", "indexing", "reduction", "views"]
