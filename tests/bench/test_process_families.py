"""The process' own metrics are those of every other Prometheus client, without opening a file for them."""

import os
import subprocess
import sys
import time

import psutil
import pytest
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from roce_exporter.self_metrics.own_registry import ProcessFamilies, open_descriptors


def values(collector: object) -> dict[str, float]:
    return {sample.name: sample.value for family in collector.collect() for sample in family.samples}


def test_names_and_texts_are_those_of_prometheus_client() -> None:
    """The order counts too: it is part of the visible output."""
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    ours.register(ProcessFamilies())
    ProcessCollector(registry=theirs)

    def heads(registry: CollectorRegistry) -> set[str]:
        return {line for line in generate_latest(registry).decode().splitlines() if line.startswith("#")}

    assert heads(ours) == heads(theirs)


def test_values_are_those_of_this_process() -> None:
    told, process = values(ProcessFamilies()), psutil.Process()
    assert told["process_start_time_seconds"] == pytest.approx(process.create_time(), abs=2)
    assert told["process_resident_memory_bytes"] == pytest.approx(process.memory_info().rss, rel=0.1)
    assert told["process_virtual_memory_bytes"] == pytest.approx(process.memory_info().vms, rel=0.1)
    assert 0 < told["process_cpu_seconds_total"] <= time.process_time()


def test_descriptors_are_counted() -> None:
    """Runs in a separate process: in this one the descriptors of other tests come and go."""
    work = "import os; from roce_exporter.self_metrics.own_registry import open_descriptors as count; print(count(), len(os.listdir('/proc/self/fd')))"
    told = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True).stdout
    counted, listed = map(int, told.split())
    assert counted == listed - 1, "the list includes the descriptor of the listed folder"


def test_no_file_is_opened_for_them(opened) -> None:
    families = ProcessFamilies()
    opened.clear()
    assert len(values(families)) == 6
    assert opened == []


def test_an_old_kernel_that_does_not_count_descriptors_is_listed_instead() -> None:
    """A folder of procfs without a size represents /proc/self/fd before Linux 6.2."""
    assert os.stat("/proc/self/task").st_size == 0
    assert open_descriptors("/proc/self/task") == len(os.listdir("/proc/self/task")) - 1
