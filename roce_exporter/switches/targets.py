"""The switches of a configuration file: `roce-exporter serve --switches.config`. Targets, service discovery, limits.

Names and keys are those of Prometheus' own configuration where it has them. Paths of files are relative to the file.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from roce_exporter import yaml_document as y
from roce_exporter.catalog.switch_systems import OPENCONFIG, SYSTEMS
from roce_exporter.net.login import Credentials, basic_auth_of, tls_files_of
from roce_exporter.net.tls import SYSTEM_TLS, TlsFiles
from roce_exporter.words import seconds_of
from roce_exporter.yaml_document import Entry

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SCOPES = PFC_PRIORITIES, ALL_PRIORITIES = "pfc", "all"


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a switch port to a host, for switches on which LLDP is off."""

    port: str
    host: str
    netdev: str


class FastSamples(NamedTuple):
    """What a stream samples more often than each ten seconds: PFC of these ports."""

    every: float = 1.0
    """Seconds between two samples."""
    ports: tuple[str, ...] = ()
    """Empty: all ports."""


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
    basic_auth: Credentials | None = None
    tls: TlsFiles = SYSTEM_TLS
    links: tuple[Link, ...] = ()
    priorities: str = PFC_PRIORITIES
    """`pfc`: metrics of queues and priority groups cover priorities with PFC; `all`: all of them."""
    lossless: tuple[int, ...] | None = None
    """The priorities on which the site means to have PFC; None: it does not say."""
    stream: bool = False
    """Whether the switch is to send changes by itself, over gNMI."""
    samples: FastSamples = FastSamples()  # noqa: RUF009 - frozen
    timeout: float = 10.0
    """Most seconds that one round of queries may take."""
    connect_timeout: float = 2.5
    """Most seconds in which a switch that did not answer last time must accept a connection, at one of its addresses."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where to connect: the address was resolved and checked once, and is the only one that a client connects to."""

    address: str
    """An IP address, or the path of a unix socket. The port is `target.ports[scheme]`."""
    server_name: str = ""
    """The host name to verify in the certificate and to send in `Host` and SNI."""


class Discovery(NamedTuple):
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
    connect_timeout: float = 2.5
    """The same to accept a connection."""
    series: int = 200_000
    """Most values of one switch: of 1,024 ports it has half."""
    lossless: tuple[int, ...] | None = None
    """The same as of a target, for the whole site."""


@dataclass(frozen=True, slots=True)
class SwitchesFile:
    """The content of the configuration file of `roce-exporter serve --switches.config`."""

    targets: Mapping[str, SwitchTarget] = field(default_factory=dict)
    discovery: tuple[Discovery, ...] = ()
    """An address has the settings of the first one with its network."""
    limits: ProbeLimits = ProbeLimits()


SECTIONS = ("targets", "discovery", "limits", "lossless")
COMMON_KEYS = ("module", "basic_auth", "tls", "priorities", "timeout", "connect_timeout", "ports", "stream")
TARGET_KEYS = ("address", *COMMON_KEYS, "lossless", "links", "database_config")
DISCOVERY_KEYS = ("allow", *COMMON_KEYS, "lossless")
LIMIT_KEYS = ("cache", "targets_at_once", "timeout", "connect_timeout", "series")
STREAM_KEYS = ("every", "ports")
FLAG = "--switches.config"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
PORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9/._:-]{0,63}")
HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:.]{2,45}")
ADDRESS = re.compile(
    r"(?:(?P<scheme>[a-z+]+)://)?(?:\[(?P<six>[0-9a-fA-F:.]{2,45})\]|(?P<host>[^:/@\[\]]+))(?::(?P<port>[0-9]{1,5}))?/?"
)
SOCKET = re.compile(r"unix://(?P<path>/.+)")
LARGEST_PORT = 65535
SAMPLE_SECONDS = 1.0, 10.0
"""The shortest and the longest time between two fast samples: sonic-gnmi refuses less than a second."""


