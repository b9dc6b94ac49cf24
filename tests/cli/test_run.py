"""`python -m flambeau run SCRIPT` is `python SCRIPT` with flambeau as torch."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FAKE_TORCH = "raise SystemExit('real torch was imported')\n"


@pytest.fixture
def run(tmp_path):
    """Write a script, run it, and return the finished process. A real torch lies in wait."""
    lib = tmp_path / "site"
    (lib / "torch").mkdir(parents=True)
    (lib / "torch" / "__init__.py").write_text(FAKE_TORCH)

    def run_script(text, *arguments, status=0, command=("-m", "flambeau", "run")):
        script = tmp_path / "folder" / "script.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(textwrap.dedent(text))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(lib)])}
        done = subprocess.run(
            [sys.executable, *command, os.path.join("folder", "script.py"), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done

    return run_script


def test_script_sees_what_python_would_show_it(run):
    text = """
        import sys, __main__
        print(__name__, __file__, __spec__, __package__, sys.argv[1:], sys.path[0])
        print(__main__.__dict__ is globals(), type(__loader__).__name__, __cached__, __doc__)
    """
    ours = run(text, "--rate", "0.1", "-x")
    theirs = run(text, "--rate", "0.1", "-x", command=())
    assert ours.stdout == theirs.stdout


def test_sources_are_found_from_another_folder(run):
    text = """
        import inspect, os, traceback
        def f(x):
            return 1 / x
        os.chdir("/")
        print(f.__code__.co_filename, inspect.getsource(f))
        try:
            f(0)
        except ZeroDivisionError:
            print(traceback.format_exc())
    """
    ours = run(text)
    assert "return 1 / x" in ours.stdout
    assert ours.stdout == run(text, command=()).stdout


def test_torch_is_flambeau_the_same_module_objects(run):
    done = run("""
        import flambeau
        import torch
        import torch.version
        import torch.torch_version as tv
        from torch import version
        assert torch is flambeau and torch.version is flambeau.version is version
        assert tv is flambeau.torch_version
        assert torch.__spec__.name == "flambeau" and version.__spec__.name == "flambeau.version"
        print(torch.version.__version__, torch.version.cuda)
    """)
    assert done.stdout.split() == ["2.13.0+flambeau.0.1", "None"]


def test_missing_module_says_so_at_the_line_that_asked(run):
    done = run("x = 1\nimport torch.versio\n", status=1)
    assert "ModuleNotFoundError: No module named 'torch.versio'" in done.stderr
    assert "near it   torch.version" in done.stderr
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert len(frames) == 1
    assert frames[0].endswith('script.py", line 2, in <module>')


def test_missing_name_says_so_at_the_line_that_asked(run):
    done = run(
        """
        import torch.version
        assert not hasattr(torch.version, "cudo")
        def work():
            return torch.version.cudo
        work()
        """,
        status=1,
    )
    assert "AttributeError: module 'torch.version' has no attribute 'cudo'" in done.stderr
    assert "near it   torch.version.cuda" in done.stderr
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert [frame.rpartition("line ")[2] for frame in frames] == ["6, in <module>", "5, in work"]


def test_from_import_of_a_missing_name_is_import_error(run):
    done = run("from torch.version import cudo\n", status=1)
    assert "ImportError: module 'torch.version' has no attribute 'cudo'" in done.stderr
    assert "near it   torch.version.cuda" in done.stderr


def test_find_spec_answers_none_for_what_is_missing(run):
    done = run("""
        from importlib.util import find_spec
        print(find_spec("torch.nowhere"), find_spec("torch.version") is not None)
        try:
            import torch.nowhere
        except ImportError:
            print("caught")
    """)
    assert done.stdout.split() == ["None", "True", "caught"]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_started_workers_find_flambeau_too(run, method):
    done = run(f"""
        import multiprocessing
        def work(queue):
            import torch, torch.version
            queue.put(torch.version.__version__)
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print(queue.get(timeout=30))
            process.join()
    """)
    assert done.stdout.strip() == "2.13.0+flambeau.0.1"


def test_scripts_started_by_the_script_find_flambeau_too(run):
    done = run("""
        import subprocess, sys
        code = "import torch; print(torch.__name__)"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    """)
    assert done.stdout.strip() == "torch"


@pytest.mark.parametrize(
    ("text", "status"),
    [("raise SystemExit(7)", 7), ("import sys; sys.exit('bad')", 1), ("1 / 0", 1), ("", 0)],
)
def test_exit_status(run, text, status):
    assert run(text, status=status).returncode == status


def test_traceback_begins_in_the_script(run):
    done = run("1 / 0\n", status=1)
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert len(frames) == 1
    assert "ZeroDivisionError" in done.stderr


def test_syntax_error_is_shown_with_its_line(run):
    done = run("x = (1,\ny = 2\n", status=1)
    assert "SyntaxError" in done.stderr
    assert "flambeau/cli" not in done.stderr


def test_unreadable_script(tmp_path):
    command = [sys.executable, "-m", "flambeau", "run", str(tmp_path / "none.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "cannot read" in done.stderr


def test_pickles_of_the_scripts_own_classes(run):
    done = run("""
        import pickle
        class Thing:
            pass
        print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
    """)
    assert done.stdout.strip() == "True"


def test_module_sees_what_python_would_show_it(tmp_path):
    """`run -m MODULE ARGS` is `python -m MODULE ARGS`: packages, relative imports, spawning."""
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "data.py").write_text("rows = 3\n")
    (package / "__main__.py").write_text("print(__name__, __spec__.name)\n")
    text = """
        import multiprocessing, sys, os
        from .data import rows

        def work(x):
            import torch
            return x * rows, getattr(torch, "debug", None) is not None

        if __name__ == "__main__":
            print(__name__, __spec__.name, __package__, __file__, sys.argv, sys.path[0])
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
    """
    (package / "train.py").write_text(textwrap.dedent(text))

    def shown(*command):
        done = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    ours = ("-m", "flambeau", "run", "-m")
    status, lines, errors = shown(*ours, "trainer.train", "--rate", "-m")
    assert (status, errors) == (0, "")
    train = str(package / "train.py")
    assert lines.splitlines() == [
        f"__main__ trainer.train trainer {train} {[train, '--rate', '-m']} {tmp_path}",
        "[(3, True), (6, True)]",
    ]
    assert shown(*ours, "trainer") == shown("-m", "trainer")
    status, _, errors = shown(*ours, "trainer.none")
    assert status == 2
    assert "found no module 'trainer.none'" in errors
    assert "cannot import 'nobody.none'" in shown(*ours, "nobody.none")[2]


def test_anomalies_show_the_scripts_own_lines(run):
    done = run(
        """
        import torch
        x = torch.tensor([-1.0], requires_grad=True)
        with torch.autograd.set_detect_anomaly(True):
            torch.sqrt(x).backward()
        """,
        status=1,
    )
    warning = done.stderr.partition("Traceback of forward call that caused the error:\n")[2]
    assert warning.splitlines()[0].endswith('script.py", line 5, in <module>')


def test_a_name_without_a_room_says_so_at_the_line_that_asked(run):
    done = run("import torch\ntorch.tesnor\n", status=1)
    assert "near it   torch.tensor" in done.stderr
    assert done.stderr.count("  File") == 1
