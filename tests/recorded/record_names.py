"""Writes flambeau/ops/names.py: which file defines each operator, and the names it gets.

Run it after an operator was added, moved or renamed:  python tests/recorded/record_names.py"""

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "flambeau" / "ops" / "names.py"

HEAD = '''"""Where each operator is defined and which names it gets: none is imported to know.

Made by tests/recorded/record_names.py from the operators themselves; tests/ops/test_names.py
fails where the two differ.

Keeps     one line of names a fact; what the table does not say is the default.
Touches   nothing.
Not here  what operators mean (the files named here)."""

from __future__ import annotations

from typing import Final


def _table(given: dict[str, str]) -> dict[str, str]:
    """name -> key of all the names in the values."""
    return {name: key for key, names in given.items() for name in names.split()}


'''


def operators():
    """{name: operator} of every file under flambeau/ops, whatever the present table says."""
    from flambeau.ops import define

    folder = ROOT / "flambeau" / "ops"
    found = {}
    register = define.Registry.__setitem__

    def collect(registry, name, made):
        if name in found:
            raise ValueError(f"operator {name!r} is defined twice")
        found[name] = made
        registry._loaded[name] = made

    define.Registry.__setitem__ = collect
    try:
        for path in sorted(folder.glob("*/*.py")):
            if path.stem != "__init__":
                import_module(f"flambeau.ops.{path.parent.name}.{path.stem}")
    finally:
        define.Registry.__setitem__ = register
    files = sorted({file_of(operator) for operator in found.values()})
    return {n: one for file in files for n, one in found.items() if file_of(one) == file}


def file_of(operator):
    return type(operator).__module__.removeprefix("flambeau.ops.")


def wrapped(key, names):
    """One entry of a dictionary: a key and a line of names, folded at 100 columns."""
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 84:
            lines.append(line)
            line = ""
        line += name + " "
    lines.append(line.rstrip())
    if len(lines) == 1 and len(key) + len(lines[0]) < 86:
        return f"    {key!r}: {lines[0]!r},\n".replace("'", '"')
    return (
        f"    {key!r}: (\n".replace("'", '"')
        + "".join(f'        "{each}"\n' for each in lines)
        + "    ),\n"
    )


def dictionary(title, comment, entries):
    body = "".join(wrapped(key, names) for key, names in entries.items())
    return f"# {comment}\n{title}: Final = _table({{\n{body}}})  # fmt: skip\n"


def plain(title, comment, names):
    body = wrapped("x" * 99, names).split("\n", 1)[1].rsplit("    ),", 1)[0]
    body = body.replace("        ", "    ")
    return f"# {comment}\n{title}: Final = frozenset((\n{body}).split())  # fmt: skip\n"


def text(found):
    """The whole file."""
    files, methods, aliases = {}, {}, {}
    for name, operator in found.items():
        file = file_of(operator)
        files.setdefault(file, []).append(name)
        default = (name,) if operator.function else ()
        if operator.methods != default:
            methods[name] = list(operator.methods)
        for alias in operator.aliases:
            if any(alias in given for given in aliases.values()):
                raise ValueError(f"{alias!r} is said of two operators, the second is {name!r}")
            aliases.setdefault(name, []).append(alias)
    internal = [name for name, operator in found.items() if not operator.function]
    inplace = [name for name, operator in found.items() if operator.inplace]
    other = "".join(
        f"    {name!r}: {tuple(given)!r},\n".replace("'", '"') for name, given in methods.items()
    )
    return "".join((
        HEAD,
        dictionary("FILES", "Operator -> the file under flambeau/ops that defines it.", files),
        dictionary("ALIASES", "Further public name -> operator.", aliases),
        plain("INTERNAL", "Operators without a function of their own.", internal),
        plain("INPLACE", "Operators with a form that writes their first operand: name_.", inplace),
        "# Operator -> Tensor's methods, where they are not its own name (none: internal).\n"
        "METHODS: Final[dict[str, tuple[str, ...]]] = {\n" + other + "}\n\n\n"
        "def methods_of(name: str) -> tuple[str, ...]:\n"
        '    """Tensor\'s methods made from an operator of the table."""\n'
        "    found = METHODS.get(name)\n"
        "    if found is None:\n"
        "        found = () if name in INTERNAL else (name,)\n"
        "    return found\n",
    ))  # fmt: skip


def main():
    if not TARGET.exists():
        TARGET.write_text("FILES = {}\n", encoding="utf-8")  # enough to import the operators
    TARGET.write_text(text(operators()), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
