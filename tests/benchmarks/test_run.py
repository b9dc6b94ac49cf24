"""The benchmark runs, reports, and keeps its names. No time is asserted anywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

NAMES = [
    "chain_small",
    "chain_small_grad",
    "linreg",
    "mlp_tiny",
    "ode",
    "loop_write",
    "add_10M",
    "gelu_10M",
    "softmax",
    "layernorm",
    "layernorm_by_hand",
    "reductions",
    "gemm_64",
    "gemm_256",
    "gemm_1024",
    "bmm",
    "sdpa",
    "mlp",
    "cnn",
    "gpt",
    "generate",
    "generate_fresh",
    "embedding",
    "indexing",
    "sort",
    "hvp",
    "lstm",
    "optimizer",
    "loader",
    "scalars",
]


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import report

    return report


def test_workloads_keep_their_names(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import workloads

    assert list(workloads.WORKLOADS) == NAMES


def test_a_run_writes_json_and_a_table(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--peers", "", "--rounds", "1"]
    command += ["--only", "linreg,gemm_64", "--skip-startup", "--results", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "| linreg |" in done.stdout
    results = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    for workload in ("linreg", "gemm_64"):
        assert results["workloads"][workload]["flambeau"]["median_s"] > 0


def test_unknown_workload_is_refused():
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--only", "gemm_63"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no workload gemm_63" in done.stderr


def test_table(report):
    rows = {
        "fast": {"flambeau": {"median_s": 1e-3}, "torch": {"median_s": 4e-3}},
        "slow": {"flambeau": {"median_s": 2e-3}, "torch": {"median_s": 2e-3}},
        "lost": {"flambeau": {"error": "NameError: x"}, "torch": {"median_s": 1.0}},
    }
    text = report.markdown({"machine": "Here.", "names": ["flambeau", "torch"], "workloads": rows})
    assert "| fast | 1.000 | 4.000 | 4.00 |" in text
    assert "Geometric mean against torch: 2.00 on 2 of 3 workloads." in text
    assert "* lost under flambeau: NameError: x" in text


def test_table_goes_between_the_markers(report, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.put_into(page, r"new \1")
    assert page.read_text() == f"before\n{report.BEGIN}\nnew \\1\n{report.END}\nafter\n"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="no markers"):
        report.put_into(page, "new")


def test_readme_has_the_markers(report):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert report.BEGIN in text
    assert report.END in text


def test_products_and_bandwidth_say_what_they_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bandwidth
    import products

    table = products.table([[(0.001, 0.002)] * len(products.SHAPES)] * 2)
    assert table.count("| 2.00 |") == 2 * len(products.SHAPES)
    monkeypatch.setattr(bandwidth, "N", 1 << 16)
    for step, n_bytes in (bandwidth.copies() | bandwidth.fused()).values():
        step()
        assert n_bytes >= 8 << 16
