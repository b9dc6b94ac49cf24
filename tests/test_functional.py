"""torch.functional and torch.storage are other places of the same objects."""

import flambeau as torch
from flambeau import functional, storage


def test_names_are_torchs_own():
    assert [n for n in functional.__all__ if getattr(functional, n) is not getattr(torch, n)] == []
    assert storage.UntypedStorage is torch.UntypedStorage
    assert isinstance(torch.ones(2).untyped_storage(), storage.UntypedStorage)
