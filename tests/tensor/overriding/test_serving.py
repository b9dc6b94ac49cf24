"""Functions as programs know them: factories are seen by modes, and stay what they were."""

import inspect

import flambeau as torch
from flambeau.overrides import TorchFunctionMode


class OnMeta(TorchFunctionMode):
    """Makes everything on the meta device."""

    def __init__(self, known):
        self.known = known

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.known or func is torch.full:
            kwargs = {**(kwargs or {}), "device": "meta"}
        return func(*args, **(kwargs or {}))


def test_modes_change_factories():
    known = {torch.ones, torch.rand}
    with OnMeta(known):
        made = torch.ones(2), torch.full((2,), 1.0), torch.rand(3), torch.zeros(1)
    assert [each.device.type for each in made] == ["meta", "meta", "meta", "cpu"]
    assert torch.ones in known
    assert torch.ones(2).device.type == "cpu"


def test_signatures_and_documents_are_kept():
    relu = torch.nn.functional.relu
    assert list(inspect.signature(relu).parameters) == ["input", "inplace"]
    assert relu.__name__ == "relu"
    assert relu.__doc__
    assert torch.functional.einsum is torch.einsum
