"""Memory formats, shapes and the order in which results lie in memory."""

import operator

import pytest

import flambeau as torch

LAST = torch.channels_last


@pytest.mark.parametrize("turn", [
    lambda x: x.contiguous(memory_format=LAST), lambda x: x.to(torch.float64, memory_format=LAST),
    lambda x: x.double(memory_format=LAST), lambda x: x.to(memory_format=LAST),
    lambda x: torch.rand_like(x, memory_format=LAST), lambda x: x.clone(memory_format=LAST),
    lambda x: torch.empty(x.shape, memory_format=LAST),
])  # fmt: skip
def test_channels_last(turn):
    made = turn(torch.ones(2, 3, 4, 5))
    assert made.stride() == (60, 1, 15, 3)
    assert made.is_contiguous(memory_format=LAST)
    assert not made.is_contiguous()
    assert made.contiguous(memory_format=LAST) is made
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.ones(2, 3).contiguous(memory_format=LAST)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.empty(2, 3, memory_format=LAST)


def test_other_formats():
    turned = torch.ones(2, 3).t()
    assert turned.long(memory_format=torch.contiguous_format).stride() == (2, 1)
    assert turned.double(memory_format=torch.preserve_format).stride() == (1, 3)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contig"):
        turned.contiguous(memory_format=torch.preserve_format)
    assert not torch.tensor(0.0).is_contiguous(memory_format=LAST)


def test_results_lie_in_memory_as_torchs_do():
    turned = torch.arange(6.0).reshape(2, 3).t()
    assert turned.masked_fill(turned > 1, 0).stride() == (2, 1)
    values, indices = turned.sort(0)
    assert (values.stride(), indices.stride()) == ((1, 3), (1, 3))
    assert torch.arange(6.0)[::2].expand(2, 3).sort(1).values.stride() == (3, 1)


def test_sizes_are_ints():
    assert torch.Size([torch.tensor(2), True]) == (2, 1)
    two, one = torch.Size([2]), (1,)
    for made in (one + two, 2 * two, two + one, two * 2):
        assert type(made) is torch.Size
    for wrong in (["a"], [1.5]):
        with pytest.raises(TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 0"):
            torch.Size(wrong)
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch.Size"):
        operator.add(two, [1])


def test_new_tensors_take_their_size_by_name():
    given = torch.ones(1)
    assert given.new_zeros(size=(2,), requires_grad=True).requires_grad
    for name in ("new_zeros", "new_ones", "new_empty"):
        with pytest.raises(TypeError, match='missing 1 required positional arguments: "size"'):
            getattr(given, name)()


def test_numbers_transposed_are_themselves():
    number = torch.tensor(1 + 2j)
    assert number.mT is number
    assert number.mH.item() == number.H.item() == 1 - 2j


def test_one_number_is_written_to_elements_that_share_memory():
    row = torch.arange(4.0).reshape(1, 4)
    row.expand(3, 4).fill_(2)
    assert row.tolist() == [[2, 2, 2, 2]]
    row.expand(3, 4)[:, 1:].zero_()
    assert row.tolist() == [[2, 0, 0, 0]]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        row.expand(3, 4).fill_(torch.tensor(2.0))


def test_what_is_not_converted_keeps_its_order():
    turned = torch.ones(2, 3).t()
    assert turned.float(memory_format=torch.contiguous_format) is turned
    last = torch.ones(2, 3, 4, 5).to(memory_format=LAST)
    assert last.to(memory_format=torch.contiguous_format).is_contiguous()


def test_shapes_change_in_place_where_nothing_is_recorded():
    given = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        given.t_()
    with torch.no_grad():
        assert given.t_().shape == (3, 2)
    assert given.requires_grad
    assert torch.ones(2).sort(stable=None).values.tolist() == [1.0, 1.0]
