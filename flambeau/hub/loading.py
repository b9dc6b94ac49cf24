"""Weights by address, kept in a folder; models by the hubconf file of a folder.

Keeps     files go to a name of their own first and are moved when they are whole, their hash being
          right where one was asked for; what was downloaded before is not asked for again.
Touches   io, urllib where something is to be downloaded.
Not here  repositories of GitHub: their code is not fetched."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from flambeau.base.errors import helped

# A hash in a file's name, as in resnet18-5c106cde.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_PIECE = 128 << 10
_CONFIGURATION = "hubconf.py"

_folder: str | None = None


def get_dir() -> str:
    """The folder that files are kept in: what set_dir said, $TORCH_HOME/hub, or the user's cache.

    >>> get_dir().endswith("hub")
    True
    """
    return _folder if _folder is not None else os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder of what is downloaded: $TORCH_HOME, or a folder of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep files in folder `d`."""
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Download to file `dst`.

    hash_prefix   what the SHA-256 of the file begins with
    progress      taken, and shown by nothing
    Raises   urllib.error.URLError; RuntimeError: another hash
    """
    import hashlib
    import uuid
    from urllib.request import Request, urlopen

    target = os.path.expanduser(dst)
    part = f"{target}.{uuid.uuid4().hex}.partial"
    seen = hashlib.sha256()
    try:
        with (
            urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as source,
            open(part, "wb") as file,
        ):
            while piece := source.read(_PIECE):
                seen.update(piece)
                file.write(piece)
        digest = seen.hexdigest()
        if hash_prefix is not None and not digest.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.remove(part)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
    check_hash: bool = False, file_name: str | None = None, weights_only: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """torch.load of a file that is downloaded where it is not in `model_dir`, the folder
    "checkpoints" of get_dir(), yet.

    check_hash   the file's name ends in the beginning of its SHA-256, which is compared
    """
    from flambeau.io.reading import load as read

    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        ending = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, ending.group(1) if ending else None, progress)
    found: dict[str, Any] = read(path, map_location=map_location, weights_only=weights_only)
    return found


def load(
    repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: Any = None,
    force_reload: bool = False, verbose: bool = True, skip_validation: bool = False,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """What `model` of a folder's hubconf file makes, source="local"."""
    return _entry(repo_or_dir, source, model)(*args, **kwargs)


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None,
    verbose: bool = True, *, source: str = "github",
) -> Any:  # fmt: skip
    """Names that a folder's hubconf file offers, source="local"."""
    module = _configuration(github, source)
    return [
        name for name, each in vars(module).items() if callable(each) and not name.startswith("_")
    ]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False,
    trust_repo: Any = None, *, source: str = "github",
) -> str | None:  # fmt: skip
    """The docstring of what load would call."""
    return _entry(github, source, model).__doc__


def _entry(folder: str, source: str, model: str) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(_configuration(folder, source), model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found  # type: ignore[no-any-return]


def _configuration(folder: str, source: str) -> Any:
    """The folder's hubconf file as a module."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise RuntimeError(
            helped(
                f"flambeau fetches no code from GitHub: {folder}",
                fix='clone the repository, and load(its folder, model, source="local")',
            )
        )
    path = Path(folder, _CONFIGURATION)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    code = compile(path.read_bytes(), path, "exec")
    sys.path.insert(0, str(folder))
    try:
        exec(code, vars(module))
    finally:
        sys.path.remove(str(folder))
    return module
