"""Whole objects in files: classes the program has, never a file's own code."""

import argparse
import io
import pickle
import zipfile

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.serialization import add_safe_globals, clear_safe_globals, safe_globals


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.MultiheadAttention(4, 2))
        self.last = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    def forward(self, x):
        return self.last(self.body[0](x))


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


def test_models_come_back_where_that_was_asked_for():
    model = Net().eval()
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(saved(model))
    again = torch.load(saved(model), weights_only=False)
    x = torch.randn(1, 3, 4)
    assert type(again) is Net
    assert torch.equal(again(x), model(x))


def test_layers_are_named_as_torch_names_them():
    with zipfile.ZipFile(saved(Net())) as archive:
        data = archive.read("archive/data.pkl")
    for name in (
        b"torch.nn.modules.linear\nLinear", b"torch.nn.modules.activation\nMultiheadAttention",
        b"torch.nn.functional\nrelu",
    ):  # fmt: skip
        assert name in data
    assert b"flambeau" not in data


def test_arrays_and_plain_values():
    given = {
        "array": np.arange(6.0).reshape(2, 3), "none": np.zeros((0, 3), "int32"),
        "number": np.float32(2), "settings": argparse.Namespace(a=1),
    }  # fmt: skip
    found = torch.load(saved(given), weights_only=False)
    assert found["array"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert (found["none"].shape, found["none"].dtype) == ((0, 3), np.int32)
    assert (found["number"], found["settings"].a) == (2.0, 1)


def test_the_environment_decides_where_the_program_does_not(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert isinstance(torch.load(saved(nn.ReLU())), nn.ReLU)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(saved(1))


class Touch:
    """Would run code if it were made the way its pickle asks."""

    def __reduce__(self):
        return (exec, ("raise SystemExit",))


def test_a_files_own_code_is_never_run():
    for weights_only in (True, False):
        with pytest.raises(pickle.UnpicklingError):
            torch.load(saved(Touch()), weights_only=weights_only)
    with pytest.raises(pickle.UnpicklingError, match="never run"):
        torch.load(saved(Touch()), weights_only=False)


def test_added_types():
    class_of = argparse.Namespace
    file = saved(class_of(a=2))
    with safe_globals([class_of]):
        assert torch.load(file).a == 2
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(class_of(a=2)))
    add_safe_globals([(class_of, "argparse.Namespace")])
    assert torch.load(saved(class_of(a=3))).a == 3
    clear_safe_globals()


def test_classes_that_lie_elsewhere_in_torch():
    """Files name torch's places; what they name is found here again."""
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    schedules = torch.optim.lr_scheduler
    values = {
        b"torch.nn.modules.container\nParameterList": nn.ParameterList([weight]),
        b"torch.optim.lr_scheduler\nOneCycleLR": schedules.OneCycleLR(optimizer, 0.1, 5),
        b"torch.optim.lr_scheduler\nStepLR": schedules.StepLR(optimizer, 2),
    }
    for name, value in values.items():
        with zipfile.ZipFile(saved(value)) as archive:
            assert name in archive.read("archive/data.pkl")
        assert type(torch.load(saved(value), weights_only=False)) is type(value)


def test_recurrent_layers_have_what_torchs_need():
    layer = nn.LSTM(2, 3)
    assert len(layer.__getstate__()["_flat_weights"]) == 4
    again = torch.load(saved(layer), weights_only=False)
    assert "_flat_weights" not in vars(again)
    x = torch.randn(4, 1, 2)
    assert torch.equal(again(x)[0], layer(x)[0])


def test_what_a_file_asks_for(tmp_path):
    """Names that loading would refuse, of files in either format."""
    from flambeau.serialization import get_unsafe_globals_in_checkpoint

    value = [Net(), nn.Parameter(torch.ones(1)), argparse.Namespace(a=1), np.ones(2)]
    found = get_unsafe_globals_in_checkpoint(saved(value))
    assert f"{__name__}.Net" in found
    assert "torch.nn.modules.linear.Linear" in found
    assert "argparse.Namespace" in found
    assert not any("Parameter" in name or "_rebuild" in name for name in found)
    with safe_globals([Net]):
        assert f"{__name__}.Net" not in get_unsafe_globals_in_checkpoint(saved(value))
    assert get_unsafe_globals_in_checkpoint(saved(torch.ones(1))) == []
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by torch"):
        get_unsafe_globals_in_checkpoint(io.BytesIO(pickle.dumps(1)))
