# Everything a checkout needs, on a machine with Python 3.11+ and make: each goal sets up .venv first, once.
#
#   make check    lint, types, tests of a minute      make demo     replay real flights through Structured Streaming
#   make test     lint, types, tests of all sources   make doctor   check this machine, and say how to mend it
#   make pages    tests of docs, papers and measure   make docs     the site, in build/site
#   make slow     kills, clusters, real servers       make bench    all tables and charts of speed
#   make night    all again, for longer               make notebooks   run the notebooks of docs, and store their outputs
#   make oldest   core tests, oldest versions         make reference   the tables of docs/reference.md
#   make quick    tests that start no Java            make newest   tests with the newest of all
#   make lint     ruff, mypy and prose alone          make lock     hold what is installed to the newest versions of today
#   make fuzz     random cases until one fails        make matrix   core tests, versions in turn: writes docs/versions.md
#   make fuzz-intake   hostile bytes at all inputs    make cpus     tests as on other CPUs: writes docs/versions.md
#   make mutants  faults that random cases must show  make faults   random faults that tests should show
#   make chaos KILLS=1000   kill, freeze and starve streams on a real Spark, and hold them to docs/reliability.md
#   make anywhere the tests without Java as on machines of others: other zones, locales, orders, no home
#   make workflow the CI file against its schema      make wheel    build what is published
#   make release  build and try what is published     make clean    remove .venv and caches
#
# PYTHON=/path/to/python3.12 chooses the interpreter of .venv; ARGS="..." is passed on to demo, bench, doctor, mutants, faults and pytest.
# Tests run in as many processes as cores and memory allow; WORKERS=3 sets their number, and WORKERS=1 is pytest's own process.
# `make test` runs JOBS=2 of what comes before its tests at once: linters, and `make kernels`, `classes` and `figures`, which
# leave compiled what tests would compile each for itself.

VENV := .venv
EXTRAS := cli,cloud,connect,delta,demo,dev,docs,iceberg,java,kafka,mqtt,opentelemetry,postgresql,prometheus,schema-registry,zstd
# The papers' figures, a package of its own; core tests need none of it.
PAPERS := papers
# The versions of all that is installed: `make lock` writes them, `LOCK=` installs the newest that there are.
LOCK := locks/development.txt
# Packages whose versions the lock does not say, and what is installed beside the package: FREE=numpy WITH='numpy~=2.2.0'
FREE :=
WITH :=
# `make core SPARK=4.1`: the lock but for PySpark, in an environment of its own.
ifdef SPARK
VENV := .venv-spark-$(SPARK)
EXTRAS := dev,java
FREE := pyspark py4j
PAPERS :=
WITH := pyspark~=$(SPARK).0
endif
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Of a new checkout whose first goal is the demo: what that needs. The next goal installs all the rest.
FOR_DEMO := $(VENV)/.installed-for-demo
# Numba keeps kernels of one of its versions: those of `.venv` stay where they are.
ifneq ($(VENV),.venv)
export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/kernels
endif
# The processes that tests run in; tests/processes.py counts them where this says auto.
WORKERS := auto
JOBS := 2
PYTEST = $(BIN)/python -m pytest $(if $(filter-out 0 1,$(WORKERS)),-n $(WORKERS) --dist loadfile --no-loadscope-reorder)
# Seconds of CPU that a test and a folder of `make test` may take: 20 and 90, and twice as many, as the same tests took up to 1.4
# times as many from one machine and hour to the next, and a third more where three processes of them shared two cores.
LIMITS := 40,180
# The files that hold core tests: others may import what only `.venv` has.
CORE = $(shell grep -rl --include='test_*.py' 'pytest\.mark\.core' tests)

# Python keeps what it compiles, also in an image that says it shall not: each process of tests imports hundreds of modules.
unexport PYTHONDONTWRITEBYTECODE

PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
IS_RECENT := import sys; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help check test pages slow night oldest quick brief suite anywhere lint ruff types prose workflow references docs newest newer lock \
    environments installed installed-oldest core matrix cpus kernels figures classes wheel fuzz fuzz-intake chaos mutants faults demo bench doctor reference notebooks release clean

help:
	@sed -n 's/^#   //p' Makefile

# What comes before tests, side by side: linters, and what would else be compiled and read in each process of tests.
test: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=line ruff types prose kernels figures classes
	@$(PYTEST) -m test --limits $(LIMITS) $(ARGS)

suite: kernels figures classes
	@$(PYTEST) -m "test or pages" $(ARGS)

