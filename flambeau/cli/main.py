"""The command line: `python -m flambeau run [-m] SCRIPT [ARGS]` and `python -m flambeau doctor`.

Keeps     everything behind SCRIPT goes to the script, untouched.
Touches   nothing.
Not here  what the commands do (run.py, doctor.py)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from flambeau.base.config import VERSION


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m flambeau", description="PyTorch's tensor and autograd, written anew."
    )
    top.add_argument("--version", action="version", version=f"flambeau {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run an unmodified PyTorch script with flambeau as its torch",
        description="Run SCRIPT as `python SCRIPT` would; `import torch` is served by flambeau.",
    )
    run.add_argument(
        "-m", dest="module", action="store_true", help="SCRIPT is a module's name, as for python -m"
    )
    run.add_argument("script", metavar="SCRIPT")
    rest = run.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    rest.required = False  # argparse asks for at least none of them
    commands.add_parser("doctor", help="print versions, the machine, and a result it computed")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    if options.command == "run":
        from flambeau.cli.run import run_module, run_script

        if options.module:
            return run_module(options.script, options.arguments)
        return run_script(options.script, options.arguments)
    from flambeau.cli.doctor import report

    print(report())
    return 0
