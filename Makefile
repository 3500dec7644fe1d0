PYTHON ?= python3

.PHONY: install test check format quickstart docs

install:  ## into the current environment, for development
	$(PYTHON) -m pip install -c constraints.txt -e ".[fairseq-deps,test,plots,docs,style,huggingface]"
	$(PYTHON) -m pip install -c constraints.txt --no-deps ve-fairseq

test:  ## all tests, in an environment of its own unless $$VIRTUAL_ENV or $$FAIRSEQ_EISL_VENV is set
	bash scripts/test.sh

check:  ## reads, never writes
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q -n0 tests/test_imports.py tests/test_house.py

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

quickstart:
	bash scripts/quickstart.sh

docs:  ## the site, into site/
	$(PYTHON) -m mkdocs build -q -f docs/mkdocs.yml
