"""One module under test in a process of its own: reads commands, answers with times.

    python benchmarks/serve.py flambeau|torch|torch.compile

Keeps     answers are JSON lines on what was standard output; whatever the module prints goes to
          standard error.
Touches   the module under test; /proc/self/status for the peak of memory.
Not here  which process runs when (run.py), single measurements of starting up (startup.py)."""

import importlib
import json
import os
import random
import statistics
import sys
import time

clock = time.perf_counter


def load(name):
    """The module that offers torch's API; with everything the workloads use."""
    package = "torch" if name == "torch.compile" else name
    module = importlib.import_module(package)
    for part in ("nn.functional", "optim", "utils.data"):
        try:
            importlib.import_module(f"{package}.{part}")
        except ImportError as error:  # then only the workloads that need it fail
            print(f"{package}.{part}: {error}", file=sys.stderr)
    return module


def peak_megabytes():
    """The most memory this process ever held; ru_maxrss would count its parent's, too."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


class Server:
    """Builds a workload and runs its steps on demand."""

    def __init__(self, name):
        start = clock()
        self.torch = load(name)
        self.import_s = clock() - start
        self.compiled = name == "torch.compile"
        self.step = None

    def build(self, workload):
        """Prepare it; seconds of the first step, with and without what it needs, and of a later."""
        from workloads import WORKLOADS

        start = clock()
        self.torch.manual_seed(0)
        self.step = None
        step = WORKLOADS[workload](self.torch)
        if self.compiled:
            self.torch._dynamo.reset()
            step = self.torch.compile(step)
        self.step = step
        first_s = self.timed()
        with_inputs_s = clock() - start
        for _ in range(3):
            self.timed()
        return {"first_s": first_s, "with_inputs_s": with_inputs_s, "step_s": self.timed()}

    def timed(self):
        """Seconds of one step."""
        start = clock()
        self.step()
        return clock() - start

    def run(self, n_steps):
        """Median seconds of several steps."""
        times = [self.timed() for _ in range(n_steps)]
        return {"median_s": statistics.median(times), "peak_mb": peak_megabytes()}

    def imported(self):
        """Seconds the import took."""
        return {"import_s": self.import_s}

    def recording(self):
        """Seconds one recorded (torch: computed) addition of 4 floats takes, twice: without and
        with a gradient. The flush lies outside."""
        result = {}
        for label, requires_grad in (("plain_s", False), ("gradient_s", True)):
            left = self.torch.ones(4, requires_grad=requires_grad)
            right = self.torch.full((4,), 1e-3)
            times = []
            for _ in range(60):
                total = left
                start = clock()
                for _ in range(200):
                    total = total + right
                times.append((clock() - start) / 200)
                total.detach().numpy()
            result[label] = min(times)
        return result

    def planning(self):
        """Seconds an operator that planning and running never-seen small segments takes."""
        a, b = self.torch.ones(4), self.torch.full((4,), 0.5)
        draw = random.Random()  # other segments each time: plans of an earlier run are on disk
        operators = [
            lambda x: x + b, lambda x: x * b, lambda x: x - b, lambda x: x.abs(),
            lambda x: x.neg(), lambda x: x.relu(), lambda x: x.sigmoid(), lambda x: x.tanh(),
        ]  # fmt: skip
        times = []
        for _ in range(25):
            x = a
            for _ in range(100):
                x = draw.choice(operators)(x)
            start = clock()
            x.numpy()
            times.append((clock() - start) / 100)
        return {"segment_s": statistics.median(times[5:])}


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    server = Server(sys.argv[1])
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer = getattr(server, command)(*arguments)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".split("\n")[0][:200]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
