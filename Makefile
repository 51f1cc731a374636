# Needs Python 3.11 or newer (with venv) and make; everything else, Java included, comes with pip.
# `make` lists what there is to do.

# The first of these that is new enough and can make virtual environments. It is tried out and not
# only looked up: a version manager's stand-in may be on the PATH without a Python behind it.
# Newer ones than the wheels we need are built for come last.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo $$python && exit; done; \
	for python in python3 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$python && exit; done)

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
# One process per core; tests of the same outside server stay together (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup
CODE := broker kctl bench tests setup.py

# Tests and measurements start hundreds of processes; compiling every module anew in each of them,
# which some machines ask for, would cost more than the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test check docs bench test-kafka chaos clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

setup: $(INSTALLED)  ## make the virtual environment and install everything into it

demo: $(INSTALLED)  ## a guided tour: start a broker, look at it with kctl, stop it
	@$(BIN)/kctl demo

test: check  ## the checks, then every test that needs no Apache Kafka
	$(PYTEST) -m "not kafka and not chaos"

check: $(INSTALLED)  ## lint, format, types, and whether the generated docs are current
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/python -m kctl.docs --check

docs: $(INSTALLED)  ## write man/ and completions/ anew from the command tree
	$(BIN)/python -m kctl.docs

bench: $(INSTALLED)  ## measure, side by side with others, and print ratios
	$(BIN)/python -m bench

test-kafka: $(INSTALLED)  ## the tests against a real Apache Kafka; needs Maven and Java 17
	$(BIN)/python -m pytest -m kafka -n auto --dist loadfile

chaos: $(INSTALLED)  ## faults under load for minutes, then everything compared; CHAOS_SECONDS, CHAOS_SEED
	$(BIN)/python -m pytest -m chaos tests/chaos

clean:  ## remove what make and the tools have made
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info

# Touched last, so an installation that was broken off is taken up again. What pip says is kept
# back unless it fails; PySpark is large, and built from source by pip, so say that it takes a while.
$(INSTALLED): pyproject.toml setup.py
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed" \
		"(Debian, Ubuntu: apt install python3-venv), or say: make PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing kctl and its tools into $(VENV): about a minute the first time (Spark, Java)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 \
		--editable '.[spark,dev]'
	@touch $@
