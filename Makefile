# Everything sets itself up: `make demo`, `make check` and `make test` work in a fresh clone.
PYTHON ?= python3
# Which share of the test files `make test-share` runs: a tenth, the next one with each commit.
SHARE ?= $(shell git rev-list --count HEAD 2> /dev/null || echo 0)/10
# The share that `make test` leaves out, if any.
WITHOUT ?=
# Empty: `make test` and `make test-all` check types and shapes of each call, which takes up to twice the time.
UNCHECKED ?= --unchecked
PYTEST_ARGS ?= -n auto --dist loadfile --no-loadscope-reorder
# The versions that were tested; empty for the newest ones that pyproject.toml allows.
CONSTRAINTS ?= constraints.txt
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo sites docs check test test-share test-all lint types format clean

demo: $(STAMP)  ## Compare methods on two made federations; results in demo/
	$(BIN)/idiolect demo --out demo

sites: $(STAMP)  ## A hub and four sites as real processes with mutual TLS; results in demo-sites/
	$(BIN)/idiolect federate sites --out demo-sites

docs: $(STAMP)  ## The documentation as a site in site/, to be opened as files
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

check: $(STAMP)  ## The tests of what has changed since the last commit, for every save
	$(BIN)/python -m pytest --tier first $$($(BIN)/python -m tests.changed)

test: $(STAMP)  ## The first tier of the tests
	$(BIN)/python -m pytest --tier first $(UNCHECKED) $(addprefix --without-share ,$(WITHOUT)) $(PYTEST_ARGS)

test-share: $(STAMP)  ## All tests of every tenth file; types and shapes of each call are checked
	$(BIN)/python -m pytest --share $(SHARE) $(PYTEST_ARGS)

test-all: $(STAMP)  ## All tests
	$(BIN)/python -m pytest $(UNCHECKED) $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks results docs examples
	$(BIN)/ruff format --check src tests benchmarks results docs examples
	$(BIN)/python -m docs.make.words

types: $(STAMP)
	$(BIN)/pyright

format: $(STAMP)
	$(BIN)/ruff format src tests benchmarks results docs examples
	$(BIN)/ruff check --fix src tests benchmarks results docs examples
	$(BIN)/python -m docs.make.stub

clean:
	rm -rf $(VENV) demo demo-sites site runs .pytest_cache .ruff_cache

$(STAMP): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit("idiolect needs Python 3.11 or newer; set PYTHON=/path/to/python3") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(addprefix --constraint ,$(CONSTRAINTS)) --editable '.[dev]'
	touch $(STAMP)
