# Every target makes the virtual environment itself; a machine needs Python 3.11+ and make, nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
JOBS ?= 2
SCALE ?= small
CASES ?= 7000
MATRIX := 3.5 4.3

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
PIP := -m pip --disable-pip-version-check --no-input -q

.PHONY: help setup fetch demo test matrix lint bench docs fuzz soak lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(READY) ## the virtual environment, nothing else

$(READY): requirements.lock requirements/build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Grebe needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another one: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) $(PIP) install --require-hashes -r requirements/build.lock
	$(PY) $(PIP) install --require-hashes --no-build-isolation -r requirements.lock
	$(PY) $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

fetch: $(READY)
	$(PY) -m testbed fetch

demo: $(READY) ## the main job, on a generated table
	$(VENV)/bin/grebe demo

test: fetch ## all tests, real servers included
	$(PY) -m pytest -n $(JOBS) -m "not soak"

matrix: $(MATRIX:%=matrix-%) ## the core of the tests on the other supported Spark versions

.PHONY: $(MATRIX:%=matrix-%)
$(MATRIX:%=matrix-%): matrix-%: .venv-spark-%/.ready
	.venv-spark-$*/bin/python -m testbed fetch
	.venv-spark-$*/bin/python -m pytest -n $(JOBS) -m "core and not soak"

# The main environment with another Spark laid over it: what the overlay holds comes first on the path.
.venv-spark-%/.ready: requirements/spark-%.lock $(READY)
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python $(PIP) install --require-hashes -r requirements/build.lock
	$(@D)/bin/python $(PIP) install --require-hashes --no-build-isolation -r $<
	$(@D)/bin/python tools/overlay.py $(PY)
	@touch $@

lint: $(READY) ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(READY) ## one benchmark: make bench NAME=commit SCALE=small|full PART="one another"
	$(PY) -m bench $(NAME) --scale $(SCALE) $(PART:%=--part %)

docs: $(READY) ## the documentation, into site/
	$(PY) tools/reference.py
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

fuzz: $(READY) ## mutated bytes of every kind: make fuzz CASES=7000 (of each of 25 targets)
	$(PY) -m testbed.fuzz.run --cases $(CASES)

soak: fetch ## the long forms of the tests
	$(PY) -m pytest -n $(JOBS) -m soak

# Hashes, and no address of an index: the lock must work behind any mirror.
COMPILE = .venv-lock/bin/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
  --no-header --no-annotate --no-config

lock: .venv-lock/.ready ## pins and hashes of all dependencies; LOCK_OPTIONS=--upgrade for newer ones
	$(COMPILE) pyproject.toml --extra all --group dev --constraint requirements/main.in $(LOCK_OPTIONS) -o requirements.lock
	$(COMPILE) --group build --constraint requirements.lock -o requirements/build.lock
	$(COMPILE) requirements/tpcds.in -o requirements/tpcds.lock
	$(COMPILE) requirements/rottnest.in -o requirements/rottnest.lock
	$(COMPILE) requirements/commands.in --constraint requirements.lock -o requirements/commands.lock
	$(COMPILE) requirements/rivals.in --constraint requirements.lock --no-emit-package pyarrow --no-emit-package numpy \
	  -o requirements/rivals.lock
	for spark in $(MATRIX); do \
	  $(COMPILE) requirements/spark-$$spark.in -o requirements/spark-$$spark.lock; done

.venv-lock/.ready: requirements/lock-tools.in
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python $(PIP) install -r $<
	@touch $@

clean: ## everything that was made here, downloads in the cache folder excepted
	rm -rf .venv .venv-spark-* .venv-lock site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
