"""Members of subclasses look for a __torch_function__; plain tensors' do while a mode is on."""

import pytest

import flambeau as torch
from flambeau.overrides import TorchFunctionMode, resolve_name


class Seen(torch.Tensor):
    """Keeps the names of what it was asked for."""

    names = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.names.append(resolve_name(func))
        return super().__torch_function__(func, types, args, kwargs)


@pytest.fixture
def tensor():
    made = torch.ones(2, 2).as_subclass(Seen)
    Seen.names.clear()
    return made


def test_setters_and_deleters_are_seen(tensor):
    tensor.requires_grad = True
    tensor.grad = torch.ones(2, 2)
    del tensor.grad
    tensor.data = torch.zeros(2, 2)
    assert Seen.names == [
        "torch.Tensor.requires_grad.__set__", "torch.Tensor.grad.__set__", None,
        "torch.Tensor.data.__set__",
    ]  # fmt: skip
    assert (tensor.requires_grad, tensor.grad, tensor.tolist()) == (True, None, [[0, 0], [0, 0]])


def test_super_reaches_what_the_subclass_overrides():
    class Doubled(Seen):
        def size(self, dim=None):
            return tuple(2 * each for each in super().size())

        @property
        def shape(self):
            return ("shape", *super().shape)

    made = torch.ones(3).as_subclass(Doubled)
    Seen.names.clear()
    assert (made.size(), made.shape) == ((6,), ("shape", 3))
    assert Seen.names == ["torch.Tensor.size", "torch.Tensor.shape.__get__"]


def test_members_of_the_class_are_tensors_own(tensor):
    assert Seen.shape.__get__ == torch.Tensor.shape.__get__
    assert torch.Tensor.size(tensor) == (2, 2)
    assert not Seen.names


def test_what_turns_it_off_is_not_asked():
    class Off(Seen):
        __torch_function__ = torch._C._disabled_torch_function_impl

    made = torch.ones(2).as_subclass(Off)
    Seen.names.clear()
    assert type(made + 1) is torch.Tensor
    assert made.shape == (2,)
    assert not Seen.names


def test_derived_with_others():
    class Mixed(dict):
        pass

    class Both(Seen, torch.nn.Parameter):
        pass

    made = Both(torch.ones(2))
    assert isinstance(made, torch.nn.Parameter)
    assert made.requires_grad
    assert type(made * 2) is torch.Tensor  # the second base turns it off
    with pytest.raises(TypeError):
        type("Clash", (Mixed, torch.Tensor), {})


class Names(TorchFunctionMode):
    """Keeps the names of what it was asked for."""

    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_members_of_plain_tensors():
    plain = torch.ones(2, 2)
    with Names() as mode:
        assert plain.shape == plain.size() == (2, 2)
        assert (len(plain), plain.dim(), plain[0][0].item()) == (2, 2, 1.0)
        plain[0] = 2
        plain.requires_grad = True
    assert mode.names == [
        "torch.Tensor.shape.__get__", "torch.Tensor.size", "torch.Tensor.__len__",
        "torch.Tensor.dim", "torch.Tensor.__getitem__", "torch.Tensor.__getitem__",
        "torch.Tensor.item", "torch.Tensor.__setitem__", "torch.Tensor.requires_grad.__set__",
    ]  # fmt: skip
    mode.names.clear()
    assert plain.shape == torch.Size([2, 2])
    assert plain[0].tolist() == [2, 2]
    assert not mode.names
