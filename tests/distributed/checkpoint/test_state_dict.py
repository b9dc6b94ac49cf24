"""States of models whose parameters may be divided: of one rank, all."""

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint import hf_storage, state_dict


def test_one_rank_has_the_whole_state():
    model = torch.nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    options = state_dict.StateDictOptions(full_state_dict=True, ignore_frozen_params=True)
    assert list(state_dict.get_model_state_dict(model, options=options)) == ["weight"]
    state = {name: torch.zeros_like(each) for name, each in model.state_dict().items()}
    assert state_dict.set_model_state_dict(model, state).missing_keys == []
    assert model.weight.tolist() == [[0.0, 0.0]]


def test_there_are_no_divided_checkpoints():
    for kind in (hf_storage.HuggingFaceStorageReader, hf_storage.HuggingFaceStorageWriter):
        with pytest.raises(RuntimeError, match="reads and writes no divided checkpoints"):
            kind("/tmp/checkpoint")
