# Long runs that no submission waits for; `tests/run.sh` is the test command.
PYTHON ?= python3
TARGET ?= rdma_netlink
SECONDS ?= 600

.PHONY: fuzz
# make fuzz TARGET=http_head SECONDS=60; the targets are in tests/fuzz/fuzz_targets
fuzz:
	$(PYTHON) tests/fuzz/fuzz.py $(TARGET) --seconds $(SECONDS)
