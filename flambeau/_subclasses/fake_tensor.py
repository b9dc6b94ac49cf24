"""torch._subclasses.fake_tensor: what libraries ask to see whether they are being traced.

Keeps     no tensor is fake: programs are run.
Touches   tensor.
Not here  tensors of device "meta"."""

from __future__ import annotations

from flambeau.base.missing import module_getattr
from flambeau.tensor import Tensor

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor(Tensor):
    """A tensor without data that a tracer made: there are none."""


def is_fake(x: object) -> bool:
    """Whether a value is a tensor that a tracer made.

    >>> import flambeau as torch
    >>> is_fake(torch.ones(2))
    False
    """
    return isinstance(x, FakeTensor)


__getattr__ = module_getattr(__name__)
