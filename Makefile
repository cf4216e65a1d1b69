# Everything a checkout needs, on a machine with Python 3.11+ and make: each goal sets up .venv first, once.
#
#   make test     lint, types, tests             make demo     replay real flights through Structured Streaming
#   make bench    measure against peers          make doctor   check this machine, and say how to mend it
#   make lint     ruff and mypy alone            make oldest   the core tests with the oldest PySpark that will do
#   make clean    remove .venv and caches        make fuzz     random cases until one fails: MINUTES=60 SEED=0
#   make slow     the tests that take minutes    make mutants  small faults in copies of src: random cases must show them
#
# PYTHON=/path/to/python3.12 chooses the interpreter of .venv; ARGS="..." is passed on to demo, bench, doctor, mutants and pytest.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
EXTRAS := cli,demo,dev,java,kafka,mqtt
# What is installed beside the package, to hold a version back.
WITH :=
OLDEST := 4.0.0
# The files that hold core tests: others may import what only `.venv` has.
CORE = $(shell grep -rl --include='test_*.py' 'pytest\.mark\.core' tests)

PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
IS_RECENT := import sys; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test slow lint oldest core fuzz mutants demo bench doctor clean

help:
	@sed -n 's/^#   //p' Makefile

test: lint
	@$(BIN)/python -m pytest $(ARGS)

slow: $(INSTALLED)
	@$(BIN)/python -m pytest -m slow $(ARGS)

# .venv has the newest PySpark, .venv-oldest the oldest.
oldest:
	@$(MAKE) --no-print-directory VENV=.venv-oldest EXTRAS=dev,java WITH=pyspark==$(OLDEST) core

core: $(INSTALLED)
	@$(BIN)/python -m pytest -m "core and not slow" $(CORE) $(ARGS)

MINUTES := 60
SEED := 0
fuzz: $(INSTALLED)
	@$(BIN)/python -m tests.differential --seconds $$(($(MINUTES) * 60)) --seed $(SEED) $(ARGS)

mutants: $(INSTALLED)
	@$(BIN)/python -m tests.differential.mutants $(ARGS)

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

demo: $(INSTALLED)
	@$(BIN)/skypane demo $(ARGS)

bench: $(INSTALLED)
	@$(BIN)/python -m bench $(ARGS)

doctor: $(INSTALLED)
	@$(BIN)/skypane doctor $(ARGS)

clean:
	rm -rf $(VENV) .venv-oldest .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# A found interpreter is tried, not trusted: version managers put names on PATH that do not run.
$(BIN)/python:
	@for python in $(PYTHONS); do \
	    if $$python -c '$(IS_RECENT)' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo "need Python 3.11 or newer, tried: $(PYTHONS); set PYTHON=/path/to/python" >&2; exit 1; fi; \
	echo "creating $(VENV) with $$($$found --version)"; \
	if command -v uv >/dev/null 2>&1; then \
	    uv venv --quiet --allow-existing --python "$$($$found -c 'import sys; print(sys.executable)')" $(VENV); \
	elif $$found -c 'import ensurepip' 2>/dev/null; then \
	    $$found -m venv $(VENV); \
	else \
	    echo "$$found has no ensurepip, so it cannot make a virtual environment: install the package python3-venv, or uv" >&2; \
	    exit 1; \
	fi

# Reinstalled when pyproject.toml changes; sources are installed in place.
$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "installing skypane[$(EXTRAS)] $(WITH) into $(VENV)"
	@if command -v uv >/dev/null 2>&1; then \
	    uv pip install --quiet --python $(BIN)/python --editable '.[$(EXTRAS)]' $(WITH); \
	else \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]' $(WITH); \
	fi
	@touch $@