class Endpoint(NamedTuple):
    """A parsed address: port 0 means the default of the module."""

    scheme: str
    host: str
    port: int


def read_switches_file(path: str) -> SwitchesFile:
    """The content of the file.

    Raises:
        DocumentError: the file cannot be read, or a key or a value in it is invalid; the message names the line.
    """
    document = y.parse_document(Path(path), y.read_text(Path(path), FLAG))
    sections = y.mapping_of(document, SECTIONS)
    limits = _limits(y.mapping_of(sections.get("limits"), LIMIT_KEYS), sections.get("lossless"))
    targets = {
        name: _target(name, entry, limits) for name, entry in y.mapping_of(sections.get("targets")).items()
    }
    section = sections.get("discovery")
    entries = [section] if section and y.is_mapping(section) else y.items_of(section)
    discovery = tuple(_discovery(entry, limits) for entry in entries)
    if document and not targets and not discovery:
        document.refuse("has no targets; add them under `targets`, or networks under `discovery`")
    return SwitchesFile(targets, discovery, limits)


def _discovery(entry: Entry, limits: ProbeLimits) -> Discovery:
    keys, networks = y.mapping_of(entry, DISCOVERY_KEYS), []
    for item in y.items_of(keys.get("allow")):
        try:
            networks.append(ipaddress.ip_network(y.text_of(item)))
        except ValueError as error:
            item.refuse(f"{error}; write a network such as 10.1.0.0/16")
    if not networks:
        entry.refuse("has no networks; list them under `allow`, such as - 10.1.0.0/16")
    return Discovery(tuple(networks), _common("", entry, keys, limits))


def _limits(keys: Mapping[str, Entry], lossless: Entry | None) -> ProbeLimits:
    own = ProbeLimits()
    return ProbeLimits(
        _seconds(keys.get("cache"), own.cache_seconds, 0.0),
        _whole(keys["targets_at_once"], 1, 1000) if "targets_at_once" in keys else own.targets_at_once,
        _seconds(keys.get("timeout"), own.timeout),
        _seconds(keys.get("connect_timeout"), own.connect_timeout),
        _whole(keys["series"], 1, 10_000_000) if "series" in keys else own.series,
        _priorities(lossless) if lossless else None,
    )


def _target(name: str, entry: Entry, limits: ProbeLimits) -> SwitchTarget:
    keys = y.mapping_of(entry, TARGET_KEYS)
    if not NAME.fullmatch(name):
        entry.refuse(
            "is not a valid name; use letters, digits, dot, colon, underscore and hyphen, at most 128"
        )
    if "address" not in keys:
        entry.refuse("has no address; add one, such as https://switch.example.com")
    target = _common(name, entry, keys, limits)
    found = parse_address(keys["address"])
    scheme = found.scheme or target.scheme
    if scheme not in target.ports:
        schemes = ", ".join(f"{one}://" for one in target.ports)
        keys["address"].refuse(f"module {target.module} has no scheme {scheme}; use one of {schemes}")
    ports = {**target.ports, scheme: found.port} if found.port else target.ports
    database = keys.get("database_config")
    if database and target.module != "sonic":
        database.refuse("is for module sonic only; remove it")
    links = []
    for port, value in y.mapping_of(keys.get("links")).items():
        host, _, netdev = y.text_of(value).partition("/")
        if not host or not netdev or "/" in netdev:
            value.refuse(f"{y.text_of(value)!r} is not HOST/NETDEV; write one such as gpu-001/eth0")
        links.append(Link(port, host, netdev))
    target = replace(target, scheme=scheme, host=found.host, ports=ports, links=tuple(links))
    return replace(target, database_config=y.path_of(database) if database else None)


