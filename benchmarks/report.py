"""Turns measurements into a table, and puts it into the README.

Keeps     only what was measured in one run stands in one table; a figure that is missing says why.
Touches   README.md, between its markers.
Not here  measuring (run.py)."""

import math
import re

BEGIN, END = "<!-- bench: begin (written by make bench) -->", "<!-- bench: end -->"


def milliseconds(seconds):
    """Three digits that mean something."""
    value = seconds * 1e3
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def ratio(theirs, ours):
    """How many times faster ours is, as text."""
    return f"{theirs / ours:.2f}" if theirs and ours else "-"


def geometric_mean(values):
    """The mean for ratios."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def speed_table(names, rows):
    """Median milliseconds a step and ratios, a workload a line."""
    ours, peers = names[0], names[1:]
    head = ["workload", *(f"{name}, ms" for name in names), *(f"{p} / {ours}" for p in peers)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for workload, row in rows.items():
        cells = [milliseconds(row[n]["median_s"]) if row[n].get("median_s") else "-" for n in names]
        own = row[ours].get("median_s")
        cells += [ratio(row[peer].get("median_s"), own) for peer in peers]
        lines.append(f"| {workload} | " + " | ".join(cells) + " |")
    for peer in peers:
        known = [
            row[peer]["median_s"] / row[ours]["median_s"]
            for row in rows.values()
            if row[peer].get("median_s") and row[ours].get("median_s")
        ]
        lines.append(
            f"\nGeometric mean against {peer}: {geometric_mean(known):.2f} "
            f"on {len(known)} of {len(rows)} workloads."
        )
    return "\n".join(lines)


STARTUP_ROWS = (
    ("import, s", "import", "import_s"),
    ("import, Linear, Adam, first loss.item(), s", "first_loss", "first_loss_s"),
    ("after the import, written-out GELU, empty cache, s", "gelu_empty_cache", "with_inputs_s"),
    ("the same, warm cache, s", "gelu_warm_cache", "with_inputs_s"),
    ("peak memory over the transformer step, MB", "gpt_memory", "peak_mb"),
    ("adding 4 floats (ours: recording it), us", "recording", "plain_s"),
    ("the same with gradient, us", "recording", "gradient_s"),
    ("an operator of a never-seen small segment, us", "planning", "segment_s"),
)


def startup_table(names, figures):
    """Starting up, memory and the cost of an operator."""
    measured = [name for name in names if figures.get(name)]
    lines = ["| | " + " | ".join(measured) + " |", "|---" * (len(measured) + 1) + "|"]
    for label, kind, key in STARTUP_ROWS:
        cells = []
        for name in measured:
            value = figures[name].get(kind, {}).get(key)
            if value is None:
                cells.append("-")
            else:
                cells.append(f"{value * 1e6:.2f}" if label.endswith("us") else f"{value:.3g}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def failures(rows, names):
    """What did not run, and why."""
    lines = [
        f"* {workload} under {name}: {row[name]['error']}"
        for workload, row in rows.items()
        for name in names
        if "error" in row[name]
    ]
    return "\n".join(["Not run:", "", *lines]) if lines else ""


def markdown(results):
    """The whole report."""
    names = results["names"]
    parts = [results["machine"]]
    if results["workloads"]:
        parts.append(speed_table(names, results["workloads"]))
    if results.get("startup"):
        parts.append(startup_table(names, results["startup"]))
    parts.append(failures(results["workloads"], names))
    return "\n\n".join(part for part in parts if part)


def put_into(path, text):
    """Replace what stands between the markers."""
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{path} has no markers {BEGIN!r} ... {END!r} to write between")
    path.write_text(pattern.sub(lambda _: f"{BEGIN}\n{text}\n{END}", page), encoding="utf-8")