# Linters and a first look at what starts no Java, side by side; each says all it has to say.
check: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target ruff types prose workflow brief

brief: kernels
	@$(PYTEST) -m check $(ARGS)

quick: kernels
	@$(PYTEST) -m quick $(ARGS)

# What docs show runs as it stands, and what they say of goals, versions and files is so.
pages: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=line kernels figures classes
	@$(PYTEST) -m pages $(ARGS)

# Before a larger change is shared.
slow: export HYPOTHESIS_PROFILE := $(or $(HYPOTHESIS_PROFILE),slow)
slow: kernels classes
	@$(PYTEST) -m slow --table=test $(ARGS)

# What no change waits for; then kills and properties again, with more of them.
night: export HYPOTHESIS_PROFILE := $(or $(HYPOTHESIS_PROFILE),nightly)
night: export TIMES := $(or $(TIMES),4)
night: kernels figures classes
	@$(PYTEST) -m "night or slow or hypothesis" --table=test $(ARGS)

anywhere: kernels
	@$(BIN)/python -m tests.anywhere -m quick $(ARGS)

# A warning is an error: a dead link, a name that is not there, a page that no other leads to. Then all that was built is read.
docs: $(INSTALLED)
	@$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going --jobs auto --doctree-dir build/site.doctrees docs build/site $(ARGS)
	@$(BIN)/python -m tests.docs.site build/site
	@echo build/site/index.html

# The lowest versions of all that pyproject.toml allows, and the lowest Python that is here.
OF_OLDEST = VENV=.venv-oldest EXTRAS=dev,java PAPERS= LOCK=locks/oldest.txt PYTHON="$(or $(PYTHON),python3.11 python3.12 python3.13 python3)"
oldest:
	@$(MAKE) --no-print-directory $(OF_OLDEST) core

# Both environments side by side: pip works for minutes, in one core.
environments:
	@$(MAKE) --no-print-directory --jobs=2 installed installed-oldest

installed: $(INSTALLED)

installed-oldest:
	@$(MAKE) --no-print-directory $(OF_OLDEST) installed

# Says what has a newer version than the lock's, then what of it breaks what.
newest:
	@rm -f .venv-newest/.installed
	@$(MAKE) --no-print-directory --keep-going VENV=.venv-newest LOCK= newer ruff types workflow suite

newer: $(INSTALLED)
	@$(BIN)/python -m measure.versions.newer

# Both locks anew, with what is newest today. uv reads pyproject.toml for all of Python's versions and systems at once.
LOCKING = UV_CUSTOM_COMPILE_COMMAND="make lock" $(UV) pip compile --quiet --universal --upgrade --python-version 3.11 \
    --no-emit-index-url --no-emit-package skypane --annotation-style line pyproject.toml
UV = $(or $(shell command -v uv),$(BIN)/uv)
lock: | $(BIN)/python
	@command -v uv >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(LOCKING) --all-extras --group build --output-file locks/development.txt
	@$(LOCKING) --resolution lowest-direct --output-file $(VENV)/lowest.txt
	@$(LOCKING) --constraints $(VENV)/lowest.txt --extra dev --extra java --group build --output-file locks/oldest.txt
	@git --no-pager diff --stat -- locks

core: $(INSTALLED)
	@$(PYTEST) -m "core and test" $(CORE) $(ARGS)

MINUTES := 60
SEED := 0
fuzz: $(INSTALLED)
	@$(BIN)/python -m tests.differential --seconds $$(($(MINUTES) * 47)) --seed $(SEED) $(ARGS)
	@$(BIN)/python -m tests.differential.spark.expressions --seconds $$(($(MINUTES) * 7)) --seed $(SEED)
	@$(BIN)/python -m tests.differential.spark.values --seconds $$(($(MINUTES) * 3)) --seed $(SEED)
	@$(BIN)/python -m tests.differential.spark.extremes --seconds $$(($(MINUTES) * 3)) --seed $(SEED)

mutants: $(INSTALLED)
	@$(BIN)/python -m tests.differential.mutants $(ARGS)

faults: $(INSTALLED)
	@$(BIN)/python -m tests.faults $(ARGS)

lint: ruff types prose

ruff: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(INSTALLED)
	@$(BIN)/mypy

# Spelling, and the words of tests/prose/vocabulary.toml.
prose: $(INSTALLED)
	@$(BIN)/codespell *.md docs src papers measure
	@$(BIN)/python -m tests.prose

