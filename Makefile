# People, the pre-commit hook and .ci/run call these four and nothing else.
PYTHON ?= python

.PHONY: check test bench docs

check:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q tests/test_layers.py tests/test_layout.py

test:
	$(PYTHON) -m pytest

bench:
	$(PYTHON) benchmarks/run.py

docs:
	$(PYTHON) -m pytest -q tests/test_docs.py
	$(PYTHON) -m sphinx --fail-on-warning --keep-going --fresh-env -q docs site
