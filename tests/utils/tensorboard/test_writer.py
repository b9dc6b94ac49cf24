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


@needs_package
def test_a_curve_counts_at_each_threshold(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve(
            "pr", torch.tensor([0, 1, 1]), torch.tensor([0.1, 0.8, 0.6]), 3, num_thresholds=5
        )
    (event,) = read(tmp_path).Tensors("pr")
    assert event.step == 3
    table = torch.tensor(list(event.tensor_proto.float_val)).reshape(6, 5)
    assert table[:4].tolist() == [
        [2, 2, 2, 1, 0],  # true positives
        [1, 0, 0, 0, 0],  # false positives
        [0, 1, 1, 1, 1],  # true negatives
        [0, 0, 0, 1, 2],  # false negatives
    ]
    assert table[4].tolist() == pytest.approx([2 / 3, 1, 1, 1, 0])
    assert table[5].tolist() == [1, 1, 1, 0.5, 0]


@needs_package
def test_embeddings_are_the_projectors_files(tmp_path):
    rows = torch.tensor([[1.0, 2.5], [3.0, 4.0], [5.0, 6.0]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(rows, ["a", "b", "c"], torch.ones(3, 3, 4, 4), 2, "x/y")
        writer.add_embedding(rows, [[1, 2]] * 3, metadata_header=["h", "i"])
        with pytest.raises(AssertionError, match="#labels should equal with #data points"):
            writer.add_embedding(rows, ["a"])
        with pytest.raises(AssertionError, match="mat should be 2D"):
            writer.add_embedding(rows[0])
    first, second = tmp_path / "00002" / "x%2fy", tmp_path / "00000" / "default"
    assert (first / "tensors.tsv").read_text() == "1.0\t2.5\n3.0\t4.0\n5.0\t6.0\n"
    assert (first / "metadata.tsv").read_text() == "a\nb\nc\n"
    assert (first / "sprite.png").read_bytes().startswith(b"\x89PNG")
    assert (second / "metadata.tsv").read_text() == "h\ti\n" + "1\t2\n" * 3
    listed = (tmp_path / "projector_config.pbtxt").read_text()
    assert listed.count("embeddings {") == 2
    assert 'image_path: "00002/x%2fy/sprite.png"' in listed
