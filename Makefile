# `make help` lists the targets. Everything runs in .venv, made from hash-pinned requirements.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test lint format lock check-tools test-sqlite test-postgres test-client test-wheel test-crash test-storms test-faults test-browser crash faults soak bench shots

PYTHON ?= python3
N ?= 100
BENCH_SECONDS ?= 2
POINTS ?= all
WORKERS ?= 2
SOAK_MINUTES ?= 120
BIN := .venv/bin
SETTINGS := RESUMEAPP_MODE=test
CHROMIUM := $(firstword $(wildcard $(RESUMEAPP_CHROMIUM) /usr/bin/chromium /usr/bin/chromium-browser /usr/bin/google-chrome))

RUN_HASH := $(shell sha256sum requirements/run.txt | cut -c1-16)
DEV_HASH := $(shell cat requirements/run.txt requirements/dev.txt | sha256sum | cut -c1-16)
RUN_STAMP := .venv/.run-$(RUN_HASH)
DEV_STAMP := .venv/.dev-$(DEV_HASH)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "Python's venv is incomplete. Install it with:" >&2; \
	       echo "  apt-get install -y --no-install-recommends python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@site="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
	  printf '%s\n%s\n' "$(CURDIR)" "$(CURDIR)/client/src" > "$$site/resumeapp-development.pth"

$(RUN_STAMP): | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@rm -f .venv/.run-* && touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt -r requirements/dev.txt
	@rm -f .venv/.dev-* && touch $@

run: $(RUN_STAMP) ## Start the demonstration: web, queue, timer, payment service, workers
	@exec $(BIN)/python manage.py demo

lint: $(DEV_STAMP) ## Style, layers and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(SETTINGS) $(BIN)/mypy

format: $(DEV_STAMP) ## Sort imports and format
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --exit-zero --quiet --select I .

check-tools: $(DEV_STAMP)
	@$(BIN)/python -m tests.postgres --check
	@test -n "$(CHROMIUM)" || { echo "Chromium is missing. Install it with:" >&2; \
	  echo "  apt-get install -y --no-install-recommends chromium fonts-dejavu-core" >&2; exit 1; }

test-sqlite: $(DEV_STAMP) ## All but browser tests, crash trials and storms, on SQLite
	RESUMEAPP_TEST_DB=sqlite $(BIN)/python -m pytest -m "not browser and not crash and not storm and not postgres_only" -n $(WORKERS)

test-postgres: $(DEV_STAMP) ## All but browser tests, crash trials and storms, on a PostgreSQL of their own
	RESUMEAPP_TEST_DB=postgres $(BIN)/python -m pytest -m "not browser and not crash and not storm and not sqlite_only" -n $(WORKERS) \
	  --ignore tests/benchmarks/test_plans.py
	RESUMEAPP_TEST_DB=postgres $(BIN)/python -m pytest tests/benchmarks/test_plans.py

test-client: $(DEV_STAMP) ## The client's own tests
	cd client && ../$(BIN)/python -m pytest

WHEEL_STAMP := .venv-wheel/.made-$(shell sha256sum requirements/client.txt | cut -c1-16)

$(WHEEL_STAMP):
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/client.txt
	@touch $@

test-wheel: $(WHEEL_STAMP) ## The client's wheel, in an environment without Django
	rm -rf client/dist client/build
	.venv-wheel/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir client/dist ./client
	.venv-wheel/bin/python -m pip install --quiet --no-deps --no-index --force-reinstall client/dist/*.whl
	.venv-wheel/bin/python -c 'import importlib.util as u; assert u.find_spec("django") is None'
	cd client && ../.venv-wheel/bin/python -m pytest -q -m "not server" -o pythonpath= tests

test-crash: $(DEV_STAMP) ## The short form of the crash trials, on both databases
	@$(BIN)/python -m tests.postgres --check
	$(BIN)/python -m pytest -m crash tests/crash

# One after the other: each has a PostgreSQL, a web server, workers and patience of its own, and two at once starve each other.
test-storms: $(DEV_STAMP) ## Faults from outside, many of each, on a PostgreSQL of their own
	@$(BIN)/python -m tests.postgres --check
	$(BIN)/python -m pytest -m storm tests/storms -rP

test-faults: $(DEV_STAMP) ## The named ones of the seeded faults, each caught by its test
	@$(BIN)/python -m tests.postgres --check
	$(BIN)/python -m tests.faults --named --workers $(WORKERS)

test-browser: check-tools ## Tests in a real Chromium
	RESUMEAPP_CHROMIUM=$(CHROMIUM) $(BIN)/python -m pytest -m browser tests/browser

test: check-tools ## Everything: lint, SQLite, PostgreSQL, client, crash trials, storms, seeded faults, browser
	@phase() { local began=$$SECONDS; echo "== $$1"; $(MAKE) --no-print-directory "$$1"; \
	  echo "== $$1 took $$((SECONDS - began)) s"; }; \
	  phase lint; phase test-sqlite; phase test-postgres; phase test-client; phase test-wheel; phase test-crash; phase test-storms; phase test-faults; phase test-browser

crash: $(DEV_STAMP) ## Kill processes at their worst moments, N trials of each point on each database (N=100, POINTS=all)
	@$(BIN)/python -m tests.postgres --check
	$(BIN)/python -m tests.crash --trials $(N) --points $(POINTS)

faults: $(DEV_STAMP) ## Seed each known fault in a copy of the tree and see the named test fail (ONLY=name for one)
	@$(BIN)/python -m tests.postgres --check
	$(BIN)/python -m tests.faults --workers $(WORKERS) $(if $(ONLY),--only $(ONLY))

soak: $(DEV_STAMP) ## Storms, sequences, crash points and all seeded faults in turn, with other seeds each time, for SOAK_MINUTES (120)
	@$(BIN)/python -m tests.postgres --check
	$(BIN)/python -m tests.storms soak --minutes $(SOAK_MINUTES)

bench: $(DEV_STAMP) ## Measure beside the yardstick, on a PostgreSQL of its own
	$(BIN)/python -m benchmarks --seconds $(BENCH_SECONDS)

shots: $(DEV_STAMP) ## Picture every page in every state, light and dark, at three widths, into var/shots; fail for what axe-core refuses
	@test -n "$(CHROMIUM)" || { echo "Chromium is missing. Install it with:" >&2; \
	  echo "  apt-get install -y --no-install-recommends chromium fonts-dejavu-core" >&2; exit 1; }
	RESUMEAPP_CHROMIUM=$(CHROMIUM) $(BIN)/python -m tests.shots

lock: ## Lock requirements/*.in with hashes
	@test -x .venv-lock/bin/uv || { $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet uv; }
	@for name in run dev client; do .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header requirements/$$name.in -o requirements/$$name.txt; done
