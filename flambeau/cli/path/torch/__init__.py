"""What a process started under `python -m flambeau run` finds as torch: it becomes flambeau.

Keeps     after this import, sys.modules["torch"] is flambeau itself.
Touches   sys.path, where flambeau runs from a source tree that the new process does not know.
Not here  the stand-in (cli/stand_in.py)."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("flambeau") is None:
    sys.path.append(str(Path(__file__).resolve().parents[4]))

from flambeau.cli.stand_in import as_torch

as_torch()
