"""What a short program pays: import, first results with an empty and a warm cache, memory.

Keeps     every figure comes from fresh processes, modules in turn, medians.
Touches   a cache folder of its own, removed afterwards.
Not here  steady speed (run.py)."""

import statistics
import subprocess
import tempfile

from workers import Worker, environment, interpreter

FIRST_LOSS = """
import time
start = time.perf_counter()
import {module} as torch
import {module}.nn, {module}.optim
model = torch.nn.Linear(10, 1)
optimizer = torch.optim.Adam(model.parameters())
loss = (model(torch.ones(4, 10)) ** 2).mean()
loss.backward()
optimizer.step()
loss.item()
print(time.perf_counter() - start)
"""


def medians(samples):
    """{key: median} of a list of dictionaries; an error stands for all."""
    for sample in samples:
        if "error" in sample:
            return sample
    keys = samples[0].keys()
    return {key: statistics.median(sample[key] for sample in samples) for key in keys}


def fresh(name, *commands, **changes):
    """Answers of a process that has done nothing before, merged."""
    answer = {}
    with Worker(name, **changes) as worker:
        for command in commands:
            answer.update(worker.ask(*command))
    return answer


def first_loss(name, **changes):
    """Seconds from nothing to the first loss.item(), import included."""
    command = [interpreter(name), "-c", FIRST_LOSS.format(module=name)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(**changes), check=False
    )
    if done.returncode:
        return {"error": done.stderr.strip().split("\n")[-1][:200]}
    return {"first_loss_s": float(done.stdout)}


def measure(names, rounds):
    """{name: figures} for every module."""
    results = {name: {} for name in names}
    with tempfile.TemporaryDirectory() as warm:
        cache = {"FLAMBEAU_CACHE_DIR": warm}
        plain = [name for name in names if name != "torch.compile"]
        for name in plain:
            first_loss(name, **cache)  # fills the cache
            fresh(name, ["build", "gelu_10M"], **cache)
        kinds = {
            "import": lambda name: fresh(name, ["imported"], **cache),
            "first_loss": lambda name: first_loss(name, **cache),
            "gelu_warm_cache": lambda name: fresh(name, ["build", "gelu_10M"], **cache),
            "gelu_empty_cache": in_empty_cache,
        }
        for kind, measured in kinds.items():
            samples = {name: [] for name in plain}
            for _ in range(rounds):
                for name in plain:
                    samples[name].append(measured(name))
            for name in plain:
                results[name][kind] = medians(samples[name])
        for name in plain:
            results[name]["gpt_memory"] = fresh(name, ["build", "gpt"], ["run", 5], **cache)
            results[name]["recording"] = fresh(name, ["recording"], **cache)
            if name != "torch":  # which plans nothing
                results[name]["planning"] = fresh(name, ["planning"], **cache)
    return results


def in_empty_cache(name):
    """The written-out GELU where nothing was ever compiled."""
    with tempfile.TemporaryDirectory() as empty:
        return fresh(name, ["build", "gelu_10M"], FLAMBEAU_CACHE_DIR=empty)