def _common(name: str, entry: Entry, keys: Mapping[str, Entry], limits: ProbeLimits) -> SwitchTarget:
    if "module" not in keys:
        entry.refuse(f"has no module; add one of {', '.join(SYSTEMS)}")
    module = y.choice_of(keys["module"], tuple(SYSTEMS))
    schemes = SYSTEMS[module].schemes
    samples = _stream(module, keys["stream"]) if "stream" in keys else None
    ports = y.mapping_of(keys.get("ports"), tuple(schemes))
    return SwitchTarget(
        name,
        module,
        next(iter(schemes)),
        "",
        {**schemes, **{one: _whole(value, 1, LARGEST_PORT) for one, value in ports.items()}},
        basic_auth=basic_auth_of(keys["basic_auth"]) if "basic_auth" in keys else None,
        priorities=y.choice_of(keys["priorities"], SCOPES) if "priorities" in keys else PFC_PRIORITIES,
        tls=tls_files_of(keys.get("tls")),
        stream=samples is not None,
        samples=samples or FastSamples(),
        lossless=_priorities(keys["lossless"]) if "lossless" in keys else limits.lossless,
        timeout=_seconds(keys.get("timeout"), limits.timeout),
        connect_timeout=_seconds(keys.get("connect_timeout"), limits.connect_timeout),
    )


def _priorities(entry: Entry) -> tuple[int, ...]:
    return tuple(sorted({_whole(one, 0, 7) for one in y.items_of(entry)}))


def _stream(module: str, entry: Entry) -> FastSamples | None:
    """`true`, `false`, or what is sampled fast."""
    keys = y.mapping_of(entry, STREAM_KEYS) if y.is_mapping(entry) else {}
    if not keys and y.choice_of(entry, ("true", "false")) == "false":
        return None
    if SYSTEMS[module].extra != "gnmi":
        entry.refuse(f"module {module} has no gNMI; remove it")
    if keys and module == OPENCONFIG:
        entry.refuse(f"module {module} has no PFC to sample; write stream: true")
    ports = y.items_of(keys.get("ports"))
    for port in ports:
        if not PORT.fullmatch(y.text_of(port)):
            port.refuse(f"{y.text_of(port)!r} is not the name of a port; write one such as Ethernet1/1")
    every = _seconds(keys.get("every"), FastSamples().every, *SAMPLE_SECONDS)
    return FastSamples(every, tuple(map(y.text_of, ports)))


def parse_address(entry: Entry) -> Endpoint:
    """An address as written: `SCHEME://HOST:PORT`, of which scheme and port can be missing, or `unix:///PATH`.

    Raises:
        DocumentError: it is not one, or holds a user or a path.
    """
    text = y.text_of(entry)
    if socket := SOCKET.fullmatch(text):
        return Endpoint("unix", socket["path"], 0)
    if "@" in text:
        # The line must not repeat the address, which may hold a password.
        entry.refuse("has a user in it; write basic_auth with username and password_file instead")
    parts = ADDRESS.fullmatch(text)
    host = (parts["six"] or parts["host"]) if parts else ""
    if not parts or not HOST.fullmatch(host) or int(parts["port"] or 0) > LARGEST_PORT:
        entry.refuse(
            f"{text!r} is not an address; write SCHEME://HOST:PORT, such as https://switch.example.com:443"
        )
    return Endpoint(parts["scheme"] or "", host, int(parts["port"] or 0))


def _whole(entry: Entry, least: int, most: int) -> int:
    text = y.text_of(entry)
    if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
        entry.refuse(f"{text!r} is not a whole number from {least} to {most}")
    return int(text)


def _seconds(entry: Entry | None, usual: float, least: float = 0.1, most: float = 300.0) -> float:
    if entry is None:
        return usual
    text = y.text_of(entry)
    seconds = 0.0 if text == "0" else seconds_of(text)
    if seconds is None or not least <= seconds <= most:
        entry.refuse(
            f"{text!r} is not a duration from {least:g} s to {most:g} s; write it with its unit, such as 10s"
        )
    return seconds
