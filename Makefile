# The tasks of a contributor; CONTRIBUTING.md says when to use which. `make` alone lists them.
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)
# What `make check` runs in half a minute: the tests of everything that a scrape passes through, and what holds the tree together.
QUICK ?= tests/contract tests/drift tests/golden tests/unit/test_*.py tests/alerts/test_runbook_commands.py
TARGET ?= rdma_netlink
SECONDS ?= 600
DIST ?= dist
BUILD ?= build

.DEFAULT_GOAL := help
.PHONY: help check test test-all nightly generate dist house lab bench fuzz mutants week pictures site release release-check

help: ## list these tasks
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

check: ## lint, types and the quickest tests: half a minute on two cores
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy & types=$$!; $(PYTHON) -m pytest -q -n 2 --tier=test -m "not slow" $(QUICK) && wait $$types

test: ## the README's test command: five minutes, against the built wheel in an environment of its own
	sh tests/run.sh

test-all: test ## in addition what only CI runs, except the lab: as root, for it installs programs
	tests/tools.sh ci
	sh tests/run.sh --tier=ci

nightly: ## everything, in hours: make nightly STAGES="clean-roots fuzz"
	tests/nightly.sh $(STAGES)

# The order matters: dashboards read the alerts' thresholds, docs/migration.md both. What fires in the alerts' tests needs promtool.
generate: ## after a change of a row, a rule or a line of tests/recordings/*.txt: write every generated file again: docs/metrics.md, alerts, dashboards, deploy/kustomize, tables of names, golden files, the scoreboard of faults
	$(PYTHON) docs/generate/reference.py docs/metrics.md
	$(PYTHON) bench/fleet_plan.py docs/operating.md
	$(PYTHON) alerts/generate.py
	$(PYTHON) alerts/compat_rules.py alerts/compat
	$(PYTHON) dashboards/generate.py
	$(PYTHON) deploy/windows/generate.py
	$(PYTHON) tests/deploy/write_chart.py
	$(PYTHON) deploy/release/addresses.py
	$(PYTHON) tests/alerts/migration_tables.py
	$(PYTHON) tests/drift/table.py
	$(PYTHON) -m pytest -q tests/golden --rewrite-golden -k golden_file
	PYTHONPATH=tests $(PYTHON) tests/diagnosis/write_diagnosis.py
	if command -v promtool >/dev/null; then $(PYTHON) tests/alerts/write_fired.py; fi

dist: ## build what is generated and not in git into BUILD: the mixin, the rules for the Prometheus operator
	$(PYTHON) deploy/mixin/generate.py $(BUILD)/mixin
	$(PYTHON) deploy/operator_rules.py $(BUILD)/operator

house: ## count what must not grow: lines, files, second ways of one idea, and lower the ceilings of tests/contract/house.tsv
	$(PYTHON) tests/contract/house.py

lab: ## the wheel on two real kernels in QEMU, half an hour; as root
	tests/lab/run.sh

bench: ## every table of docs/performance.md; `python bench NAME` prints one
	$(PYTHON) bench

fuzz: ## fuzz one decoder: make fuzz TARGET=http_head SECONDS=60; the targets are in tests/fuzz/fuzz_targets
	$(PYTHON) tests/fuzz/fuzz.py $(TARGET) --seconds $(SECONDS)

mutants: ## break the package and see which tests fail: make mutants MUTANTS="--functions=wire/ tests/unit/wire"; see tests/mutants/README.md
	nice -n 15 $(PYTHON) tests/mutants/breaks.py $(MUTANTS)

week: ## the alerts of a simulated week against the truth, an hour and more on two cores: make week WEEK="--seed=1 --hosts=40 --days=3"
	nice $(PYTHON) tests/alerts/week.py $(WEEK)

pictures: ## draw the dashboards with Grafana's libraries; see dashboards/preview/README.md
	$(PYTHON) dashboards/preview/pictures.py

site: ## the documents as a site with search, in BUILD/site; a link that leads nowhere fails
	$(PYTHON) -m venv $(BUILD)/site-tools
	$(BUILD)/site-tools/bin/pip install --quiet --require-hashes --only-binary=:all: --requirement=docs/generate/requirements.lock
	$(BUILD)/site-tools/bin/python docs/generate/site.py $(BUILD)/site

release: ## build what users download into DIST, reproducibly; RELEASE_KEY=KEY signs it, see docs/releasing.md
	PYTHON=$(PYTHON) deploy/release/build.sh $(DIST)

release-check: ## what is published, built twice, installed, upgraded, rolled back and removed; as root, after tests/tools.sh nightly
	$(PYTHON) tests/release_check.py
