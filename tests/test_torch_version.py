"""A version string compares as PEP 440 orders versions."""

import pytest

from flambeau.torch_version import TorchVersion, __version__

IN_ORDER = [
    "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2",
    "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0",
    "1.0+abc.5", "1.0+abc.7", "1.0+5", "1.0.post456.dev34", "1.0.post456", "1.1.dev1", "1!0.1",
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(IN_ORDER) - 1))
def test_order_of_pep_440(at):
    low, high = TorchVersion(IN_ORDER[at]), TorchVersion(IN_ORDER[at + 1])
    assert low < high
    assert high > low
    assert low <= high
    assert high >= low
    assert low != high


def test_what_programs_write():
    assert __version__ >= (2, 1)
    assert __version__ > "1.13.1"
    assert __version__ >= "2.13"
    assert __version__ < (2, 14)
    assert __version__ == "2.13.0+flambeau.0.1"
    assert __version__.split("+")[0] == "2.13.0"
    assert TorchVersion("1.10.0") == "1.10"
    assert TorchVersion("2.9") < "2.10"


def test_against_text_that_is_no_version():
    assert __version__ != "parrot"
    assert (__version__ < "parrot") is (str(__version__) < "parrot")
    assert {__version__: 1}["2.13.0+flambeau.0.1"] == 1
    assert __version__ != None  # noqa: E711
