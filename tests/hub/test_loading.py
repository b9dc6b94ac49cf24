"""torch.hub: files by address, with their hashes, kept; models of a folder."""

import hashlib
import urllib.error

import pytest

import flambeau as torch
from flambeau import hub
from flambeau.hub import loading
from flambeau.utils import model_zoo


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "_folder", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    return tmp_path


def weights(folder, named):
    """Address of a state dict whose file's name ends in its hash."""
    path = folder / "weights.pth"
    torch.save({"weight": torch.arange(3.0)}, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return path.rename(folder / named.format(digest[:8])).as_uri()


def test_weights_are_downloaded_once(folder, capsys):
    url = weights(folder, "net-{}.pth")
    for number in range(2):
        state = hub.load_state_dict_from_url(url, check_hash=True, progress=False)
        assert state["weight"].tolist() == [0, 1, 2]
        assert capsys.readouterr().err.startswith("Downloading: ") == (number == 0)
    kept = folder / "home" / "hub" / "checkpoints"
    assert [each.name for each in kept.iterdir()] == [url.rpartition("/")[2]]
    assert model_zoo.load_url is hub.load_state_dict_from_url
    assert hub.urlparse(url).path.endswith(".pth")  # programs import it from here


def test_a_folder_of_ones_own(folder):
    hub.set_dir(folder / "mine")
    url = weights(folder, "net.pth")
    hub.load_state_dict_from_url(url, file_name="other.pth", map_location="cpu")
    assert (folder / "mine" / "checkpoints" / "other.pth").exists()
    assert hub.get_dir() == str(folder / "mine")


def test_what_is_not_whole_is_not_kept(folder):
    url = weights(folder, "net-00000000.pth")
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "00000000", got "'):
        hub.load_state_dict_from_url(url, check_hash=True)
    with pytest.raises(urllib.error.URLError):
        hub.download_url_to_file(url + "x", str(folder / "absent"))
    kept = folder / "home" / "hub" / "checkpoints"
    assert list(kept.iterdir()) == []
    assert not list(folder.glob("absent*"))


def test_models_of_a_folder(folder):
    (folder / "sizes.py").write_text("WIDTH = 3")
    (folder / "hubconf.py").write_text(
        "import flambeau as torch\nfrom sizes import WIDTH as _width\n"
        "def layer(outputs, bias=True):\n    'A layer.'\n"
        "    return torch.nn.Linear(_width, outputs, bias)\n"
    )
    where = str(folder)
    made = hub.load(where, "layer", 2, source="local", bias=False)
    assert repr(made) == "Linear(in_features=3, out_features=2, bias=False)"
    assert hub.list(where, source="local") == ["layer"]
    assert hub.help(where, "layer", source="local") == "A layer."
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(where, "other", source="local")
    with pytest.raises(ValueError, match='Unknown source: "web"'):
        hub.load(where, "layer", source="web")
    with pytest.raises(RuntimeError, match="fetches no code from GitHub"):
        hub.load("pytorch/vision", "resnet18")
