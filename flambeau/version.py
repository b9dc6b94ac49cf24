"""torch.version: the version, and facts about this build that a bug report needs.

Keeps     the names of torch's CPU build (cuda, hip, rocm and xpu are None).
Touches   utils.collect_env, only when facts are asked for.
Not here  the number itself (base/config.py)."""

from __future__ import annotations

from typing import Final

from flambeau.base.config import VERSION

# git_version is looked up when it is asked for.
__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]  # noqa: F822

__version__: Final = VERSION
debug: Final = False
cuda: Final[str | None] = None
hip: Final[str | None] = None
rocm: Final[str | None] = None
xpu: Final[str | None] = None


def facts() -> dict[str, str]:
    """Versions of what flambeau stands on, and the machine, looked up when called."""
    from flambeau.utils.collect_env import facts as found

    return found()


def __getattr__(name: str) -> object:
    if name == "git_version":
        from flambeau.utils.collect_env import git_commit

        return git_commit()
    from flambeau.base.missing import missing_name

    raise missing_name(__name__, name)
