"""DataLoader: order, draws, collating, whole batches, worker processes and their errors."""

import os
import random

import pytest

import flambeau as torch
import flambeau.utils.data.dataloader as names
from flambeau.utils.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)


def numbers(count=10):
    return TensorDataset(torch.arange(count), torch.arange(count) * 2.0)


def seen(loader):
    return [batch[0].tolist() for batch in loader]


class Plain(Dataset):
    """The same samples without TensorDataset's short way."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        return self.dataset[index]


# What torch 2.13 draws: loaders after manual_seed(3), splits and samplers after manual_seed(0).
RECORDED = {
    "shuffled": [[6, 2, 0, 1], [8, 3, 5, 4], [7, 9]],
    "again": [[3, 4, 0, 9], [6, 7, 1, 2], [5, 8]],
    "after": 0.5944212079048157,
    "own": [[7, 4, 8, 1], [2, 3, 6, 5], [9, 0]],
    "own after": [4, 0, 2, 1, 3],
    "split": [[10, 0, 4, 3, 5, 8], [2, 1, 9], [7, 6]],
    "subset": [5, 20, 9, 3, 1],
    "weighted": [2, 2, 1, 2, 1, 2, 2, 2, 2, 2],
    "replaced": [
        7,
        5,
        8,
        0,
        1,
        3,
        4,
        7,
        7,
        8,
        1,
        3,
        2,
        8,
        6,
        3,
        4,
        7,
        2,
        5,
        0,
        4,
        5,
        6,
        0,
        8,
        7,
        7,
        4,
        8,
        3,
        5,
        8,
        3,
        3,
        7,
        4,
        0,
        3,
        1,
    ],
}


@pytest.mark.parametrize("make", [numbers, lambda: Plain(numbers())], ids=["whole", "by sample"])
@pytest.mark.parametrize("n_workers", [0, 2])
def test_shuffling_is_torchs(make, n_workers):
    torch.manual_seed(3)
    loader = DataLoader(make(), batch_size=4, shuffle=True, num_workers=n_workers)
    assert seen(loader) == RECORDED["shuffled"]
    assert seen(loader) == RECORDED["again"]
    assert torch.rand(1).item() == pytest.approx(RECORDED["after"], abs=1e-7)


def test_a_generator_of_ones_own_leaves_the_global_one_alone():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(5)
    before = torch.random.default_generator.state_bytes()
    for make in (numbers, lambda: Plain(numbers())):
        generator.manual_seed(5)
        loader = DataLoader(make(), batch_size=4, shuffle=True, generator=generator)
        assert seen(loader) == RECORDED["own"]
        assert list(RandomSampler(range(5), generator=generator)) == RECORDED["own after"]
    assert torch.random.default_generator.state_bytes() == before


def test_in_order_dropping_the_last():
    for make in (numbers, lambda: Plain(numbers())):
        loader = DataLoader(make(), batch_size=4, drop_last=True)
        assert len(loader) == 2
        assert seen(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_batches_are_copies():
    data = torch.arange(6.0)
    for shuffle in (False, True):
        (batch,) = next(iter(DataLoader(TensorDataset(data), batch_size=6, shuffle=shuffle)))
        batch.zero_()
    assert data.tolist() == [0, 1, 2, 3, 4, 5]
    loader = iter(DataLoader(TensorDataset(data), batch_size=3))
    (first,) = next(loader)
    data.add_(10)
    (second,) = next(loader)
    assert first.tolist() == [0, 1, 2]
    assert second.tolist() == [13, 14, 15]


def test_iterators_bear_torchs_names():
    for dataset in (numbers(), Plain(numbers())):
        batches = iter(DataLoader(dataset))
        assert isinstance(batches, names._SingleProcessDataLoaderIter)
        with pytest.raises(AttributeError, match="'_SingleProcessDataLoaderIter' object has no"):
            batches.next()
    assert issubclass(names._MultiProcessingDataLoaderIter, names._BaseDataLoaderIter)


def test_whole_batches_take_a_record_a_tensor():
    loader = DataLoader(numbers(64), batch_size=16, shuffle=True)
    list(loader)
    with torch.debug.counts() as counted:
        kept = list(loader)
    assert counted.records == 8
    assert len(kept) == 4


class Mixed(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return {"x": torch.ones(2) * index, "n": index, "f": float(index), "s": f"a{index}"}


def test_collating_goes_by_type():
    (batch,) = DataLoader(Mixed(), batch_size=3)
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert batch["n"].dtype is torch.int64
    assert batch["f"].dtype is torch.float64
    assert batch["s"] == ["a0", "a1", "a2"]


def test_what_cannot_be_collated_is_refused():
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy"):
        next(iter(DataLoader([object()])))
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal"):
        next(iter(DataLoader([[1], [1, 2]], batch_size=2)))
    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        next(iter(DataLoader([torch.eye(2).to_sparse()])))


def test_index_errors_are_the_datasets_own():
    loader = DataLoader(numbers(), sampler=[0, 99], batch_size=2)
    with pytest.raises(IndexError, match="index 99 is out of bounds for dimension 0 with size 10"):
        next(iter(loader))


@pytest.mark.parametrize(
    "named, text",
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiproces"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"shuffle": True, "sampler": [1]}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batchin"),
    ],
)
def test_settings_that_do_not_fit_are_refused(named, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(numbers(), **named)


def test_the_way_of_starting_workers_may_be_set_later():
    loader = DataLoader(numbers(), num_workers=1)
    loader.multiprocessing_context = "fork"
    assert loader.multiprocessing_context.get_start_method() == "fork"
    with pytest.raises(ValueError, match="can only be used with multi-process loading"):
        DataLoader(numbers()).multiprocessing_context = "fork"


class Counting(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, 10, step))


@pytest.mark.parametrize("n_workers", [0, 2])
def test_iterable_datasets(n_workers):
    loader = DataLoader(Counting(), batch_size=3, num_workers=n_workers)
    batches = [batch.tolist() for batch in loader]
    if n_workers == 0:
        assert batches == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    else:
        assert batches == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]


class Failing(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3:
            raise ValueError("bad sample")
        if index == 5:
            os._exit(3)
        return index


def test_errors_of_workers_are_raised_here():
    batches = iter(DataLoader(Failing(), num_workers=1))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0") as e:
        next(batches)
    assert "Original Traceback" in str(e.value)
    assert "bad sample" in str(e.value)
    assert next(batches).item() == 4
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited"):
        next(batches)


class Graphs(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.ones(2, requires_grad=True) * index


def test_graphs_do_not_cross_processes():
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iter(DataLoader(Graphs(), num_workers=1)))


class Slow(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        import time

        time.sleep(5 if index == 1 else 0)
        return index


def test_time_is_up():
    batches = iter(DataLoader(Slow(), num_workers=1, timeout=0.5))
    assert next(batches).item() == 0
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.5 seconds"):
        next(batches)
    batches._processes[0].terminate()


class WhoAmI(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        return [info.id, info.seed % 2**31, random.random(), torch.rand(1).item(), os.getpid()]


def test_workers_have_seeds_and_end():
    torch.manual_seed(7)
    loader = DataLoader(WhoAmI(), batch_size=None, num_workers=2, persistent_workers=True)
    first = list(loader)
    assert [each[0] for each in first] == [0, 1, 0, 1]
    assert len({each[3] for each in first}) == 4
    second = list(loader)
    pids = {each[4] for each in first}
    assert {each[4] for each in second} == pids  # the same processes
    processes = loader._iterator._processes
    loader._iterator.close()
    assert get_worker_info() is None
    assert len(processes) == 2
    for pid in pids:
        assert not os.path.exists(f"/proc/{pid}")


def test_a_pass_left_early_ends_its_workers():
    batches = iter(DataLoader(Plain(numbers()), num_workers=2))
    next(batches)
    pids = [process.pid for process in batches._processes]
    del batches
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_datasets_made_of_datasets():
    first, second = numbers(3), numbers(2)
    both = first + second
    assert isinstance(both, ConcatDataset)
    assert [both[n][0].item() for n in range(-1, 5)] == [1, 0, 1, 2, 0, 1]
    assert [each[0].item() for each in Subset(both, [4, 0])] == [1, 0]
    assert list(ChainDataset([Counting(), Counting()]))[9:11] == [9, 0]
    with pytest.warns(FutureWarning, match="is renamed to `cumulative_sizes`"):
        assert both.cummulative_sizes == both.cumulative_sizes == [3, 5]
    stacked = StackDataset(a=[1, 2], b=[3, 4])
    assert stacked[1] == {"a": 2, "b": 4}
    assert [batch["a"].tolist() for batch in DataLoader(stacked, batch_size=2)] == [[1, 2]]


def test_splits_and_samplers_draw_as_torch_does():
    torch.manual_seed(0)
    parts = random_split(range(11), [0.5, 0.3, 0.2])
    assert [list(part.indices) for part in parts] == RECORDED["split"]
    assert list(SubsetRandomSampler([1, 5, 9, 20, 3])) == RECORDED["subset"]
    assert list(WeightedRandomSampler([0.1, 0.2, 0.7], 10)) == RECORDED["weighted"]
    assert list(RandomSampler(range(9), replacement=True, num_samples=40)) == RECORDED["replaced"]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the"):
        random_split(range(3), [1, 1])


class Longer(torch.utils.data.IterableDataset):
    """Says 3, gives 5."""

    def __len__(self):
        return 3

    def __iter__(self):
        return iter(range(5))


def test_only_a_length_asked_for_before_is_held_against_the_data(recwarn):
    loader = torch.utils.data.DataLoader(Longer(), 1)
    assert len(list(loader)) == 5  # list() asks while it iterates
    assert not recwarn
    len(loader)
    with pytest.warns(UserWarning, match="was reported to be 3"):
        list(loader)
