# Everything a checkout needs, on a machine with Python 3.11+ and make: each goal sets up .venv first, once.
#
#   make test     lint, types, tests             make demo     replay real flights through Structured Streaming
#   make check    lint, types, tests of a minute make slow     the tests that take minutes
#   make bench    measure against peers          make doctor   check this machine, and say how to mend it
#   make lint     ruff and mypy alone            make oldest   the core tests with the oldest PySpark that will do
#   make fuzz     random cases until one fails   make fuzz-intake   hostile bytes at all that reads inputs
#   make chaos KILLS=1000   kill, freeze and starve streams on a real Spark, and hold them to docs/reliability.md
#   make mutants  small faults in copies of src: random cases must show them
#   make wheel    build what is published        make clean    remove .venv and caches
#
# PYTHON=/path/to/python3.12 chooses the interpreter of .venv; ARGS="..." is passed on to demo, bench, doctor, mutants and pytest.
# Tests run in as many processes as cores and memory allow; WORKERS=3 sets their number, and WORKERS=1 is pytest's own process.

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
EXTRAS := cli,demo,dev,java,kafka,mqtt
# What is installed beside the package, to hold a version back.
WITH :=
# The rooms of tests that start Java.
JAVA := runtime experiments jobs test_demo.py test_snippets.py
# The processes that tests run in; tests/processes.py counts them where this says auto.
WORKERS := auto
PYTEST = $(BIN)/python -m pytest $(if $(filter-out 0 1,$(WORKERS)),-n $(WORKERS) --dist loadfile --no-loadscope-reorder)
OLDEST := 4.0.0
# The files that hold core tests: others may import what only `.venv` has.
CORE = $(shell grep -rl --include='test_*.py' 'pytest\.mark\.core' tests)

PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
IS_RECENT := import sys; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test check slow lint ruff types quick oldest core kernels wheel fuzz fuzz-intake chaos mutants demo bench doctor clean

help:
	@sed -n 's/^#   //p' Makefile

test: lint kernels
	@$(PYTEST) $(ARGS)

# Linters and the tests of the rooms that start no Java, side by side; each says all it has to say.
check: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target ruff types quick

quick: kernels
	@$(PYTEST) -m "not slow and not spark" $(addprefix --ignore=tests/,$(JAVA)) $(ARGS)

# By night, and before a release: what is measured in them wants the machine for itself.
slow: kernels
	@$(BIN)/python -m pytest -m slow --durations=0 --durations-min=1 $(ARGS)

# .venv has the newest PySpark, .venv-oldest the oldest.
oldest:
	@$(MAKE) --no-print-directory VENV=.venv-oldest EXTRAS=dev,java WITH=pyspark==$(OLDEST) core

core: $(INSTALLED)
	@$(PYTEST) -m "core and not slow" $(CORE) $(ARGS)

MINUTES := 60
SEED := 0
fuzz: $(INSTALLED)
	@$(BIN)/python -m tests.differential --seconds $$(($(MINUTES) * 60)) --seed $(SEED) $(ARGS)

mutants: $(INSTALLED)
	@$(BIN)/python -m tests.differential.mutants $(ARGS)

lint: ruff types

ruff: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(INSTALLED)
	@$(BIN)/mypy

# Compiled once, before workers ask for them: each of them would compile them for itself.
kernels: $(INSTALLED)
	@$(BIN)/skypane warm

wheel: $(INSTALLED)
	@if command -v uv >/dev/null 2>&1; then uv build --quiet --wheel --out-dir dist .; \
	    else $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .; fi
	@ls dist/*.whl

demo: $(INSTALLED)
	@$(BIN)/skypane demo $(ARGS)

bench: $(INSTALLED)
	@$(BIN)/python -m bench $(ARGS)

doctor: $(INSTALLED)
	@$(BIN)/skypane doctor $(ARGS)

fuzz-intake: $(INSTALLED)
	@$(BIN)/python -m tests.runtime.many.fuzzing $(MINUTES) $(SEED)

KILLS := 100
chaos: $(INSTALLED)
	@$(BIN)/python -m tests.nature --kills $(KILLS) --seed $(SEED) $(ARGS)

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
