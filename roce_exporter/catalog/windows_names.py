"""Windows: how its performance counters are spelt, object and counter name separated by a backslash as in a counter path.

The exporter does not run on Windows. windows_exporter reads these counters under the configuration in `deploy/windows/`, which
is generated from the spellings of these dialects. No RDMA device of Linux has one of them, so a host never searches for them.
"""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import Spelling, spelt

WINOF2 = "winof2"
"""NVIDIA's driver for ConnectX-4 and newer. ConnectX-3 has the driver WinOF, whose objects have other names."""
WINDOWS = "windows"
"""Windows itself: names that are the same for the NICs of all vendors."""

WINDOWS_DIALECTS = (WINOF2, WINDOWS)

PERFORMANCE_COUNTER = "performance_counter"
"""The source: a counter of the Performance Data Helper (PDH), by its English name."""

SEPARATOR = "\\"


def _counter(dialect: str, counter_object: str, name: str, *, bits: int = 64, per: int = 1) -> Spelling:
    raw = f"{counter_object}{SEPARATOR}{name}"
    return spelt(dialect, PERFORMANCE_COUNTER, raw, bits=bits, per=per)


CONGESTION_CONTROL = "Mellanox WinOF-2 Congestion Control"
PORT_QOS = "Mellanox WinOF-2 Port QoS"
PORT_TRAFFIC = "Mellanox WinOF-2 Port Traffic"
DIAGNOSTICS = "Mellanox WinOF-2 Diagnostics"
DIAGNOSTICS_EXT = "Mellanox WinOF-2 Diagnostics Ext 1"
VF_DIAGNOSTICS = "Mellanox WinOF-2 VF Diagnostics"
RDMA_ACTIVITY = "RDMA Activity"

win_congestion = partial(_counter, WINOF2, CONGESTION_CONTROL)
win_qos = partial(_counter, WINOF2, PORT_QOS)
"""An instance is one priority of an adapter."""
win_traffic = partial(_counter, WINOF2, PORT_TRAFFIC)
win_diagnostics = partial(_counter, WINOF2, DIAGNOSTICS)
win_vf = partial(_counter, WINOF2, VF_DIAGNOSTICS)
win_rdma = partial(_counter, WINDOWS, RDMA_ACTIVITY)
"""Counters of Windows itself. Those that end in `/sec` are stored as totals, and only Windows' own tools divide by time."""


def counter_path(raw: str) -> tuple[str, str]:
    """The object and the counter of a raw name."""
    counter_object, _, counter = raw.partition(SEPARATOR)
    return counter_object, counter
