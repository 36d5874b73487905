"""Windows: how its performance counters are spelt, object and counter name separated by a backslash as in a counter path.

The exporter does not run on Windows. windows_exporter reads these counters under the configuration in `deploy/windows/`, which
is generated from the spellings of these dialects. No RDMA device of Linux has one of them, so a host never searches for them.
"""

from __future__ import annotations

WINOF2 = "winof2"
"""NVIDIA's driver for ConnectX-4 and newer. ConnectX-3 has the driver WinOF, whose objects have other names."""
WINDOWS = "windows"
"""Windows itself: names that are the same for the NICs of all vendors."""

WINDOWS_DIALECTS = (WINOF2, WINDOWS)

PERFORMANCE_COUNTER = "performance_counter"
"""The source: a counter of the Performance Data Helper (PDH), by its English name."""

SEPARATOR = "\\"


CONGESTION_CONTROL = "Mellanox WinOF-2 Congestion Control"
PORT_QOS = "Mellanox WinOF-2 Port QoS"
PORT_TRAFFIC = "Mellanox WinOF-2 Port Traffic"
DIAGNOSTICS = "Mellanox WinOF-2 Diagnostics"
DIAGNOSTICS_EXT = "Mellanox WinOF-2 Diagnostics Ext 1"
VF_DIAGNOSTICS = "Mellanox WinOF-2 VF Diagnostics"
RDMA_ACTIVITY = "RDMA Activity"


def counter_path(raw: str) -> tuple[str, str]:
    """The object and the counter of a raw name."""
    counter_object, _, counter = raw.partition(SEPARATOR)
    return counter_object, counter
