"""Types made from a description: words as attributes, made by native code alone."""

import pytest

from flambeau.devices.cpu import memory
from flambeau.engine import run, stream
from flambeau.tensor.native import library, types

pytestmark = pytest.mark.skipif(library.library() is None, reason="no native code here")


def test_blocks_show_words_and_are_not_called():
    import flambeau as torch

    x = torch.ones(7)
    for _ in range(5):
        y = x + 1
        run.flush(stream.current().segment, "a test")
    block = y._storage.block
    assert type(block) is not memory.Block
    assert (type(block).__module__, type(block).__name__) == ("flambeau", "Block")
    assert block.n_bytes == 28
    with pytest.raises(TypeError, match="cannot create"):
        type(block)()
    with pytest.raises(AttributeError, match="readonly"):
        block.address = 0


def test_a_type_without_functions():
    made = types.new_type(b"flambeau.Plain", 32, types.MADE_NATIVELY, {}, {b"word": 16})
    assert made.__basicsize__ == 32
    assert "word" in vars(made)


def test_a_successor_is_found_where_its_predecessor_was_kept():
    import flambeau as torch

    native = library.library()

    def before():
        return None

    types.EARLIER["a name of a test"] = before
    made = native.kind()
    types.succeeds(made, "a name of a test")
    del types.EARLIER["a name of a test"]
    assert made in {before: 1}
    assert made == before
    assert made != torch.add
    assert torch.add in {torch.add}
