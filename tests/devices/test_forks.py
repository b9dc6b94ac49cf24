"""What is registered around a fork runs in order, what is registered during one included."""

import os

from flambeau.devices import forks


def test_in_order_and_paired(monkeypatch):
    monkeypatch.setattr(forks, "_rooms", [])
    seen = []

    def room(name, before=lambda: None):
        def prepare():
            seen.append(f"before {name}")
            before()

        forks.at_fork(
            prepare, lambda: seen.append(f"parent {name}"), lambda: seen.append(f"child {name}")
        )

    room("low", before=lambda: room("late"))
    room("high")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, ", ".join(seen).encode())
        os._exit(0)
    os.waitpid(child, 0)
    prepared = ["before high", "before low", "before late"]
    assert seen == [*prepared, "parent low", "parent high", "parent late"]
    in_child = os.read(reader, 1000).decode().split(", ")
    assert in_child == [*prepared, "child low", "child high", "child late"]
