"""A simulated host: ports with a small model of RoCE, exact and event-driven, for tests, benches and the demo.

`conditions` defines the state of a port, `timeline` and `scenarios` generate sequences of states, `rates` derives counter
rates from them, `meter` sums these up, `drivers` and `world` report the sums with a driver's names. Nothing here does I/O or
reads a clock.
"""

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Setup, Span, Storm
from roce_exporter.host.simulated.hosts import VENDORS, ScenarioError, ScriptedPort
from roce_exporter.host.simulated.scenarios import SCENARIOS, PortSeed, Scenario
from roce_exporter.host.simulated.timeline import BUSY, QUIET, bursts, overlay, paused, repeat

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
