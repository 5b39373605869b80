# `make help` lists the targets. Everything runs in .venv, made from hash-pinned requirements.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test lint format lock check-tools test-sqlite test-unhurried test-postgres test-client test-wheel test-crash test-storms test-faults test-browser crash faults soak bench shots

PYTHON ?= python3
N ?= 100
BENCH_SECONDS ?= 2
POINTS ?= all
WORKERS ?= 2
SOAK_MINUTES ?= 120
BIN := .venv/bin
SETTINGS := RESUMEAPP_MODE=test
# Tests that kill no database keep it in memory where there is room: each commits many times, and nobody's power fails.
MEMORY := $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $$4 }')" -gt 4000000 2>/dev/null && echo /dev/shm)
IN_MEMORY := export TMPDIR=$$(mktemp -d $(or $(MEMORY),$(TMPDIR),/tmp)/resumeapp-run-XXXXXX); chmod 755 $$TMPDIR; trap 'rm -rf "$$TMPDIR"' EXIT;
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

test-sqlite: $(DEV_STAMP) ## All but what is unhurried, browser tests, crash trials and storms, on SQLite
	@$(IN_MEMORY) set -x; RESUMEAPP_TEST_DB=sqlite $(BIN)/python -m pytest -m "not browser and not crash and not storm and not postgres_only" -n $(WORKERS) \
	  --ignore tests/sequences/test_sequences.py --ignore tests/ui

test-unhurried: $(DEV_STAMP) ## What has no patience to lose: sequences on SQLite, pages on SQLite and PostgreSQL
	@$(IN_MEMORY) set -x; RESUMEAPP_TEST_DB=sqlite $(BIN)/python -m pytest tests/sequences/test_sequences.py tests/ui -m "not postgres_only" -n $(WORKERS)
	@$(IN_MEMORY) set -x; RESUMEAPP_TEST_DB=postgres $(BIN)/python -m pytest tests/ui -m "not sqlite_only" -n $(WORKERS)

test-postgres: $(DEV_STAMP) ## All but pages, browser tests, crash trials and storms, on a PostgreSQL of their own
	@$(IN_MEMORY) set -x; RESUMEAPP_TEST_DB=postgres $(BIN)/python -m pytest -m "not browser and not crash and not storm and not sqlite_only" -n $(WORKERS) \
	  --ignore tests/benchmarks/test_plans.py --ignore tests/ui
	@$(IN_MEMORY) set -x; RESUMEAPP_TEST_DB=postgres $(BIN)/python -m pytest tests/benchmarks/test_plans.py

test-client: $(DEV_STAMP) ## The client's own tests
	@$(IN_MEMORY) set -x; cd client && ../$(BIN)/python -m pytest

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
	@$(IN_MEMORY) set -x; $(BIN)/python -m tests.faults --named --workers $(WORKERS)

test-browser: check-tools ## Tests in a real Chromium
	@$(IN_MEMORY) set -x; RESUMEAPP_CHROMIUM=$(CHROMIUM) $(BIN)/python -m pytest -m browser tests/browser -n $(WORKERS) --dist loadfile

PHASES := lint test-sqlite test-postgres test-client test-wheel test-crash test-storms test-faults test-browser

# The unhurried wait for nothing and nothing waits for them: they take what the others leave of the cores, from the first phase on. Where the system
# shares its time out between sessions, being nice counts within one: then the session is nice too. It ends with the others when they are interrupted.
ASIDE := setsid --wait setpriv --pdeathsig TERM $(SHELL) -c 'echo 19 2>/dev/null >/proc/self/autogroup || true; exec nice -n 19 "$$@"' aside

test: check-tools ## Everything: lint, SQLite, PostgreSQL, client, crash trials, storms, seeded faults, browser; the rest also after a failure
	@failed=0; told=; aside=$$(mktemp); \
	ends() { printf -v line '%-14s %5d s  %s\n' "$$1" "$$2" "$$3"; told+=$$line; echo "== $$1 $$3 after $$2 s"; test "$$3" = passed || failed=1; }; \
	{ $(ASIDE) $(MAKE) --no-print-directory test-unhurried >"$$aside" 2>&1 && came=passed || came=FAILED; echo "$$SECONDS $$came" >>"$$aside"; } & \
	mate=$$!; trap 'kill $$mate 2>/dev/null || true; rm -f "$$aside"' EXIT; \
	for phase in $(PHASES); do began=$$SECONDS; echo "== $$phase"; \
	  $(MAKE) --no-print-directory "$$phase" && came=passed || came=FAILED; ends "$$phase" $$((SECONDS - began)) $$came; done; \
	wait; echo "== test-unhurried, beside the others"; head -n -1 "$$aside"; ends test-unhurried $$(tail -n 1 "$$aside"); \
	printf '\n== everything took %d s\n%s' "$$SECONDS" "$$told"; exit $$failed

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
