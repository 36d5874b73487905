"""The table of commands. `cli.entry` imports the module of a command when it runs."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command."""

    help: str
    run: str
    """Module of `cli` and function, as `serve:serve`."""
    has_host: bool = True
    """Whether the function gets the host that the options select, next to the options; `serve` and `check` open what they need."""
    log_level: str = "warn"
    """error: it shows storms, or the sources that fail, itself."""


COMMANDS = {
    "demo": Command("show a simulated host, with Prometheus, Alertmanager and a switch (redis-server) if they are installed", "demo:demo", log_level="error"),
    "serve": Command("serve metrics over HTTP (the default): of this host, of switches, of packets", "serve:serve", has_host=False, log_level="info"),
    "once": Command("collect once and print the metrics", "host:once"),
    "capture": Command("record the host into a .tar.gz, a text or a folder, with identifying data scrubbed", "host:capture_host"),
    "explain": Command("explain a raw counter or a metric: its meaning, its source and its current value", "host:explain_name", log_level="error"),
    "check": Command("say what is wrong with setup, settings, health or switches, on which side, and what to do; exit code 0: nothing, and all was seen, 1: something, 2: "
        "bad input, 3: nothing, but not all that is needed was seen", "check:check", has_host=False, log_level="error"),
    "tool namespaces": Command("report the RDMA devices of other network namespaces on a Unix socket, for `serve`; needs "
        "CAP_SYS_ADMIN", "namespaces:namespaces", has_host=False, log_level="info"),
    "wire": Command("read RoCE packets of a capture or a mirror port: who congests whom, who retransmits", "wire:wire", has_host=False),
    "probe": Command("probe the RoCE ports of other hosts, answer theirs, and serve metrics: is the peer there, which path loses, does the class "
        "survive", "probe:probe", log_level="info"),
    "tool otel-config": Command("print the configuration of an OpenTelemetry Collector for switches that export by OTLP (SONiC's high-frequency telemetry, "
        "Cumulus)", "otel_config:otel_config", has_host=False),
    "tool translate": Command("rewrite dashboards, rules and PromQL from the names of other exporters to ours; exit code 0: all, 1: places were left, 2: bad "
        "input", "translate:translate", has_host=False),
}  # fmt: skip

REMOVED = {
    "counters": "iproute2 does it: rdma statistic qp set link DEVICE/PORT auto type,pid on",
    "plan": "docs/operating.md, Cost, has the table",
}
"""Commands of earlier versions, and what replaces each."""
