"""Processes under test, spoken to in JSON lines; one that hangs or dies is replaced.

Keeps     only one process works at a time; each inherits this machine's environment without
          settings that slow OpenBLAS.
Touches   child processes.
Not here  what is measured (run.py, startup.py)."""

import json
import os
import selectors
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def environment(**changes):
    """What a process under test gets: flambeau from this tree, OpenBLAS at full speed."""
    changed = {**os.environ, **changes}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        changed.pop(name, None)
    inherited = changed.get("PYTHONPATH")
    changed["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), inherited)))
    return changed


def interpreter(name):
    """The Python that has the module: torch may live in an environment of its own."""
    if name.startswith("torch"):
        return os.environ.get("FLAMBEAU_TORCH_PYTHON") or sys.executable
    return sys.executable


def has_module(name):
    """Whether that Python can import the module."""
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({name.split('.')[0]!r}) is None)"
    done = subprocess.run([interpreter(name), "-c", code], env=environment(), check=False)
    return done.returncode == 0


class Worker:
    """A module in a process of its own."""

    def __init__(self, name, **changes):
        self.name = name
        self.changes = changes
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [interpreter(self.name), str(HERE / "serve.py"), self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            env=environment(**self.changes),
        )

    def ask(self, *command, limit_s=240):
        """The answer to a command, or {"error": why there is none}."""
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            with selectors.DefaultSelector() as selector:
                selector.register(self.process.stdout, selectors.EVENT_READ)
                ready = selector.select(limit_s)
            line = self.process.stdout.readline() if ready else None
        except OSError:
            line = ""
        if line:
            return json.loads(line)
        self.stop()
        self.start()
        return {"error": "process died" if line == "" else f"no answer in {limit_s} s"}

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
