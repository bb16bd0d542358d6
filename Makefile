# Two commands do everything on a machine with Python >= 3.11: `make demo` and `make test`.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
DEMO := runs/demo

.PHONY: help demo test quick lint theory bench clean

help:
	@echo "make demo    run three policies on the example trace and compare them"
	@echo "make test    all checks and tests, as continuous integration runs them"
	@echo "make quick   checks and the fast tests, under one minute"
	@echo "make theory  all replications against queueing theory"
	@echo "make bench   speed against the bare event loop"
	@echo "make clean   remove caches and built packages; runs/ and .venv stay"

demo: .venv/installed
	$(BIN)/analysim compare --trace demo --topology gpu-1152 \
	  --policy fifo --policy preempt --policy migrate --out $(DEMO) --force

test: .venv/developed lint
	$(BIN)/python -m pytest -n 2 -m "not theory"

quick: .venv/developed lint
	$(BIN)/python -m pytest -n 2 -m "not theory and not slow"

lint: .venv/developed
	$(BIN)/ruff check analysim policies scripts tests
	$(BIN)/mypy --strict analysim
	$(BIN)/mypy --strict policies
	$(BIN)/lint-imports --no-cache

theory: .venv/developed
	$(BIN)/python -m pytest -n 2 tests/theory

bench: .venv/developed
	$(BIN)/python scripts/bench.py

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: AnalySIM needs Python 3.11 or newer. Name one, for example: make demo PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { \
	  echo "error: this Python cannot make a virtual environment; install its venv package (Debian: python3-venv)." >&2; exit 1; }
	@touch $@

.venv/installed: .venv/python pyproject.toml
	$(PIP) --editable .
	@touch $@

.venv/developed: .venv/python pyproject.toml
	$(PIP) --editable ".[dev]"
	@touch $@ .venv/installed

clean:
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path "./.venv/*" -prune -exec rm -rf {} +
