"""The table of flags: `--help`, the keys of the configuration file, completion and manual pages come from it.

Defaults and choices are literals: a command must not import the engine of another one. `tests/unit/test_options.py` compares them.
"""

from __future__ import annotations

from roce_exporter.cli.flag_types import (
    CHECK,
    CHECKING,
    COLLECTING,
    DEFAULT_PORT,
    EVERY,
    HOST,
    SERVING,
    Flag,
    duration,
    metric,
    pattern,
    seconds,
    whole,
)
from roce_exporter.cli.keys import KEYS

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
TEXT, JSON, TABLE, PACKETS = "text", "json", "table", "packets"

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
        "setup, settings, health, fabric (of all hosts in a Prometheus), or switches with names of switches (all); without one, all that the source can show",
        nargs="*",
    ),
    Flag(
        "file",
        ("wire",),
        "FILE",
        "a capture (pcap or pcapng, also compressed), or - for standard input",
        nargs="?",
    ),
    Flag(
        "filter",
        ("wire",),
        "FILTER",
        "only packets of this address (of several: between them), or to this queue pair (qp=0x12)",
        nargs="*",
    ),
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
        f"profile to check the settings against: {', '.join(PROFILES)}, or a .yml file (auto)",
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
        "--owners.anonymous",
        COLLECTING,
        "",
        "leave the command and the user of owners out of metrics and debug pages",
        False,
    ),
    Flag(
        "--kubelet.pod-resources",
        COLLECTING,
        "SOCKET",
        "show which pod has which network device, from the kubelet's pod-resources API "
        "(/var/lib/kubelet/pod-resources/kubelet.sock); needs the extra gnmi and access to the socket",
    ),
    Flag(
        "--rdma.namespaces",
        COLLECTING,
        "SOCKET",
        "show the RDMA devices of other network namespaces, which `roce-exporter tool namespaces` reports on this socket",
    ),
    Flag(
        "--rdma.namespaces",
        ("tool namespaces",),
        "SOCKET",
        "Unix socket on which the helper reports (/run/roce-exporter/namespaces.sock)",
        "/run/roce-exporter/namespaces.sock",
    ),
    Flag(
        "--metrics.set",
        ("serve", "once", "tool translate"),
        "",
        "which metrics are shown: lean (what alerts, the health of a port and the first screens of dashboards need), standard "
        "(in addition what check --prometheus and most other panels need; the default) or full (everything)",
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
        ("serve", "wire"),
        "DEV",
        "count the RoCE packets of this network device, a mirror port; serve has their metrics next to the others; needs CAP_NET_RAW",
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
    Flag("--interval", ("capture",), "SECONDS", "time between two snapshots (1)", 1.0, seconds()),
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
    Flag(
        "--format",
        ("check", "tool translate"),
        "",
        "format of the findings, or of the report on standard error (text)",
        TEXT,
        choices=(TEXT, JSON),
    ),
    Flag("--failed", CHECK, "", "print only what is degraded or failed", False),
    Flag(
        "--target",
        CHECK,
        "URL",
        "check the host of this exporter, such as http://gpu-007:10123, instead of this one; with --prometheus its label `instance` there, "
        f"needed if there are several; with `check setup` the exporter of this host (http://127.0.0.1:{DEFAULT_PORT})",
    ),
    Flag(
        "--prometheus",
        CHECK,
        "URL",
        "read the history of a host from Prometheus, for example http://prometheus:9090; with `check setup`, whether it scrapes this host",
    ),
    Flag(
        "--http.config.file",
        (*CHECK, "probe"),
        "FILE",
        "how to authenticate with Prometheus or the exporter and verify it, as promtool reads it: basic_auth, authorization, tls_config",
    ),
    *(
        Flag(
            f"--prometheus.{name}",
            CHECK,
            metavar,
            "",
            False if not metavar else "",
            instead="--http.config.file",
        )
        for name, metavar in (
            ("username", "USER"),
            *((f"{one}-file", "FILE") for one in ("password", "ca", "cert", "key")),
            ("insecure-skip-verify", ""),
        )
    ),
    *(
        Flag(name, CHECK, metavar, "", dest="target", instead="--target")
        for name, metavar in (("--exporter", "URL"), ("--instance", "INSTANCE"))
    ),
    Flag(
        "--from",
        ("tool translate",),
        "EXPORTER",
        "exporter whose names are translated, may be repeated (all)",
        (),
        choices=EXPORTERS,
        is_repeated=True,
        dest="exporters",
    ),
    Flag(
        "--map-label",
        ("tool translate",),
        "LABEL[:OLD=NEW]",
        "a label of the target that differs, such as job:node=roce or instance:9100=10123, or that is the same for both exporters; may be repeated",
        (),
        is_repeated=True,
    ),
    Flag(
        "--output",
        ("tool translate",),
        "PATH",
        "file to write, or folder for several files (standard output)",
    ),
    Flag("--in-place", ("tool translate",), "", "replace the files", False),
    Flag(
        "--probe.targets",
        ("probe",),
        "SOURCE",
        "the ports that are probed, with the labels rack, rail and host: a file as for Prometheus' file_sd (JSON or YAML), the URL of such "
        "a document, dns:NAME, or prometheus+URL for the ports that a Prometheus knows; may be repeated",
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
        ("wire", "demo"),
        "SECONDS",
        "stop after this time (default: at the end of the input, or Ctrl-C)",
        None,
        seconds(),
    ),
    Flag("--top", ("wire",), "N", "number of pairs that are shown (20)", 20, whole(1000)),
    Flag("--interval", ("wire",), "SECONDS", "also count per interval", 0.0, seconds()),
    Flag("--queue-pairs", ("wire",), "", "in JSON, also count per destination queue pair", False),
    *KEYS,
)
