"""torch.compiler: what is marked runs as it did."""

import pytest

import flambeau as torch


def test_marked_functions_run_as_they_did():
    @torch.compiler.disable
    def shown(x):
        return x + 1

    @torch.compiler.disable(recursive=False)
    def kept(x):
        assert not torch.compiler.is_compiling()
        return torch.compiler.allow_in_graph(shown)(x) * 2

    with torch.compiler.set_stance("force_eager"):
        assert torch.compile(kept, mode="max-autotune")(torch.ones(2)).tolist() == [4.0, 4.0]
    torch.compiler.reset()
    assert torch.compiler.compile is torch.compile


def test_names_that_are_not_there_say_so():
    with pytest.raises(AttributeError, match=r"has no torch\.compiler\.list_backends yet"):
        torch.compiler.list_backends  # noqa: B018
