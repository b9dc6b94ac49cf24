"""The benchmark: workloads under flambeau and its peers, in turn, in processes of their own.

    python benchmarks/run.py [--peers torch,torch.compile] [--only gelu_10M,gpt] [--rounds 7]

Keeps     ratios compare medians of one run; results are synchronised at both ends of a step.
Touches   benchmarks/results/, README.md (a full run only).
Not here  the workloads (workloads.py), starting up (startup.py), tables (report.py)."""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path

import report
import startup
from workers import ROOT, Worker, has_module
from workloads import WORKLOADS

RESULTS = Path(__file__).resolve().parent / "results"
TARGET_S = 0.06  # a round of one workload runs about so long
PAUSE_S = 0.3  # the other process's OpenMP threads go on spinning for 0.2 s


def machine():
    """One line about where the figures were made."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    cores = len(os.sched_getaffinity(0))
    return (
        f"{model}, {cores} cores, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}."
    )


def measure_workload(workers, workload, rounds):
    """{module: figures} of one workload; modules take turns within each round."""
    built = {worker.name: worker.ask("build", workload) for worker in workers}
    samples = {worker.name: [] for worker in workers}
    for _ in range(rounds):
        for worker in workers:
            figures = built[worker.name]
            if "error" in figures:
                continue
            n_steps = max(1, min(2000, int(TARGET_S / max(figures["step_s"], 1e-6))))
            time.sleep(PAUSE_S)
            answer = worker.ask("run", n_steps)
            if "error" in answer:
                built[worker.name] = answer
            else:
                samples[worker.name].append(answer["median_s"])
    for name, figures in built.items():
        if "error" not in figures:
            figures["median_s"] = statistics.median(samples[name])
    return built


def measure_workloads(names, workloads, rounds):
    """{workload: {module: figures}}, printed as they come."""
    workers = [Worker(name) for name in names]
    rows = {}
    try:
        for workload in workloads:
            rows[workload] = measure_workload(workers, workload, rounds)
            print(report.speed_table(names, {workload: rows[workload]}).split("\n")[2], flush=True)
    finally:
        for worker in workers:
            worker.stop()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--module", default="flambeau")
    parser.add_argument("--peers", default="torch", help="compared where they are installed")
    parser.add_argument("--only", default="", help="workloads, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--skip-startup", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for JSON and table")
    parser.add_argument("--readme", action="store_true", help="write the table even if partial")
    options = parser.parse_args()

    chosen = [name for name in options.only.split(",") if name] or list(WORKLOADS)
    unknown = [name for name in chosen if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    peers = [name for name in options.peers.split(",") if name and has_module(name)]
    names = [options.module, *peers]
    results = {"machine": machine(), "names": names, "rounds": options.rounds}
    results["workloads"] = measure_workloads(names, chosen, options.rounds)
    if not options.skip_startup:
        results["startup"] = startup.measure(names, max(1, options.rounds // 2))
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "latest.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    text = report.markdown(results)
    (options.results / "latest.md").write_text(text + "\n", encoding="utf-8")
    print("\n" + text)
    if options.readme or (peers and not options.only):
        report.put_into(ROOT / "README.md", text)


if __name__ == "__main__":
    main()
