"""A missing name says so, says what is near, and costs nothing while nobody reads it."""

import importlib
import importlib.util
import pickle
import sys
from types import ModuleType

import pytest

from flambeau.base import missing


@pytest.fixture
def module(monkeypatch):
    """A module of flambeau's with a few names and the helper installed."""
    made = ModuleType("flambeau.made_up")
    made.Conv3d = made.Conv2d = made.Linear = object()
    made.__getattr__ = missing.module_getattr(made.__name__)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_attribute_error_names_torch_and_what_is_near(module):
    with pytest.raises(AttributeError) as caught:
        _ = module.Conv3D
    assert type(caught.value) is AttributeError
    lines = str(caught.value).splitlines()
    assert lines[0] == "module 'torch.made_up' has no attribute 'Conv3D'"
    assert "no torch.made_up.Conv3D yet" in lines[1]
    assert "near it   torch.made_up.Conv3d, torch.made_up.Conv2d" in lines[2]


def test_hasattr_is_false_and_getattr_takes_a_default(module):
    assert not hasattr(module, "Conv3D")
    assert getattr(module, "Conv3D", None) is None
    assert hasattr(module, "Conv3d")


def test_from_import_raises_import_error_with_the_same_help(module):
    with pytest.raises(ImportError) as caught:
        from flambeau.made_up import Linea  # noqa: F401
    assert type(caught.value) is ImportError
    assert "near it   torch.made_up.Linear" in str(caught.value)
    assert caught.value.name == "flambeau.made_up"


def test_from_import_of_what_is_there(module):
    from flambeau.made_up import Linear

    assert Linear is module.Linear


def test_near_names_are_not_looked_for_until_the_message_is_read(module, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("hasattr looked for near names")

    monkeypatch.setattr(missing, "near_names", refuse)
    assert not hasattr(module, "Conv3D")


def test_names_a_lazy_module_offers_count_as_near():
    lazy = missing.module_getattr("flambeau.made_up_lazily", names=["scaled_dot_product"])
    with pytest.raises(AttributeError, match=r"made_up_lazily\.scaled_dot_product"):
        lazy("scaled_dot_produkt")


def test_a_name_that_is_elsewhere_is_pointed_to(module, monkeypatch):
    other = ModuleType("flambeau.nn.functional")
    other.silu_twice = object()
    monkeypatch.setitem(sys.modules, other.__name__, other)
    with pytest.raises(AttributeError, match=r"it is at  torch\.nn\.functional\.silu_twice"):
        _ = module.silu_twice


def test_the_error_can_be_pickled(module):
    with pytest.raises(AttributeError) as caught:
        _ = module.Conv3D
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_missing_module_is_module_not_found():
    error = missing.missing_module("torch.utils.dada", ["data", "checkpoint"])
    assert isinstance(error, ModuleNotFoundError)
    assert error.name == "torch.utils.dada"
    assert "near it   torch.utils.data" in str(error)


@pytest.mark.parametrize("name", ["torch.export", "torch.ao.nn.quantized"])
def test_a_whole_module_that_is_not_there_says_what_to_do(name):
    text = str(missing.missing_module(name, ["sub"]))
    assert "\n  because   " in text
    assert "\n  fix       " in text
    assert "near it" not in text


def test_so_does_asking_for_it_as_an_attribute():
    module = importlib.import_module("flambeau")
    with pytest.raises(AttributeError, match=r"(?s)has no torch\.export yet.*run, not traced"):
        _ = module.export
    assert not hasattr(module, "_inductor")


ROOMS = ["", "nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler", "utils", "utils.data",
         "autograd", "random", "linalg", "fft", "special", "func", "io", "version"]  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_room_words_its_missing_names(room):
    name = f"flambeau.{room}".rstrip(".")
    if importlib.util.find_spec(name) is None:
        return  # the room itself is not there yet
    module = importlib.import_module(name)
    with pytest.raises(AttributeError, match=r"\n  flambeau  has no torch.*no_such_name yet"):
        _ = module.no_such_name
