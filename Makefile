# Long runs that no submission waits for; `tests/run.sh` is the test command.
PYTHON ?= python3
TARGET ?= rdma_netlink
SECONDS ?= 600

.PHONY: fuzz mutants pictures
# make fuzz TARGET=http_head SECONDS=60; the targets are in tests/fuzz/fuzz_targets
fuzz:
	$(PYTHON) tests/fuzz/fuzz.py $(TARGET) --seconds $(SECONDS)

# make mutants MUTANTS='roce_exporter.normalise.normaliser.*'; the modules are in pyproject.toml ([tool.mutmut]). Needs `.[test,mutants]`.
mutants:
	nice -n 15 $(PYTHON) tests/mutants/run.py $(MUTANTS)

# Pictures of the dashboards, drawn with Grafana's libraries: needs node, chromium, prometheus and promtool, and a Python that
# has roce_exporter with its tests' packages. See dashboards/preview/README.md.
pictures:
	$(PYTHON) dashboards/preview/pictures.py