# The schema comes with the checker; actionlint, which is no package of Python's, sees more, where there is one.
workflow: $(INSTALLED)
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@if command -v actionlint >/dev/null 2>&1; then actionlint; fi

# Links, and what texts refer to: files, sections, commands.
references: $(INSTALLED)
	@$(BIN)/python -m tests.references

# Compiled once, before workers ask for them: each of them would compile them for itself.
kernels: $(INSTALLED)
	@$(BIN)/skypane warm

# So are those that no stream needs, of figures and their simulations.
figures: $(VENV)/.figures

$(VENV)/.figures: $(INSTALLED) $(shell find src papers -name '*.py')
	@$(BIN)/python -m tests.kernels_of_figures
	@touch $@

# Read once, before many Javas would each read them for itself.
classes: $(INSTALLED)
	@$(BIN)/python -m tests.java_archive

wheel: $(INSTALLED)
	@if command -v uv >/dev/null 2>&1; then uv build --quiet --wheel --build-constraints $(CONSTRAINTS) --out-dir dist .; \
	    else $(PIP) wheel --quiet --no-deps --wheel-dir dist .; fi
	@ls dist/*.whl

# All of a release but the tag and the upload; in an environment of its own, which has what builds and checks.
release: $(INSTALLED)
	@$(BIN)/python -m venv .venv-release
	@.venv-release/bin/python -m pip install --quiet --disable-pip-version-check build twine
	@.venv-release/bin/python .ci/release.py $(ARGS)

demo: $(or $(wildcard $(INSTALLED)),$(FOR_DEMO))
	@$(BIN)/skypane demo $(ARGS)

bench: $(INSTALLED)
	@$(BIN)/python -m measure.bench $(ARGS)

reference: $(INSTALLED)
	@$(BIN)/python -m measure.reference docs
	@$(BIN)/python -m measure.values docs

# Of each notebook the file that the site shows; ARGS=late-data runs that one alone.
notebooks: kernels
	@$(BIN)/python -m measure.notebooks docs $(ARGS)

doctor: $(INSTALLED)
	@$(BIN)/skypane doctor $(ARGS)

# Settings of other versions, for docs/versions.md: each in an environment of its own, which is removed again.
matrix: $(INSTALLED)
	@$(BIN)/python -m measure.versions $(ARGS)

# The tests of `make quick`, or of another goal, in processes that take this CPU for others: ARGS="--goal test Haswell"
cpus: $(INSTALLED)
	@$(BIN)/python -m tests.cpus $(ARGS)

fuzz-intake: $(INSTALLED)
	@$(BIN)/python -m tests.runtime.many.fuzzing $(MINUTES) $(SEED)

KILLS := 100
chaos: classes
	@$(BIN)/python -m tests.nature --kills $(KILLS) --seed $(SEED) $(ARGS)

clean:
	rm -rf build $(VENV) .venv-* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src papers tests measure -name __pycache__ -type d -prune -exec rm -rf {} +

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

# Reinstalled when pyproject.toml or the lock changes; sources are installed in place. The lock holds for what builds
# packages, too: pip takes that from the environment, older ones by the first name, newer ones by the second. Of most modules
# nobody needs the bytecode: Python writes what it imports.
CONSTRAINTS := $(VENV)/constraints.txt
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip --disable-pip-version-check
$(FOR_DEMO): EXTRAS := demo,java
$(FOR_DEMO): PAPERS :=
$(INSTALLED) $(FOR_DEMO): pyproject.toml $(PAPERS:%=%/pyproject.toml) $(LOCK) | $(BIN)/python
	@echo "installing skypane[$(EXTRAS)] $(WITH) into $(VENV)"
	@sed -E 's/ *#.*//; /^$$/d$(FREE:%=; /^%==/d)' $(or $(LOCK),/dev/null) >$(CONSTRAINTS)
	@if command -v uv >/dev/null 2>&1; then \
	    uv pip install --quiet --python $(BIN)/python --constraints $(CONSTRAINTS) --build-constraints $(CONSTRAINTS) \
	        $(if $(LOCK),,--upgrade) --editable '.[$(EXTRAS)]' $(PAPERS:%=--editable ./%) $(WITH); \
	else \
	    $(PIP) install --quiet --no-compile $(if $(LOCK),,--upgrade --upgrade-strategy eager) --editable '.[$(EXTRAS)]' $(PAPERS:%=--editable ./%) $(WITH); \
	fi
	@touch $@
