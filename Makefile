# Everything on a fresh machine: `make demo`, `make test`, `make docs`. Each sets up its own .venv.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE :=
# Bytecode of what all verbs import is written at installation, on all cores, without that of their tests; that of torch
# and transformers when they are first imported. Without it each call spends seconds on compiling modules.
COMMON := numpy scipy pandas pyarrow numba llvmlite networkx nltk joblib matplotlib pydantic typer rich yaml jinja2
PIP := -m pip install --quiet --disable-pip-version-check --no-compile

TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)
EXTRAS ?= all,dask,sentencepiece
TESTS ?= tests
SIDE_BY_SIDE := -n 2 --dist worksteal

.PHONY: demo test short long check docs slow campaign bench golden test-lowest release clean

demo: .venv/installed
	$(BIN)/truesource run demo

# What a contributor runs at each change: the checks beside the tests that take less than a quarter of a second.
test: .venv/developed
	$(MAKE) --no-print-directory -j 2 check short

short: .venv/developed
	$(BIN)/pytest $(SIDE_BY_SIDE) -m "not long and not slow"

# The other two fifths of the tests, with most of the time: whole runs, pools of processes, laws of many draws. Three
# processes on two cores: most of the time one of them waits, for a command of its own or for the disk.
long: .venv/developed
	$(BIN)/pytest -n 3 --dist worksteal -m "long and not slow"

check: .venv/developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, from docs/ into docs/_build/html: warnings are errors, tutorials are executed.
docs: .venv/developed
	$(BIN)/python -m sphinx --quiet --jobs 2 --fail-on-warning --keep-going --builder html docs docs/_build/html

slow: .venv/developed
	$(BIN)/pytest -m slow --timeout 3600

campaign: .venv/developed
	$(BIN)/python benchmarks/campaign mutations --number 500
	$(BIN)/python benchmarks/campaign kills --number 200
	$(BIN)/python benchmarks/campaign errors --number 100

# The digests that tests/truesource/test_golden.py expects of all that the verbs write, after a change that is meant.
golden: .venv/developed
	rm -rf .golden && PYTHONPATH=tests/oracles $(BIN)/python tests/oracles/golden.py .golden --write

bench: .venv/installed
	$(BIN)/python benchmarks/exact.py

# The lowest versions that pyproject.toml allows; of torch TORCH, since old ones need an index of their own.
test-lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tests/packaging/lowest.py torch=$(TORCH) > .venv-lowest/lowest.txt
	.venv-lowest/bin/python $(PIP) --constraint .venv-lowest/lowest.txt --editable '.[$(EXTRAS)]' pytest pytest-timeout pytest-xdist hypothesis hatchling import-linter
	.venv-lowest/bin/python -m pip check
	.venv-lowest/bin/pytest $(SIDE_BY_SIDE) -W default -m "not slow" $(TESTS)

# Builds sdist and wheel into dist/, and tries the wheel in clean environments, without and with extras.
release:
	rm -rf dist .venv-release .venv-core .venv-all
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check build twine
	.venv-release/bin/python -m build --outdir dist .
	.venv-release/bin/twine check --strict dist/*
	for extras in core all; do \
		$(PYTHON) -m venv .venv-$$extras && \
		.venv-$$extras/bin/python $(PIP) --constraint constraints.txt "$$(echo dist/*.whl)$$(test $$extras = core || echo [$$extras])" && \
		.venv-$$extras/bin/python -m pip check && \
		du -sh .venv-$$extras/lib/python*/site-packages && \
		.venv-$$extras/bin/python tests/packaging/smoke.py || exit 1; \
	done

# pip of the venv module may be years old, and resolves three times slower than a new one.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "truesource needs Python 3.11 or later; try make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --upgrade pip
	$(BIN)/python $(PIP) --constraint constraints.txt --editable '.[all]'
	cd $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
		$(CURDIR)/$(BIN)/python -m compileall -q -j 0 -x '^[^/].*/tests?/' $(COMMON) $(addprefix $(CURDIR)/,grammar generator lmtrain evaluation truesource)
	touch $@

# The bytecode of torch, transformers and what they import, which each process of the tests would write for itself, is
# written while the tools are installed.
.venv/developed: .venv/installed
	$(BIN)/python -c 'import truesource.lmtrain.training' & $(BIN)/python $(PIP) --constraint constraints.txt --editable '.[dev]' && wait
	touch $@

clean:
	rm -rf docs/_build .venv .venv-lowest .venv-release .venv-core .venv-all dist runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
