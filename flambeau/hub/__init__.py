"""torch.hub: weights by address, models of a folder.

Keeps     torch's names.
Touches   the file beside it.
Not here  repositories of GitHub: their code is not fetched."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

from flambeau.base.missing import module_getattr
from flambeau.hub.loading import (
    HASH_REGEX,
    _get_torch_home,
    download_url_to_file,
    get_dir,
    help,
    list,
    load,
    load_state_dict_from_url,
    set_dir,
)

__all__ = [
    "HASH_REGEX", "_get_torch_home", "download_url_to_file", "get_dir", "help", "list", "load",
    "load_state_dict_from_url", "set_dir", "urlparse",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "tqdm":
        return _missing(name)
    from flambeau.hub.progress import tqdm

    globals()["tqdm"] = tqdm
    return tqdm


_missing = module_getattr(__name__)
