# Everything a person needs: `make demo`, `make test`. Each sets up .venv from the lock first.
# Needs: make, Python 3.10+, Java 17+. PYTHON=python3.12 picks another Python, JAVA_HOME another Java.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.made-from-lock
SUITES := $(wildcard integration/adapter integration/conformance integration/engine integration/faults integration/stores integration/tpch)

# Spark's workers run on the Python of the environment.
export PYSPARK_PYTHON := $(abspath $(BIN))/python
# No statistics go out from a demo or a test.
export DBT_SEND_ANONYMOUS_USAGE_STATS := false

.DEFAULT_GOAL := help
.PHONY: help venv check-machine demo test lint format types unit mutation integration docs build lock clean

help: ## this list
	@echo "make …"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18
	@for each in benchmarks/*.py; do [ -e "$$each" ] || continue; \
	  printf '  bench-%s\n' "$$(basename "$$each" .py | tr _ -)" | expand -t 18; done

venv: $(READY) ## .venv with everything, as the lock says

check-machine: ## whether Python and Java are new enough; says what to install
	@PYTHON="$(PYTHON)" sh .ci/check-machine

# The lock is complete, so pip need not resolve (--no-deps), and every file's hash is checked.
$(READY): requirements.lock pyproject.toml | check-machine
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: check-machine venv ## TPC-H built with dbt, then files read and seconds with and without skipping
	$(BIN)/python integration/tpch/demo.py $(ARGS)

test: check-machine lint types unit integration ## all of the checks below, on your machine

lint: venv ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: venv ## ruff: makes the format right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: venv ## mypy --strict
	$(BIN)/python -m mypy --strict

unit: venv ## unit tests, laws, architecture; no Spark
	$(BIN)/python -m pytest -q tests

mutation: venv ## mutants of predicate/ and pruning/ against the unit tests and laws; hours, or ARGS="leaves verdict"
	$(BIN)/python tests/mutation/mutants.py $(ARGS)

integration: check-machine venv ## suites on a real Spark, each in a process of its own
	@set -e; for suite in $(SUITES); do echo "== $$suite"; PYTHONPATH=$$suite $(BIN)/python -m pytest -q -W default -W "ignore:unclosed:ResourceWarning" "$$suite"; done

docs: venv ## the documentation as HTML in site/
	$(BIN)/python -m mkdocs build --strict --quiet

build: venv ## wheel and source archive in dist/
	$(BIN)/python -m build --quiet

bench-%: check-machine venv ## benchmarks/%.py
	$(BIN)/python benchmarks/$(subst -,_,$*).py $(ARGS)

lock: venv ## the lock anew, from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.10 --generate-hashes --upgrade --quiet -o requirements.lock

clean: ## removes what make, the tests and the demo made
	rm -rf $(VENV) dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	rm -rf integration/tpch/data integration/tpch/target integration/tpch/logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
