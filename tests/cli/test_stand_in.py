"""flambeau.as_torch(): the same in a running process, and its refusal after real torch."""

import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def python(text):
    """Run the text in a process of its own, which the stand-in may change as it likes."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_as_torch_serves_later_imports():
    lines = python("""
        import flambeau
        served = flambeau.as_torch()
        import torch
        import torch.version as version
        print(torch is flambeau is served, version is flambeau.version)
        print(flambeau.as_torch() is flambeau, torch.__name__)
        from torch import nn, optim
        print(nn is flambeau.nn, hasattr(torch, "nothing"))
        try:
            from torch import nothing
        except ImportError as error:
            print(str(error).split("\\n")[0])
    """)
    assert lines[:4] == [
        "True True", "True torch", "True False", "module 'torch' has no attribute 'nothing'",
    ]  # fmt: skip


def test_functorch_is_torch_func():
    lines = python("""
        import flambeau
        flambeau.as_torch()
        import functorch, torch.func
        print(functorch is torch.func, functorch.vmap is torch.func.vmap)
    """)
    assert lines[0] == "True True"


def test_as_torch_refuses_after_real_torch():
    lines = python("""
        import sys, types
        import flambeau
        real = types.ModuleType("torch")
        real.__version__ = "2.13.0+cpu"
        sys.modules["torch"] = real
        try:
            flambeau.as_torch()
        except RuntimeError as error:
            print(error)
        print(sys.modules["torch"] is real, len([f for f in sys.meta_path if "stand_in" in
              type(f).__module__]))
    """)
    assert lines[0] == ("flambeau cannot stand in for torch: real torch is already imported here")
    assert "2.13.0+cpu" in lines[1]
    assert any(line.startswith("  fix ") for line in lines)
    assert lines[-2] == "True 0"


def test_other_packages_are_left_alone():
    lines = python("""
        import flambeau
        flambeau.as_torch()
        import importlib.util
        print(importlib.util.find_spec("torchvision_that_nobody_has"))
        import json
        print(json.__name__)
    """)
    assert lines[:2] == ["None", "json"]
