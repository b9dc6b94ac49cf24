"""torch.utils.data._utils: collating, fetching, worker processes."""

from __future__ import annotations

from flambeau.utils.data._utils import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]
