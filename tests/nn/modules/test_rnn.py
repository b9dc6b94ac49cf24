"""Recurrent layers: what subclasses call to check and to reorder, as torch names it."""

import pytest

import flambeau as torch
from flambeau import debug, nn


def test_layers_say_which_states_they_expect():
    layer, x = nn.LSTM(5, 4, 2, bidirectional=True, proj_size=3), torch.zeros(7, 2, 5)
    assert layer.get_expected_hidden_size(x, None) == (4, 2, 3)
    assert layer.get_expected_cell_size(x, None) == (4, 2, 4)
    assert layer.get_expected_hidden_size(x[:, 0], torch.tensor([6, 1])) == (4, 6, 3)
    layer.check_forward_args(x, (torch.zeros(4, 2, 3), torch.zeros(4, 2, 4)), None)
    with pytest.raises(
        RuntimeError, match=r"Expected hidden\[1\] size \(4, 2, 4\), got \[4, 2, 3\]"
    ):
        layer.check_forward_args(x, (torch.zeros(4, 2, 3), torch.zeros(4, 2, 3)), None)
    with pytest.raises(RuntimeError, match="input must have 2 dimensions, got 3"):
        layer.check_input(x, torch.tensor([7]))


def test_states_are_put_in_another_order():
    order, state = torch.tensor([1, 0]), torch.tensor([[[1.0], [2.0]]])
    assert nn.GRU(1, 1).permute_hidden(state, order).tolist() == [[[2.0], [1.0]]]
    assert nn.GRU(1, 1).permute_hidden(state, None) is state
    both = nn.LSTM(1, 1).permute_hidden((state, state), order)
    assert [each.tolist() for each in both] == [[[[2.0], [1.0]]]] * 2


def test_packed_sequences_are_converted_and_moved():
    packed = nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
    kinds = ("double", "half", "long", "int", "short", "char", "byte")
    dtypes = [getattr(packed, kind)().data.dtype for kind in kinds]
    assert dtypes == [getattr(torch, kind) for kind in (*kinds[:5], "int8", "uint8")]
    assert packed.cpu() is packed.to(torch.float32) is packed.float() is packed
    assert not packed.is_pinned()
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        packed.cuda()


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_a_packed_sequence_is_as_good_as_alone(mode, is_bidirectional):
    """Padding behind the ends shows in no bit of outputs, states and gradients."""
    layer = getattr(torch.nn, mode)(3, 4, bidirectional=is_bidirectional)
    inputs = [torch.randn(n, 3) for n in (2, 70, 1, 9)]
    packed = torch.nn.utils.rnn.pack_sequence(inputs, enforce_sorted=False)
    made, states = layer(packed)
    rows, lengths = torch.nn.utils.rnn.pad_packed_sequence(made)
    assert lengths.tolist() == [2, 70, 1, 9]
    for n, each in enumerate(inputs):
        alone, last = layer(each)
        assert torch.equal(rows[: len(each), n], alone)
        for one, other in zip(
            *(x if mode == "LSTM" else (x,) for x in (states, last)), strict=True
        ):
            assert torch.equal(one[:, n], other)
    assert not rows[2:, 0].any()


def test_packed_sequences_take_few_operators():
    layer = torch.nn.LSTM(3, 4)
    x = torch.randn(5, 30, 3, requires_grad=True)
    with debug.counts() as seen:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, [30, 20, 9, 9, 2], batch_first=True)
        torch.nn.utils.rnn.pad_packed_sequence(layer(packed)[0])[0].sum().backward()
        x.grad.sum().item()
    assert seen.records < 60
    assert x.grad[:, 0].any(-1).all()
    assert not x.grad[1, 20:].any()


def test_lengths_of_any_dtype_pack():
    for kind in (torch.int32, torch.float32, torch.int64):
        packed = nn.utils.rnn.pack_padded_sequence(
            torch.ones(3, 2, 1), torch.tensor([3, 2]).to(kind)
        )
        assert packed.batch_sizes.tolist() == [2, 2, 1]
    with pytest.raises(RuntimeError, match="should be a 1D CPU int64 tensor, but got 2D cpu Long"):
        nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), torch.tensor([[3, 2]]))
    with pytest.raises(IndexError, match="Dimension out of range"):
        nn.utils.rnn.pack_padded_sequence(torch.ones(3), [3])


@pytest.mark.parametrize("batch_sizes", [[1, 2], [2, 2]])
def test_batch_sizes_that_do_not_fit_are_refused(batch_sizes):
    packed = nn.utils.rnn.PackedSequence(torch.ones(3, 3), torch.tensor(batch_sizes))
    for call in (nn.LSTM(3, 4), nn.RNN(3, 4), nn.utils.rnn.pad_packed_sequence):
        with pytest.raises(RuntimeError, match="batch_sizes do not fit the data"):
            call(packed)


def test_rows_behind_a_packed_sequence_are_not_padding():
    data = torch.tensor([[1.0], [2.0], [3.0], [9.0]])
    packed = nn.utils.rnn.PackedSequence(data, torch.tensor([2, 1]))
    padded, _ = nn.utils.rnn.pad_packed_sequence(packed)
    assert padded.flatten().tolist() == [1.0, 2.0, 3.0, 0.0]
    layer = nn.GRU(1, 2)
    short = nn.utils.rnn.PackedSequence(data[:3], torch.tensor([2, 1]))
    assert torch.equal(layer(packed)[0].data, layer(short)[0].data)
