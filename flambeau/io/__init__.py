"""Files: tensors and state dicts in PyTorch's zip format, both ways."""

from flambeau.io.reading import load
from flambeau.io.writing import save

__all__ = ["load", "save"]
