# check test bench 

docs:
	$(PYTHON) -m pytest -q tests/test_docs.py
	$(PYTHON) -m sphinx --fail-on-warning --keep-going --fresh-env -q docs site
