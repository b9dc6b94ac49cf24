"""Files: tensors and state dicts in PyTorch's zip format, both ways."""

from flambeau.base.missing import module_getattr
from flambeau.io.reading import load
from flambeau.io.writing import save

__all__ = ["load", "save"]

__getattr__ = module_getattr(__name__)
