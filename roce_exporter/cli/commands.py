"""The table of commands. `cli.entry` imports the module of a command when it runs."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command."""

    run: str
    """Module of `cli` and function, as `serve:serve`."""
    log_level: str
    """error: it shows storms, or the sources that fail, itself."""
    has_host: bool
    """Whether the function gets the host that the options select, next to the options; `serve` and `check` open what they need."""
    help: str


_TABLE = """
demo             | demo:demo               | error | host | show a simulated host, with Prometheus, Alertmanager and a switch (redis-server) if they are installed
serve            | serve:serve             | info  | -    | serve metrics over HTTP (the default): of this host, of switches, of packets
once             | host:once               | warn  | host | collect once and print the metrics
capture          | host:capture_host       | warn  | host | record the host into a .tar.gz, a text or a folder, with identifying data scrubbed
explain          | host:explain_name       | error | host | explain a raw counter or a metric: its meaning, its source and its current value
check            | check:check             | error | -    | say what is wrong with setup, settings, health or switches, on which side, and what to do; exit code 0: nothing, and all was seen, 1: something, 2: bad input, 3: nothing, but not all that is needed was seen
tool namespaces  | namespaces:namespaces   | info  | -    | report the RDMA devices of other network namespaces on a Unix socket, for `serve`; needs CAP_SYS_ADMIN
wire             | wire:wire               | warn  | -    | read RoCE packets of a capture or a mirror port: who congests whom, who retransmits
probe            | probe:probe             | info  | host | probe the RoCE ports of other hosts, answer theirs, and serve metrics: is the peer there, which path loses, does the class survive
tool otel-config | otel_config:otel_config | warn  | -    | print the configuration of an OpenTelemetry Collector for switches that export by OTLP (SONiC's high-frequency telemetry, Cumulus)
tool translate   | translate:translate     | warn  | -    | rewrite dashboards, rules and PromQL from the names of other exporters to ours; exit code 0: all, 1: places were left, 2: bad input
"""
_ROWS = [[part.strip() for part in line.split(" | ")] for line in _TABLE.strip().splitlines()]
COMMANDS = {name: Command(run, level, host == "host", text) for name, run, level, host, text in _ROWS}
REMOVED = {
    "counters": "iproute2 does it: rdma statistic qp set link DEVICE/PORT auto type,pid on",
    "plan": "docs/operating.md, Cost, has the table",
}
"""Commands of earlier versions, and what replaces each."""
