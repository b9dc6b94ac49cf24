"""Settings of saving and loading."""

import io
import mmap

import pytest

import flambeau as torch


def test_what_may_be_set_and_what_not():
    settings = torch.serialization
    assert settings.get_default_load_endianness() is None
    settings.set_default_load_endianness(settings.LoadEndianness.BIG)
    assert settings.get_default_load_endianness() is settings.LoadEndianness.BIG
    settings.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load"):
        settings.set_default_load_endianness(3)
    with settings.set_default_mmap_options(mmap.MAP_SHARED):
        assert settings.get_default_mmap_options() == mmap.MAP_SHARED
    assert settings.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got"):
        settings.set_default_mmap_options(99)
    settings.set_crc32_options(False)
    assert not settings.get_crc32_options()
    settings.set_crc32_options(True)


def test_a_shared_mapping_writes_to_the_file(tmp_path):
    torch.save(torch.ones(20), tmp_path / "x.pt")
    torch.load(tmp_path / "x.pt", mmap=True)[0] = 5
    assert torch.load(tmp_path / "x.pt")[0].item() == 1
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        shared = torch.load(tmp_path / "x.pt", mmap=True)
        shared[0] = 5
        assert shared[0].item() == 5
        assert torch.load(tmp_path / "x.pt", mmap=True)[0].item() == 5


def test_zeros_instead_of_data():
    file = io.BytesIO()
    with torch.serialization.skip_data():
        torch.save({"a": torch.ones(3)}, file)
    file.seek(0)
    assert torch.serialization._is_zipfile(file)
    assert torch.load(file)["a"].tolist() == [0, 0, 0]
