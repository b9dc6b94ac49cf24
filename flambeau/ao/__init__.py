"""torch.ao: what models say to a quantizer, here to none.

Keeps     a model that marks where it would be quantized runs as it does before it is.
Touches   the files beside it, lazily.
Not here  quantized dtypes: there are none."""

from __future__ import annotations

from flambeau.base.missing import lazy_names

_MODULES = ("quantization",)

__getattr__, __dir__ = lazy_names(__name__, {}, _MODULES)
