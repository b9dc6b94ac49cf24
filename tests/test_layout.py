"""The shape of the tree: small files, short functions, narrow lines, tests where their code is."""

import ast
import re
from pathlib import Path

import pytest
from tree_support import parsed, statements, text_of

ROOT = Path(__file__).resolve().parents[1]
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_FOLDER_FILES = 14
MAX_COLUMNS = 100

# path -> why it may be longer than a file should be
LONG_FILES: dict[str, str] = {}
_ONE_CALL = "runs at each operator where there is no native code: calls in it would cost as much"
_ONE_FUNCTION = "one LLVM function as it stands: its branches and phis are read together"
# "path:function" -> why it may be longer than a function should be
LONG_FUNCTIONS: dict[str, str] = {
    "flambeau/devices/cpu/runner/text.py:_run_text": _ONE_FUNCTION,
    "flambeau/devices/cpu/runner/chunks_text.py:chunks_text": _ONE_FUNCTION,
    "flambeau/devices/cpu/team/text.py:worker_text": _ONE_FUNCTION,
    "flambeau/devices/cpu/team/text.py:resize_text": _ONE_FUNCTION,
    "flambeau/tensor/closures.py:_two_operands": _ONE_CALL,
    "flambeau/tensor/closures.py:function": _ONE_CALL,
    "flambeau/gradients/recording/record.py:_binary": _ONE_CALL,
}
# folder -> why it may hold more files
FULL_FOLDERS: dict[str, str] = {
    "flambeau": "torch's own modules: programs import them by these paths",
    "tests": "tests of the files at the root of flambeau, and of the whole tree",
    "tests/recorded": "a script for each file of answers, and the cases that both sides run",
    "flambeau/distributions": "a file a family, beside torch's own paths",
    "flambeau/nn/modules": "torch's own files: programs import layers by these paths",
    "flambeau/optim": "torch's own files, one an optimizer: programs import them by these paths",
}
# a test file that has no source file of its name -> what it tests instead
FREE_TESTS = {
    "tests/test_layers.py": "the imports of the whole package",
    "tests/test_layout.py": "the shape of the whole tree",
    "tests/test_imports.py": "which modules importing flambeau loads",
    "tests/test_compat.py": "the table of torch's names, flambeau/compat.toml",
    "tests/test_docs.py": "docstrings, README and the pages under docs/",
    "tests/engine/test_caches.py": "bounds of everything the engine and its users remember",
    "tests/engine/test_errors.py": "bad input, which leaves everything as it was",
    "tests/engine/test_fork.py": "forks at every stage of a program",
    "tests/engine/test_interrupts.py": "signals and finalizers at any moment",
    "tests/engine/test_memory.py": "how much memory programs take, and running out of it",
    "tests/engine/test_threads.py": "threads that share tensors",
    "tests/engine/test_views_and_writes.py": "writes and reads through views that overlap",
    "tests/engine/test_same_bits.py": "fused or not, on any threads, the same bits",
    "tests/engine/test_small_programs.py": "small programs that break a naive engine",
    "tests/autograd/test_names.py": "the names that torch.autograd offers",
    "tests/test_every_operator.py": "every registered operator, by its own declarations",
}
# a folder of tests without a room of its name -> what it tests
FREE_FOLDERS = {
    "tests/examples": "the programs in examples/",
    "tests/benchmarks": "the programs in benchmarks/",
    "tests/recorded": "answers of torch, as data, and the scripts that recorded them",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def python_files(*folders):
    found = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    return sorted(p for p in found if "__pycache__" not in p.parts)


OURS = python_files("flambeau", "tests", "benchmarks", "examples", "docs")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def functions(path):
    """(name, lines without the docstring, first line) of every function in the file."""
    for node in statements(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            n_lines = node.end_lineno - node.lineno + 1
            yield node.name, n_lines - (text.count("\n") + 1 if text else 0), node.lineno


def none_of(sentences):
    """Fail with every sentence shown, not only the first."""
    sentences = list(sentences)
    if sentences:
        pytest.fail("\n".join([f"{len(sentences)}:", *sentences]), pytrace=False)


def test_files_are_short():
    sizes = {name_of(p): text_of(p).count("\n") for p in OURS}
    none_of(
        f"{name} has {n_lines} lines"
        for name, n_lines in sizes.items()
        if n_lines > MAX_FILE_LINES and name not in LONG_FILES
    )


def test_functions_are_short():
    long = [
        f"{name_of(path)}:{line} {name} has {n_lines} lines"
        for path in OURS
        for name, n_lines, line in functions(path)
        if n_lines > MAX_FUNCTION_LINES and f"{name_of(path)}:{name}" not in LONG_FUNCTIONS
    ]
    none_of(long)


def test_folders_hold_few_files():
    counts: dict[str, int] = {}
    for path in OURS:
        counts[name_of(path.parent)] = counts.get(name_of(path.parent), 0) + 1
    none_of(
        f"{folder} holds {n_files} files"
        for folder, n_files in counts.items()
        if n_files > MAX_FOLDER_FILES and folder not in FULL_FOLDERS
    )


def test_lines_are_narrow():
    wide = [
        f"{name_of(path)}:{number} has {len(line)} columns"
        for path in OURS
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]
    none_of(wide)


def test_every_source_file_says_what_it_is():
    silent = [
        name_of(path)
        for path in OURS
        if text_of(path).strip() and not ast.get_docstring(parsed(path))
    ]
    none_of(silent)


def test_files_that_docstrings_name_are_there():
    """ "Not here  hooks (hooks.py)" has to send a reader to a file."""
    names = [f"/{name_of(path)}" for path in OURS]
    lost = [
        f"{name_of(path)} names {named}"
        for path in python_files("flambeau")
        for named in re.findall(r"[\w/]+\.py\b", ast.get_docstring(parsed(path)) or "")
        if not named.startswith("torch/") and not any(n.endswith(f"/{named}") for n in names)
    ]
    none_of(lost)


def test_nothing_is_left_unfinished():
    marks = [
        f"{name_of(path)}:{number} {line.strip()}"
        for path in python_files("flambeau", "benchmarks", "examples")
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    none_of(marks)


def test_users_never_meet_an_assert():
    """`python -O` removes asserts, and an AssertionError helps nobody."""
    asserts = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files("flambeau")
        for node in statements(path)
        if isinstance(node, ast.Assert)
    ]
    none_of(asserts)


@pytest.mark.parametrize("path", [p for p in OURS if p.name.startswith("test_")], ids=name_of)
def test_tests_mirror_the_tree(path):
    """tests/a/b/test_c.py tests flambeau/a/b/c.py or the folder flambeau/a/b/c/; test_c_corner.py
    a corner of the same; test_recorded.py compares its room with recorded answers of torch."""
    relative = path.relative_to(ROOT / "tests")
    name, folder = name_of(path), "tests/" + relative.parts[0]
    if name in FREE_TESTS or folder in FREE_FOLDERS:
        return
    room = ROOT / "flambeau" / relative.parent
    words = relative.stem.split("_")[1:]
    tested = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
    found = any((room / f"{stem}.py").exists() or (room / stem).is_dir() for stem in tested)
    if relative.name == "test_recorded.py":
        found = room.is_dir()
    assert found, f"{name} tests no file of its name"


def test_every_room_has_tests():
    """A room without a folder of tests, or a test_ROOM.py, is tested by nobody in particular."""
    rooms = [p for p in (ROOT / "flambeau").iterdir() if p.is_dir() and any(p.rglob("[a-z]*.py"))]
    bare = [
        room.name
        for room in rooms
        if not any((ROOT / "tests" / room.name).rglob("test_*.py"))
        and not (ROOT / "tests" / f"test_{room.name}.py").exists()
    ]
    none_of(bare)


def test_helpers_have_names_of_their_own():
    """Test helpers are imported by bare name, so each name is taken once."""
    names = [p.stem for p in python_files("tests") if p.name.endswith("_support.py")]
    assert len(names) == len(set(names))
