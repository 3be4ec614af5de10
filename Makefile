# Everything a person needs: `make demo`, `make test`. Each sets up .venv from the lock first.
# Needs: make, Python 3.10+, Java 17+. PYTHON=python3.12 picks another Python, JAVA_HOME another Java.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.made-from-lock

# Spark's workers run on the Python of the environment.
export PYSPARK_PYTHON := $(abspath $(BIN))/python
# No statistics go out from a demo or a test.
export DBT_SEND_ANONYMOUS_USAGE_STATS := false

.DEFAULT_GOAL := help
.PHONY: help venv check-machine demo test test-others test-all lint format types unit mutation docs build lock clean

help: ## this list
	@echo "make …"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18
	@for each in benchmarks/*.py; do [ -e "$$each" ] || continue; \
	  printf '  bench-%s\n' "$$(basename "$$each" .py | tr _ -)" | expand -t 18; done

venv: $(READY) ## .venv with everything, as the lock says

check-machine: ## whether Python and Java are new enough; says what to install
	@PYTHON="$(PYTHON)" sh .ci/check-machine

# pip installs uv, and uv the rest. The lock is complete, so nothing is resolved (--no-deps), and every file's hash is checked.
$(READY): requirements.lock pyproject.toml | check-machine
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	awk '/^[a-z]/ {wanted = /^uv==/} wanted' requirements.lock >$(VENV)/uv.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/uv.lock
	$(BIN)/uv --no-config pip install --quiet --compile-bytecode --no-deps --require-hashes --python $(BIN)/python -r requirements.lock
	$(BIN)/uv --no-config pip install --quiet --no-deps --python $(BIN)/python --editable .
	@touch $@

demo: check-machine venv ## TPC-H built with dbt, then files read and seconds with and without skipping, and in other engines
	$(BIN)/python integration/tpch/demo.py $(ARGS)

test: check-machine venv ## all that a change can break: lint, types, unit tests, suites on the newest Spark; about 15 minutes on 2 quiet cores
	@$(BIN)/python .ci/checks.py test

test-others: check-machine venv ## what CI runs besides: a share of older Sparks and slow tests that the commit decides, the wheel, the documentation
	@$(BIN)/python .ci/checks.py others

test-all: check-machine venv ## every test on every Spark, every order of writers, every fault, mutants; hours
	@$(BIN)/python .ci/checks.py all

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

docs: venv ## the documentation as HTML in site/
	$(BIN)/python -m mkdocs build --strict --quiet

build: venv ## wheel and source archive in dist/
	$(BIN)/python -m build --quiet

bench-%: check-machine venv ## benchmarks/%.py
	$(BIN)/python benchmarks/$(subst -,_,$*).py $(ARGS)

RESOLVE = $(BIN)/uv --no-config pip compile --universal --python-version 3.10 --generate-hashes --quiet

# dbt-core 1.12 requires a package that is built from what it fetches elsewhere, and needs it only for --use-v2-parser:
# .ci/not-installed.txt. Lock files of older releases of dbt-core hold only what differs from requirements.lock.
lock: venv ## the lock anew, from pyproject.toml; most locks of .ci/ too
	$(RESOLVE) pyproject.toml --group dev --excludes .ci/not-installed.txt --upgrade -o requirements.lock
	$(BIN)/python .ci/dbt_locks.py
	printf '%s\n' daft deltalake pyarrow | $(RESOLVE) - --no-annotate --no-header --upgrade -o .ci/daft.lock
	printf '%s\n' trino pyarrow | $(RESOLVE) - --no-annotate --no-header --upgrade -o .ci/trino.lock

clean: ## removes what make, the tests and the demo made
	rm -rf $(VENV) .venv-* build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	rm -rf integration/tpch/data integration/tpch/target integration/tpch/logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
