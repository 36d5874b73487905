"""The process' own metrics are those of every other Prometheus client, without a file opened for them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from roce_exporter.self_metrics.process import ProcessFamilies, open_descriptors


def values(collector: object) -> dict[str, float]:
    return {sample.name: sample.value for family in collector.collect() for sample in family.samples}


def test_names_and_texts_are_those_of_prometheus_client() -> None:
    """Also the order: it is part of what a person sees."""
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
    """In a process of its own: in this one other tests' descriptors come and go."""
    work = "import os; from roce_exporter.self_metrics.process import open_descriptors as count; print(count(), len(os.listdir('/proc/self/fd')))"
    told = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True).stdout
    counted, listed = map(int, told.split())
    assert counted == listed - 1, "the list holds the folder that is listed"


def test_no_file_is_opened_for_them(opened: list[object]) -> None:
    families = ProcessFamilies()
    opened.clear()
    assert len(values(families)) == 6
    assert opened == []


def test_an_old_kernel_that_does_not_count_descriptors_has_them_listed() -> None:
    """A folder of procfs without a size stands for /proc/self/fd before Linux 6.2."""
    assert os.stat("/proc/self/task").st_size == 0
    assert open_descriptors("/proc/self/task") == len(os.listdir("/proc/self/task")) - 1
