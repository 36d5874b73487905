"""The table of flags: `--help`, the keys of the configuration file, completion and manual pages come from it.

Defaults and choices are literals: a command must not import the engine of another one. `tests/unit/test_options.py` compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.cli.flag_types import duration, metric, pattern, percent, ranges, seconds, web_path, whole

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_PORT = 10123
"""To be registered: the public list of exporter ports was not available when the port was chosen."""
PROBE_PORT = 10126
"""The port of `probe` for metrics; probes themselves are UDP, to port 10124."""

LOG_LEVELS = ("debug", "info", "warn", "error")
SOURCES = (
    *("port", "rdma_netlink", "hw_counters", "counters", "resources", "optional_counters", "pcie", "sensors"),
    *("delay_drop", "netdev", "ethtool", "dcb", "pause", "settings", "link", "fec", "ethernet"),
    *("transceiver", "mac_address", "virtual_functions", "addresses", "limits", "devlink", "devlink_info"),
    *("devlink_vnic", "configuration", "owners", "kernel_log", "health"),
)
"""Sources that can be disabled: those of a collection, and what works between collections."""
SCENARIOS = (
    *("quiet", "incast", "pfc-storm", "slow-receiver", "victim", "misconfigured", "flapping", "overheating"),
    *("lossy", "dead-peer", "firmware", "broken"),
)
VENDORS = ("mlx5", "mlx5-lag", "bnxt", "ionic", "ice")
PROFILES = ("amd-pollara", "auto", "broadcom-thor2", "lossy", "nvidia-lossless", "pfc-only")
EXPORTERS = ("node_exporter", "rdma_exporter", "spiderpool")
"""Those whose names `translate` knows."""
NAMED_NAMESPACES = "/run/netns"
TEXT, JSON, TABLE, PACKETS = "text", "json", "table", "packets"

HOST = ("demo", "serve", "once", "capture", "explain", "check", "probe")
"""Commands that read a host."""
CHECKING = ("demo", "serve", "once", "check")
COLLECTING = ("serve", "once", "check")
SERVING = ("serve", "probe")
CHECK = ("check",)
EVERY = (*HOST, "wire", "tool namespaces", "tool translate")


class Flag(NamedTuple):
    """One flag, or without dashes one argument, of some commands."""

    name: str
    commands: tuple[str, ...]
    metavar: str
    """Empty: the flag takes no value."""
    help: str
    default: Any = ""
    type: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    is_repeated: bool = False
    nargs: str | None = None
    short: str = ""
    dest: str = ""
    """Name in the options, if it is not that of the flag with underscores."""
    instead: str = ""
    """What replaces a flag of an earlier version: it is accepted with one line on standard error, and not in `--help`."""

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return not (self.metavar or self.choices)


FLAGS = (
    Flag(
        "name",
        ("explain",),
        "NAME",
        "raw counter or metric name; without it, list the raw names that are not in the catalogue",
        None,
        nargs="?",
    ),
    Flag(
        "words",
        CHECK,
        "TOPIC",
        "setup, settings, health, or switches with names of switches (all); without one, all that the source can show",
        nargs="*",
    ),
    Flag("file", ("wire",), "FILE", "a capture (pcap or pcapng), or - for standard input", nargs="?"),
    Flag(
        "files",
        ("tool translate",),
        "FILE",
        "Grafana dashboard (.json), rule file or PrometheusRule (.yml, .yaml, .rules), PromQL (.promql); - for standard input",
        nargs="+",
    ),
    # The host.
    Flag("--path.sysfs", HOST, "DIR", "where sysfs is mounted (/sys)", "/sys"),
    Flag(
        "--host.recording",
        HOST,
        "PATH",
        "read a recorded host (folder, .tar.gz or text) instead of this host",
    ),
    Flag(
        "--host.simulate",
        HOST,
        "SCENARIO",
        f"simulate a host instead of reading this one: {', '.join(SCENARIOS)}",
        choices=("", *SCENARIOS),
    ),
    Flag(
        "--host.simulate-ports",
        HOST,
        "VENDOR,...",
        f"ports of the simulated host, 1 to 16, each one of {', '.join(VENDORS)} (mlx5,mlx5,mlx5,mlx5)",
        "mlx5,mlx5,mlx5,mlx5",
    ),
    Flag("--host.simulate-seed", HOST, "NUMBER", "random seed of the simulation (1)", 1, int),
    Flag("--device.include", HOST, "REGEX", "only devices whose full name matches REGEX", None, pattern),
    Flag("--device.exclude", HOST, "REGEX", "exclude devices whose full name matches REGEX", None, pattern),
    Flag(
        "--source.disable",
        HOST,
        "SOURCE",
        f"disable a source, may be repeated: {', '.join(SOURCES)}",
        (),
        choices=SOURCES,
        is_repeated=True,
    ),
    Flag(
        "--collect.timeout",
        HOST,
        "SECONDS",
        "longest time that a collection waits for a device, even if the scraper allows more (5)",
        5.0,
        seconds(),
    ),
    Flag(
        "--inventory.refresh",
        HOST,
        "SECONDS",
        "how often the description of known devices is refreshed: firmware, GIDs, network devices (60)",
        60.0,
        seconds(),
    ),
    Flag(
        "--config.file",
        (*HOST, "wire", "tool namespaces"),
        "FILE",
        "YAML file whose keys are these flags without their dashes",
    ),
    # Logs.
    Flag(
        "--log.level",
        EVERY,
        "",
        "minimum log level (serve, probe, tool namespaces: info, demo, check: error, others: warn)",
        None,
        choices=LOG_LEVELS,
    ),
    Flag("--log.format", EVERY, "", "format of the log lines (logfmt)", "logfmt", choices=("logfmt", "json")),
    # What is checked, collected and shown.
    Flag(
        "--audit.profile",
        CHECKING,
        "PROFILE",
        f"profile to check the settings against: {', '.join(PROFILES)}, or a .toml file (auto)",
        "auto",
        short="--profile",
        dest="audit_profile",
    ),
    Flag(
        "--thresholds.file",
        ("serve", "check"),
        "FILE",
        "limits of the rules of health: an edited alerts/thresholds.yml (that of the package)",
    ),
    Flag(
        "--owners.most",
        COLLECTING,
        "N",
        "owners per RDMA device with series of their own; the rest is `other` (32)",
        32,
        whole(1000),
    ),
    Flag(
        "--owners.peers",
        COLLECTING,
        "N",
        "remote addresses per owner with a series of their own; the rest is `other` (16)",
        16,
        whole(1000),
    ),
    Flag(
        "--owners.anonymous",
        COLLECTING,
        "",
        "leave the command and the user of owners out of metrics and debug pages",
        False,
    ),
    Flag(
        "--owners.limits",
        (*COLLECTING, "capture"),
        "",
        "read how many queue pairs, completion queues and memory regions each device can have on kernels that do not report "
        "it (6.12; 7.3 does): opens a user context on each device once, as ibv_devinfo does, which on mlx5 makes firmware "
        "objects and may enable loopback meanwhile",
        False,
    ),
    Flag(
        "--owners.interval",
        ("serve",),
        "SECONDS",
        "how often the RDMA objects of a device are listed (60)",
        60.0,
        seconds(1),
    ),
    Flag(
        "--owners.load",
        ("serve",),
        "PERCENT",
        "largest share of time that a driver may spend on listing queue pairs and connections, 0.1 to 100 (2)",
        0.02,
        percent,
    ),
    Flag(
        "--kubelet.pod-resources",
        COLLECTING,
        "SOCKET",
        "show which pod has which network device, from the kubelet's pod-resources API "
        "(/var/lib/kubelet/pod-resources/kubelet.sock); needs roce-exporter[gnmi] and access to the socket",
    ),
    Flag(
        "--rdma.namespaces",
        COLLECTING,
        "SOCKET",
        "show the RDMA devices of other network namespaces, which `roce-exporter tool namespaces` reports on this socket",
    ),
    Flag(
        "--metrics.set",
        ("serve", "once"),
        "",
        "which metrics are shown: lean (what alerts, check and the dashboards of fleet, hosts, links and jobs need), standard "
        "(what all dashboards need, and all counters of faults; the default) or full (everything)",
        "standard",
        choices=("lean", "standard", "full"),
    ),
    Flag(
        "--metrics.exclude",
        ("serve", "once"),
        "NAME",
        "leave out a metric of the set, by its exact name in docs/metrics.md; may be repeated",
        (),
        metric,
        is_repeated=True,
    ),
    Flag(
        "--sampler.mode",
        ("serve",),
        "",
        "how the fast loop samples for storms between scrapes: adaptive (more often while there is pause; the default), "
        "fixed (constant rate), or off; a recording is never sampled",
        "adaptive",
        choices=("adaptive", "fixed", "off"),
    ),
    Flag(
        "--sampler.interval",
        ("serve",),
        "SECONDS",
        "sampling interval of the fast loop, 0.05 to 1 (0.1); longer where reads are slow",
        0.1,
        seconds(0.05, 1),
    ),
    Flag(
        "--sampler.detection-time",
        ("serve",),
        "SECONDS",
        "how long pause must block all traffic to count as a storm, 0.2 to 10 (0.4)",
        0.4,
        seconds(0.2, 10),
    ),
    Flag(
        "--sampler.restoration-time",
        ("serve",),
        "SECONDS",
        "how long pause must be gone for the storm to end, 0.1 to 60 (twice the detection time)",
        None,
        seconds(0.1, 60),
    ),
    # The web server.
    *(
        Flag(
            "--web.listen-address",
            (command,),
            "[HOST]:PORT",
            f"address to listen on, may be repeated (:{port}); port 0 selects a free port, which is logged",
            None,
            is_repeated=True,
        )
        for command, port in zip(SERVING, (DEFAULT_PORT, PROBE_PORT), strict=True)
    ),
    Flag(
        "--web.config.file",
        SERVING,
        "FILE",
        "file with TLS and users, in the format of the Prometheus exporter-toolkit",
    ),
    Flag("--web.telemetry-path", SERVING, "PATH", "path of the metrics (/metrics)", "/metrics", web_path),
    # The parts of the daemon.
    Flag("--no-host", ("serve",), "", "do not export this host", False),
    Flag(
        "--switches.config",
        ("serve", "check"),
        "FILE",
        "YAML file with the switches to query (docs/switches.md): serve also has their metrics, at /probe?target=NAME; check switches",
    ),
    Flag(
        "--wire.interface",
        ("serve",),
        "DEV",
        "also count the RoCE packets of this network device, a mirror port; needs CAP_NET_RAW",
    ),
    Flag("--wire.file", ("serve",), "FILE", "also serve the counts of a capture, or - for standard input"),
    Flag(
        "--wire.top",
        ("serve",),
        "N",
        "number of pairs of addresses that have series of their own (20)",
        20,
        whole(1000),
    ),
    # Commands of their own.
    Flag(
        "--output",
        ("capture",),
        "FILE",
        "a .tar.gz, a text (.txt) or a new folder (roce-host.tar.gz)",
        "roce-host.tar.gz",
        short="-o",
    ),
    Flag("--moments", ("capture",), "N", "number of snapshots to record (1)", 1, whole(1000)),
    Flag("--interval", ("capture",), "SECONDS", "time between two snapshots (1)", 1.0, seconds()),
    Flag(
        "--demo.seconds",
        ("demo",),
        "SECONDS",
        "stop after this time (default: run until Ctrl-C)",
        None,
        seconds(),
    ),
    Flag(
        "--since",
        CHECK,
        "TIME",
        "how much of the past counts, such as 90s, 10m or 2h, with --prometheus or a simulated host (10m), or a recording (all)",
        None,
        duration,
    ),
    Flag(
        "--interval",
        CHECK,
        "TIME",
        "time between two samples (10s; with --prometheus 15s, or more if --since is long)",
        None,
        duration,
    ),
    Flag("--format", CHECK, "", "format of the findings (text)", TEXT, choices=(TEXT, JSON)),
    Flag("--failed", CHECK, "", "print only what is degraded or failed", False),
    Flag(
        "--exporter",
        CHECK,
        "URL",
        "the exporter that should run on this host (http://127.0.0.1:10123); only its /metrics is requested",
        f"http://127.0.0.1:{DEFAULT_PORT}",
    ),
    Flag(
        "--prometheus",
        CHECK,
        "URL",
        "read the history of a host from Prometheus, for example http://prometheus:9090; with `check setup`, whether it scrapes this host",
    ),
    Flag(
        "--instance",
        CHECK,
        "INSTANCE",
        "the host's target label `instance`; needed if Prometheus scrapes several exporters",
    ),
    Flag("--prometheus.username", CHECK, "USER", "user name"),
    Flag(
        "--prometheus.password-file",
        CHECK,
        "FILE",
        "file with the password of --prometheus.username, in one line",
    ),
    Flag(
        "--prometheus.ca-file",
        CHECK,
        "FILE",
        "certificates that Prometheus' certificate is verified with (default: those of the system)",
    ),
    Flag(
        "--prometheus.cert-file",
        CHECK,
        "FILE",
        "certificate to show to Prometheus, with --prometheus.key-file",
    ),
    Flag("--prometheus.key-file", CHECK, "FILE", "key of --prometheus.cert-file"),
    Flag("--prometheus.insecure-skip-verify", CHECK, "", "do not verify Prometheus' certificate", False),
    Flag(
        "--from",
        ("tool translate",),
        "",
        "exporter whose names are translated, may be repeated (all)",
        (),
        choices=EXPORTERS,
        is_repeated=True,
        dest="exporters",
    ),
    Flag(
        "--output",
        ("tool translate",),
        "PATH",
        "file to write, or folder for several files (standard output)",
    ),
    Flag("--in-place", ("tool translate",), "", "replace the files", False),
    Flag(
        "--report",
        ("tool translate",),
        "",
        "format of the report on standard error (text)",
        TEXT,
        choices=(TEXT, JSON),
    ),
    Flag("--interface", ("wire",), "DEV", "capture on this network device instead; needs CAP_NET_RAW"),
    Flag(
        "--probe.targets",
        ("probe",),
        "FILE",
        "the ports that are probed, as for Prometheus' file_sd (JSON or YAML) with the labels rack, rail and host; may be repeated",
        (),
        is_repeated=True,
    ),
    Flag(
        "--probe.key-file",
        ("probe",),
        "FILE",
        "file with a key of at least 16 characters: only packets signed with it are sent, answered and believed",
    ),
    Flag(
        "--probe.allow",
        ("probe",),
        "NETWORK",
        "network that is answered, may be repeated (those of the own ports, and the targets)",
        (),
        is_repeated=True,
    ),
    Flag(
        "--probe.plan",
        ("probe",),
        "HOST",
        "print what this host of the list, or `all`, sends in one burst, and stop",
    ),
    Flag(
        "--format",
        ("wire",),
        "",
        "what is printed: pairs as a table or JSON, or every packet with its headers, one JSON object per line (table)",
        TABLE,
        choices=(TABLE, JSON, PACKETS),
    ),
    Flag(
        "--duration",
        ("wire",),
        "SECONDS",
        "stop after this time (default: at the end of the input, or Ctrl-C)",
        None,
        seconds(),
    ),
    Flag("--top", ("wire",), "N", "number of pairs that are shown (20)", 20, whole(1000)),
    Flag("--queue-pairs", ("wire",), "", "in JSON, also count per destination queue pair", False),
    Flag(
        "--lossless.dscp",
        ("serve", "wire"),
        "LIST",
        "DSCP values of the lossless priorities: numbers and ranges (24-31)",
        frozenset(range(24, 32)),
        ranges(63),
    ),
    Flag(
        "--lossless.priority",
        ("serve", "wire"),
        "LIST",
        "lossless VLAN priorities, for RoCE v1 (3)",
        frozenset({3}),
        ranges(7),
    ),
    Flag(
        "--namespaces.socket",
        ("tool namespaces",),
        "SOCKET",
        "Unix socket on which the helper reports (/run/roce-exporter/namespaces.sock)",
        "/run/roce-exporter/namespaces.sock",
    ),
    Flag(
        "--namespaces.group",
        ("tool namespaces",),
        "GROUP",
        "group that may read the report, besides the user of the helper",
    ),
    Flag(
        "--namespaces.folder",
        ("tool namespaces",),
        "DIR",
        f"where network namespaces are kept by name ({NAMED_NAMESPACES})",
        NAMED_NAMESPACES,
    ),
)
