"""SummaryWriter: what is logged can be read back, and a missing package is named."""

import importlib.util
import sys

import pytest

import flambeau as torch
from flambeau.utils.tensorboard import SummaryWriter

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="the package tensorboard is absent"
)


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


@needs_package
def test_scalars_come_back(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(0.5 * step), step)
    events = read(tmp_path).Scalars("loss")
    assert [(event.step, event.value) for event in events] == [(0, 0.0), (1, 0.5), (2, 1.0)]


@needs_package
def test_a_histogram_counts_every_value(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("weights", torch.linspace(-1, 1, 11), 0)
    (event,) = read(tmp_path).Histograms("weights")
    found = event.histogram_value
    assert (found.min, found.max, found.num, sum(found.bucket)) == (-1, 1, 11, 11)


@needs_package
def test_an_image_is_a_png(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("picture", torch.rand(3, 4, 5))
    (event,) = read(tmp_path).Images("picture")
    assert (event.height, event.width) == (4, 5)
    assert event.encoded_image_string.startswith(b"\x89PNG")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in list(sys.modules):
        if name.startswith("tensorboard."):
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboard"):
        SummaryWriter(tmp_path)
