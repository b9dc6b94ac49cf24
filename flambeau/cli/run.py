"""Runs a PyTorch script as `python SCRIPT` or `python -m MODULE` would, with flambeau as its torch.

Keeps     the script sees sys.argv, __main__, __file__ and sys.path[0] as under `python SCRIPT`,
          and its tracebacks begin and end in its own lines.
Touches   sys.modules["__main__"], sys.argv, sys.path.
Not here  how `import torch` is served (stand_in.py), the other commands (main.py)."""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from flambeau.cli.stand_in import as_torch, serve_started_processes

# Modules whose frames are of no help at the end of a traceback: they only word the error.
_WORDING = ("flambeau.base.missing", "flambeau.cli.stand_in")


def run_script(script: str, arguments: list[str]) -> int:
    """Run the script file, or the folder's or archive's __main__.py; returns the exit status."""
    path = Path(script)
    if path.is_dir():
        path = path / "__main__.py"
    try:
        source = path.read_bytes()
    except OSError as error:
        return _refused(f"cannot read {str(path)!r}: {error.strerror}")
    as_torch()
    # Whole, as Python has it: tracebacks and inspect find the source after os.chdir, too.
    path = path.absolute()
    main = _main_module(str(path))
    sys.argv = [script, *arguments]
    # As `python SCRIPT` has it: the script's folder in place of where -m was called from.
    sys.path[0] = str(path.resolve().parent)
    serve_started_processes()
    return _executed(main, source, str(path))


def run_module(name: str, arguments: list[str]) -> int:
    """Run the module, or the package's __main__, that is found from here; returns the status."""
    as_torch()
    sys.path[0] = os.getcwd()
    serve_started_processes()
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ImportError as error:
        return _refused(f"cannot import {name!r}: {error}")
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        return _refused(f"found no module {name!r} with a source in {os.getcwd()!r} or sys.path")
    path = spec.loader.path
    main = _main_module(path)
    vars(main).update(__spec__=spec, __package__=spec.parent)
    sys.argv = [path, *arguments]
    return _executed(main, spec.loader.get_data(path), path)


def _refused(why: str) -> int:
    print(f"flambeau run: {why}", file=sys.stderr)
    return 2


def _executed(main: ModuleType, source: bytes, path: str) -> int:
    sys.modules["__main__"] = main
    try:
        code = compile(source, path, "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except KeyboardInterrupt as error:
        _report(error)
        return 130
    except BaseException as error:
        _report(error)
        return 1
    return 0


def _main_module(path: str) -> ModuleType:
    main = ModuleType("__main__")
    main.__doc__ = None
    main.__file__ = os.path.abspath(path)
    main.__loader__ = SourceFileLoader("__main__", path)
    vars(main).update(__builtins__=builtins, __cached__=None, __annotations__={})
    return main


def _report(error: BaseException) -> None:
    """Show the error as Python would had it started the script itself."""
    trace = _script_part(error.__traceback__)
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def _script_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without this module's frame at its start and the wording's at its end."""
    entries: list[TracebackType] = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    while entries and entries[0].tb_frame.f_globals.get("__name__") == __name__:
        entries.pop(0)
    while len(entries) > 1 and _words_errors(entries[-1].tb_frame.f_code, entries[-1]):
        entries.pop()
    rebuilt: TracebackType | None = None
    for entry in reversed(entries):
        rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rebuilt


def _words_errors(code: CodeType, entry: TracebackType) -> bool:
    module = entry.tb_frame.f_globals.get("__name__", "")
    # Served as torch, the package bears that name.
    is_own = module.partition(".")[0] in ("flambeau", "torch")
    own_getattr = code.co_name == "__getattr__" and is_own
    return module in _WORDING or module.startswith("importlib.") or own_getattr
