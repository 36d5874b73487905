"""A switch as the configuration file describes it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roce_exporter.net.tls import SYSTEM_TLS, TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from roce_exporter.net.login import BasicAuth

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PFC_PRIORITIES = "pfc"
ALL_PRIORITIES = "all"


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a switch port to a host, for switches on which LLDP is off."""

    port: str
    host: str
    netdev: str


@dataclass(frozen=True, slots=True)
class SwitchTarget:
    """One switch."""

    name: str
    module: str
    scheme: str
    """`redis`, `rediss`, `unix`, `grpc` (gNMI over TLS), `grpc+insecure`, `https` or `http`."""
    host: str
    """Host name or IP address; for `unix` the path of the socket."""
    ports: Mapping[str, int]
    """The port of each scheme that the module uses. EOS uses two: `grpc` for gNMI, `https` for eAPI."""
    database_config: Path | None = None
    """SONiC over Redis: a copy of database_config.json, or of its global form for several ASICs; None: the default layout."""
    basic_auth: BasicAuth | None = None
    tls: TlsFiles = SYSTEM_TLS
    links: tuple[Link, ...] = ()
    priorities: str = PFC_PRIORITIES
    """`pfc`: metrics of queues and priority groups cover priorities with PFC; `all`: all of them."""
    timeout: float = 10.0
    """Most seconds that one round of queries may take."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where to connect: the address was resolved and checked once, and is the only one that a client connects to."""

    address: str
    """An IP address, or the path of a unix socket. The port is `target.ports[scheme]`."""
    server_name: str = ""
    """The host name to verify in the certificate and to send in `Host` and SNI."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """Targets that the file does not name: addresses in these networks, all with the settings of `pattern`."""

    networks: tuple[Network, ...]
    pattern: SwitchTarget
    """A target without name and host."""


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """Limits of the process, for the sake of the switches."""

    cache_seconds: float = 10.0
    """How long answers are kept, so that a pair of Prometheus servers queries a switch once per interval."""
    targets_at_once: int = 32
    """Switches that are queried at the same time; others wait until their deadline."""
    timeout: float = 10.0
    """Most seconds of one round of queries, for targets without a timeout of their own."""


@dataclass(frozen=True, slots=True)
class SwitchesFile:
    """The content of the configuration file of `roce-exporter serve --switches.config`."""

    targets: Mapping[str, SwitchTarget] = field(default_factory=dict)
    discovery: Discovery | None = None
    limits: ProbeLimits = ProbeLimits()
