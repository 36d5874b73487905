"""A simulated host: ports with a small model of RoCE, exact and event-driven, for tests, benches and the demo.

`conditions` defines the state of a port, `scenarios` generates sequences of states, `rates` derives counter rates from them
and sums these up, `drivers` and `world` report the sums with a driver's names. Nothing here does I/O or reads a clock.
"""

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Setup, Span, Storm
from roce_exporter.host.simulated.scenarios import (
    BUSY,
    QUIET,
    SCENARIOS,
    PortSeed,
    Scenario,
    bursts,
    overlay,
    paused,
    repeat,
)
from roce_exporter.host.simulated.world import VENDORS, ScenarioError, ScriptedPort

__all__ = [
    "BUSY",
    "QUIET",
    "RECEIVE",
    "SCENARIOS",
    "TRANSMIT",
    "VENDORS",
    "Conditions",
    "Pause",
    "PortSeed",
    "Scenario",
    "ScenarioError",
    "ScriptedPort",
    "Setup",
    "Span",
    "Storm",
    "bursts",
    "overlay",
    "paused",
    "repeat",
]
