"""Facts for bug reports are looked up, and said by torch.utils.collect_env and __config__."""

import os
import platform

import flambeau as torch
from flambeau.utils import collect_env


def test_environment(capsys):
    collect_env.main()
    text = capsys.readouterr().out
    assert text.startswith("Collecting environment information...\nPyTorch version: 2.13.0")
    assert platform.python_version() in text
    assert f"[pip3] numpy=={collect_env.facts()['numpy']}" in text


def test_config():
    assert f"- processors: {len(os.sched_getaffinity(0))}\n" in torch.__config__.show()
    info = torch.__config__.parallel_info()
    assert f"get_num_threads() : {torch.get_num_threads()}\n" in info
