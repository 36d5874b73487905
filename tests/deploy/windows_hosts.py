"""A Windows host with two adapters of WinOF-2, as performance counters. Constructed: no Windows machine was read.

The names of the adapters have the form of a public issue (description, #2 for the second of a model). How an instance of Port QoS names
its priority is a guess of ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

WINDOWS = Path(__file__).parents[2] / "deploy/windows"
CONFIGURATION = WINDOWS / "windows_exporter.yml"
FIRST, SECOND = "Mellanox ConnectX-6 Dx Adapter", "Mellanox ConnectX-6 Dx Adapter #2"
ADAPTERS = (FIRST, SECOND)
PRIORITIES = range(8)
PORT_QOS = "Mellanox WinOF-2 Port QoS"


def objects() -> list[dict[str, Any]]:
    """The entries of the delivered configuration."""
    text = yaml.safe_load(CONFIGURATION.read_text())["collector"]["performancecounter"]["objects"]
    return yaml.safe_load(text)


def instances(counter_object: str) -> list[str]:
    """The instances of an object on this host."""
    if counter_object == PORT_QOS:
        return [f"{adapter} Priority {priority}" for adapter in ADAPTERS for priority in PRIORITIES]
    return list(ADAPTERS)


def counters() -> dict[str, dict[str, dict[str, float | None]]]:
    """Values of all counters of the configuration, each another one, and the total that Windows has."""
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    number = 1000.0
    for entry in objects():
        of_object = found.setdefault(entry["object"], {})
        for counter in entry["counters"]:
            if counter["name"] in of_object:
                continue
            values = of_object[counter["name"]] = {"_Total": 1.0}
            for instance in instances(entry["object"]):
                number += 1
                values[instance] = number
    return found
