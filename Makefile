# Everything on a fresh machine: `make demo`, `make test`. Each sets up its own .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check slow campaign bench settings clean

demo: .venv/installed
	$(BIN)/truesource demo

test: check
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: .venv/installed
	$(BIN)/pytest -m slow --timeout 3600

campaign: .venv/installed
	$(BIN)/python benchmarks/campaign mutations --number 500
	$(BIN)/python benchmarks/campaign kills --number 200
	$(BIN)/python benchmarks/campaign errors --number 100

settings: .venv/installed
	$(BIN)/python -m truesource.cli.settings_table > docs/settings.md

bench: .venv/installed
	$(BIN)/python benchmarks/exact.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truesource needs Python 3.11 or later; try make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
