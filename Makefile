# Needs Python 3.11 or newer (with venv) and make; everything else, Java included, comes with pip.
# `make` lists what there is to do.

# The first interpreter that is new enough and can create virtual environments. Each candidate is
# run, because a version manager's shim may be on the PATH without a Python behind it. Versions that
# our dependencies have no wheels for yet come last.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo $$python && exit; done; \
	for python in python3 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$python && exit; done)

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
# Compiled by the installation: it is repeated when one of them changes, because Python would go on
# using the old compiled form.
COMPILED := $(basename $(wildcard broker/*/*.pxd))
# One process per core; tests of the same outside server stay together (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup
CODE := broker kctl bench tests docs/examples setup.py

# Tests and benchmarks start hundreds of processes. Where this variable is set, each would compile
# every module, which costs more than the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test-tools demo test check docs site bench test-kafka test-portable simulate fuzz chaos soak clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

setup: $(INSTALLED)  ## create the virtual environment and install everything into it

test-tools:  ## install zsh, fish and kcat for the tests that need them (apt, as root)
	apt-get install --yes --no-install-recommends zsh fish kcat groff-base openssl

demo: $(INSTALLED)  ## guided tour of a broker; CLUSTER=1 for a tour of three brokers with failures
	@$(BIN)/kctl demo $(if $(CLUSTER),cluster)

test: check  ## run the checks, then every test that needs no Apache Kafka; T=tests/api for a part
	$(PYTEST) -m "not kafka and not chaos" $(T)

check: $(INSTALLED)  ## check lint, format, types, import layers and that generated docs are current
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/docs/test_import_rules.py
	$(BIN)/python -m kctl.docs --check

docs: $(INSTALLED)  ## regenerate man/, completions/, docs/settings.md and docs/reference/; build the site
	$(BIN)/python -m kctl.docs
	$(MAKE) --no-print-directory site

site: $(INSTALLED)  ## build the documentation site strictly into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(INSTALLED)  ## run the benchmarks beside Apache Kafka and other peers; print ratios
	$(BIN)/python -m bench

test-kafka: $(INSTALLED)  ## run the tests against a real Apache Kafka; needs Maven and Java 17
	$(BIN)/python -m pytest -m kafka -n auto --dist loadfile

PORTABLE ?= tests/clients tests/net tests/log/test_files.py tests/log/test_indexes.py tests/kctl/test_dev.py
test-portable: $(INSTALLED)  ## run broker and clients without what only Linux has, as on macOS; PORTABLE=tests/net
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin -p broker -p kctl
	# The two read /proc themselves.
	PYTHONPATH=tests/portable/posix $(BIN)/python -m pytest $(PORTABLE) \
		--ignore tests/net/test_file_descriptors.py --ignore tests/net/test_request_memory.py

SEEDS ?= 1-200
EXAMPLES ?= 100
simulate: $(INSTALLED)  ## simulate clusters with faults, then run property tests at length; SEEDS, EXAMPLES
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)
	KCTL_EXAMPLES=$(EXAMPLES) $(PYTEST) -m "hypothesis and not kafka and not spark"

FRAMES ?= 1000000
BATCHES ?= 200000
SEGMENTS ?= 2000
fuzz: $(INSTALLED)  ## fuzz requests, record batches and segment files; FRAMES=10000000
	$(BIN)/python -m tests.fuzz --batches $(BATCHES) --segments $(SEGMENTS) --frames $(FRAMES)

chaos: $(INSTALLED)  ## inject faults under load, then verify everything; CHAOS_SECONDS, CHAOS_SEED
	$(BIN)/python -m tests.chaos.namespaces $(BIN)/python -m pytest -m chaos tests/chaos

SOAK_SECONDS ?= 3600
soak: $(INSTALLED)  ## mixed load with churn; memory, descriptors and waits must level off; SOAK_SECONDS
	$(BIN)/python -m tests.soak --seconds $(SOAK_SECONDS)

clean:  ## remove everything that make and the tools created
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info

# Touched last, so that an interrupted installation is repeated. pip is quiet unless it fails; the
# message is for PySpark, which is large and which pip builds from source.
$(INSTALLED): pyproject.toml setup.py $(COMPILED:=.py) $(COMPILED:=.pxd)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed" \
		"(Debian, Ubuntu: apt install python3-venv), or run: make PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing kctl and its tools into $(VENV): about a minute the first time (Spark, Java)…"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 \
		--editable '.[spark,dev]'
	@touch $@
