"""The audit of a host: every check of every port, repeated only when a setting changes.

Also whether ports of one kind have the same settings, and the values of the commands that fix a finding, which are printed and never run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.catalog import named
from roce_exporter.catalog.row import HW_COUNTERS
from roce_exporter.checks.finding import Finding, NotChecked, Report, Topic
from roce_exporter.checks.settings import ip_checks, port_checks
from roce_exporter.checks.settings.arithmetic import SLOWEST, headroom, least_mtu, rdma_mtu, tos_of
from roce_exporter.checks.settings.check import (
    Check,
    CheckResult,
    findings_of,
    judged,
    not_alone,
    read_checks,
)
from roce_exporter.checks.settings.port_settings import (
    ADAPTIVE,
    PRIORITIES,
    SOURCES,
    VERSIONS,
    OwnAddress,
    PortSettings,
    expected_tos,
    lossless_priorities,
    mapped_dscps,
    port_settings,
    roce_priority,
    with_rails,
)
from roce_exporter.collect.rounds import ExporterPart
from roce_exporter.host.sources.configuration import AGE
from roce_exporter.normalise.series import NO_SAMPLES, Samples, Series, Value

if TYPE_CHECKING:
    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.model import DeviceReadings, Reading
    from roce_exporter.view.host_view import View


def settings_report(host: View) -> Report:
    """The findings of the newest moment. The values that were found are only on the host, and so are the commands that fill them in."""
    checks = {check.id: check for check in ALL_CHECKS}
    found: list[Finding] = []
    for row in (named.CHECK_OK, named.CHECK_UNREADABLE):
        for labels, value in host.current(row.name):
            check = checks.get(labels["check"])
            if check is None or (row is named.CHECK_UNREADABLE and not value):
                continue
            result = CheckResult(bool(value) if row is named.CHECK_OK else None, "")
            place = (labels["device"], labels["port"], labels["netdev"])
            finding = check.finding(Topic.SETTINGS, place, result)
            found.append(replace(finding, fix=(ON_THE_HOST,)) if finding.is_wrong else finding)
    gaps = () if found else (NotChecked("settings: the exporter serves no results of checks", needed=True),)
    return Report(tuple(found), gaps)


_JUDGES = {**vars(port_checks), **port_checks.JUDGES, **vars(ip_checks)}
_OF_IWARP = vars(ip_checks).keys() - {"path_mtu"}  # TCP fits its segments to the path
ALL_CHECKS = tuple(read_checks(Path(__file__).with_name("checks.txt"), _JUDGES))
CONSISTENCY = next(check for check in ALL_CHECKS if check.judge is not_alone)
"""It compares ports, the others judge one."""

VOLATILE = ("pfc_requests_", "pfc_indications_", "down_events", "receive_frames", "transmit_", "aer_", *AGE)
"""Prefixes of values that change without a change of settings, although the same sources report them."""

ON_THE_HOST = "roce-exporter check settings, on the host, which has the values and the commands"
MOST_PICKS = 4096
"""The maximum number of sets of names that are kept: a host with 16 ports has about 200."""

Pick = Callable[[Sequence["int | None"]], object]
"""Selects the settings from the values of a reading."""


def audit(devices: Sequence[DeviceReadings], profile: Profile) -> tuple[Finding, ...]:
    """The findings of all checks that the profile enables, by port, in the order of `ALL_CHECKS`."""
    return findings(all_port_settings(devices), profile)


def all_port_settings(devices: Sequence[DeviceReadings]) -> tuple[PortSettings, ...]:
    """The settings of all Ethernet ports of a host, each with the addresses of the others."""
    ports = [settings for found in devices for settings in port_settings(found)]
    sides = with_rails([(settings.kind, settings.ip) for settings in ports])
    return tuple(replace(settings, ip=side) for settings, side in zip(ports, sides, strict=True))


def findings(ports: Sequence[PortSettings], profile: Profile) -> tuple[Finding, ...]:
    """See `audit`."""
    return findings_of(Topic.SETTINGS, judge(ports, profile), profile, fill)


def judge(ports: Sequence[PortSettings], profile: Profile) -> list[tuple[Check, PortSettings, CheckResult]]:
    """Check, port and result of all checks that the profile enables, by port."""
    found = [
        (check, settings, result)
        for settings in ports
        for check in ALL_CHECKS
        if check.applies_to(settings.dialect) and (not settings.iwarp or check.id in _OF_IWARP)
        if (result := check.judge(settings, profile)) is not None
    ]
    if profile.consistent:
        found.extend((CONSISTENCY, *one) for one in compare(ports))
    order = {_labels(settings): number for number, settings in enumerate(ports)}
    return sorted(found, key=lambda one: order[_labels(one[1])])


class Auditor(ExporterPart):
    """Keeps the result of the last audit and its series."""

    name = "auditor"

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._signature: tuple[object, ...] | None = None
        self._samples = NO_SAMPLES
        self._last: dict[str, tuple[DeviceReadings, object]] = {}
        """By device, its last readings and their signature."""
        self._picks: dict[int, tuple[tuple[str, ...], Pick | None]] = {}

    def follow(self, devices: Sequence[DeviceReadings]) -> None:
        """Audit these devices, if a setting has changed."""
        last, self._last = self._last, {}
        for found in devices:
            known = last.get(found.device.name)
            if known is None or known[0] is not found:
                known = (found, self._signature_of(found))
            self._last[found.device.name] = known
        signature = tuple([signature for _, signature in self._last.values()])
        if signature != self._signature:
            self._signature = signature
            self._samples = self._samples.replace(_samples(all_port_settings(devices), self.profile))

    def samples(self) -> tuple[Samples]:
        """The samples of the last audit; the same object until a setting changes."""
        return (self._samples,)

    def _signature_of(self, found: DeviceReadings) -> tuple[object, ...]:
        settings: list[object] = []
        for reading in found.readings:
            # The names of a reading are the same object in every collection. The reference kept here prevents reuse of its id.
            known = self._picks.get(id(reading.names))
            if known is None:
                if len(self._picks) >= MOST_PICKS:
                    self._picks.clear()
                known = self._picks[id(reading.names)] = (reading.names, _make_pick(reading))
            if known[1] is not None:
                settings.append((reading.port, known[1](reading.values)))
        return (found.device, *settings)


def _make_pick(reading: Reading) -> Pick | None:
    names = reading.names
    if reading.source == HW_COUNTERS and ADAPTIVE in names:
        position = names.index(ADAPTIVE)
        return lambda values: bool(values[position])
    if reading.source not in SOURCES:
        return None
    picks = [position for position, name in enumerate(names) if not name.startswith(VOLATILE)]
    pick = itemgetter(*picks) if picks else len
    return lambda values: (names, pick(values))


def _samples(ports: Sequence[PortSettings], profile: Profile) -> list[tuple[Series, Value]]:
    found: list[tuple[Series, Value]] = []
    mtus: dict[tuple[str, str], Value] = {}
    results: dict[tuple[str, str], list[bool]] = {}
    for settings in ports:
        if settings.mtu is not None:
            mtus[settings.device, str(settings.port)] = rdma_mtu(settings.mtu)
        if values := comparable(settings):
            found.append((Series(named.FINGERPRINT, _labels(settings)), fingerprint(values)))
    found += [(Series(named.RDMA_MTU, labels), value) for labels, value in mtus.items()]
    for check, settings, (ok, *_) in judge(ports, profile):
        place = _labels(settings)
        row = named.CHECK_UNREADABLE if ok is None else named.CHECK_OK
        found.append((Series(row, (*place, check.id)), 1 if ok is None else int(ok)))
        if ok is not None:
            results.setdefault(place[:2], []).append(ok)
    for port, passed in results.items():
        found.append((Series(named.CHECKS_PASSED, port), passed.count(True)))
        found.append((Series(named.CHECKS_FAILED, port), passed.count(False)))
    return found


def _labels(settings: PortSettings) -> tuple[str, str, str]:
    return settings.device, str(settings.port), settings.netdev


COMPARED = {
    "pfc": "priorities with PFC",
    "delay": "delay of PFC",
    "trust": "trust",
    "dscp_priority": "priority of a DSCP",
    "traffic_class": "traffic class of a priority",
    "algorithm": "scheduling",
    "bandwidth": "bandwidth of a traffic class",
    "buffer_of": "receive buffer of a priority",
    "buffer_bytes": "size of the receive buffers",
    "dcbx": "DCBX",
    "global_pause": "global pause",
    "prevention": "pause watchdog",
    "refresh": "refresh of statistics",
    "cm_tos": "ToS of RDMA-CM connections",
    "cm_version": "RoCE version of RDMA-CM",
    "tclass_forced": "whether a traffic class is forced",
    "tclass": "traffic class of all connections",
    "notification": "CNPs for marked packets",
    "reaction": "reaction to CNPs",
    "dcqcn": "DCQCN parameters",
    "mtu": "MTU",
}
"""Fields of `PortSettings` and what each is in a report, without those that the switch, the addresses or the negotiated link determine.

The names of the fields are part of the fingerprint: renaming one changes `roce_config_fingerprint` on every host.
"""

BYTES = 6
"""48 bits: every such number is exact as a float, the type of all values in Prometheus."""


def comparable(settings: PortSettings) -> dict[str, object]:
    """The settings of one port that were read, by name, in a form that is equal for equal settings."""
    found = {}
    for name in COMPARED:
        value = getattr(settings, name)
        # Sets are unordered, and mappings have the order in which the driver reports them.
        items = value.items() if isinstance(value, dict) else value
        if value is not None:
            found[name] = tuple(sorted(items)) if isinstance(value, dict | frozenset) else value
    return found


def fingerprint(values: Mapping[str, object]) -> int:
    """A number that is equal for equal settings, on every host and with every version of Python."""
    text = repr(sorted(values.items()))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=BYTES).digest(), "big")


def compare(ports: Sequence[PortSettings]) -> Iterator[tuple[PortSettings, CheckResult]]:
    """A result per port that shares its driver, model and function with another port of the host.

    The most frequent settings are the expected ones; if none is the most frequent, those of the first port. A setting that
    only one of two ports reports is not compared.
    """
    kinds: dict[tuple[str, str], list[PortSettings]] = {}
    for settings in ports:
        if settings.netdev and not settings.iwarp:
            kinds.setdefault((settings.dialect, settings.kind), []).append(settings)
    for alike in kinds.values():
        if len(alike) > 1:
            every = [comparable(settings) for settings in alike]
            marks = [fingerprint(values) for values in every]
            usual = marks.index(Counter(marks).most_common(1)[0][0])
            expected = f"as {alike[usual].netdev} of {alike[usual].device}"
            for settings, values in zip(alike, every, strict=True):
                names = sorted(every[usual].keys() & values.keys())
                other = [COMPARED[name] for name in names if every[usual][name] != values[name]]
                found = f"differs in {', '.join(other)}" if other else expected
                yield settings, judged(not other, expected, found)


FIRST_TABLE = 101
"""Routing table of the first rail in a command; a host's own convention may differ."""

ROUND = 100
"""MTUs are rounded up to hundreds: 4200 for an RDMA MTU of 4096."""

DEFAULTS = {"dscp": 26, "priority": 3, "cnp_dscp": 48, "cnp_priority": 6, "tos": 106}
"""Used in a command if the profile leaves the value open: what most fabrics use."""


def fill(settings: PortSettings, profile: Profile) -> dict[str, object]:
    """The values that a command may contain, by name."""
    expected = {
        "dscp": profile.roce_dscp,
        "priority": roce_priority(settings, profile),
        "cnp_dscp": profile.cnp_dscp,
        "cnp_priority": profile.cnp_priority,
        "tos": expected_tos(profile),
    }
    values = DEFAULTS | {name: value for name, value in expected.items() if value is not None}
    # A ToS with a DSCP that the port maps to the priority already.
    if profile.roce_dscp is None and (mapped := mapped_dscps(settings, values["priority"])):
        values["tos"] = tos_of(DEFAULTS["dscp"] if DEFAULTS["dscp"] in mapped else min(mapped))
    return {
        "device": settings.device,
        "port": settings.port,
        "netdev": settings.netdev or "NETDEV",
        "pci": settings.pci or "PCI",
        "trust": profile.trust or "dscp",
        "version": profile.roce_version or 2,
        "dcbx_owner": "fw" if profile.dcbx == "firmware" else "os",
        "prevention": profile.pfc_prevention or 100,
        "mtu": -(-least_mtu(profile.rdma_mtu or 4096) // ROUND) * ROUND,
        **values,
        **_pfc(settings, profile, values["priority"]),
        **_scheduling(settings, profile, values["priority"], values["cnp_priority"]),
        **_buffers(settings, profile, values["priority"]),
        **_addresses(settings),
    }


def _pfc(settings: PortSettings, profile: Profile, priority: int) -> dict[str, object]:
    on = lossless_priorities(settings, profile)
    if profile.lossless_priorities is None and len(on) != 1:
        on = (priority,)
    return {
        "mask": ",".join(str(int(one in on)) for one in PRIORITIES),
        "pfc": " ".join(("all:off", *(f"{one}:on" for one in on))),
    }


def _scheduling(settings: PortSettings, profile: Profile, priority: int, cnp: int) -> dict[str, object]:
    classes = settings.traffic_class or tuple(PRIORITIES)
    share, roce, urgent = profile.lossless_bandwidth or 50, classes[priority], classes[cnp]
    shares = [0] * len(PRIORITIES)
    rest = next(one for one in PRIORITIES if one not in (roce, urgent))
    shares[roce], shares[rest] = share, 100 - share
    return {
        "class": roce,
        "cnp_class": urgent,
        "bandwidth": share,
        "rest": 100 - share,
        "algorithms": ",".join("strict" if one == urgent else "ets" for one in PRIORITIES),
        "shares": ",".join(map(str, shares)),
    }


def _buffers(settings: PortSettings, profile: Profile, priority: int) -> dict[str, object]:
    metres = profile.cable_metres or settings.delay or 7
    on = lossless_priorities(settings, profile) or (priority,)
    return {
        "metres": metres,
        "headroom": headroom(settings.mtu or 1500, settings.speed or SLOWEST, metres),
        "buffer": settings.buffer_of[priority] if settings.buffer_of else 1,
        "buffers": ",".join(str(int(one in on)) for one in PRIORITIES),
    }


def _addresses(settings: PortSettings) -> dict[str, object]:
    """The first usable address of the port; its table is the number of its place among the host's rails."""
    side = settings.ip
    own = next(iter(side.own), None) if side else None
    if side is None or own is None:
        places = {"ip_netdev": settings.netdev or "NETDEV", "address": "ADDRESS", "length": "LENGTH"}
        return {**places, "subnet": "SUBNET", "table": FIRST_TABLE, "gateway": "GATEWAY", "via": ""}
    found = [(one, address) for one in side.own for version in VERSIONS for address in one.usable(version)]
    one, address = found[0] if found else (own, OwnAddress("ADDRESS", 0, ""))
    position = [netdev.netdev for _, netdev in side.host].index(one.netdev) if side.host else 0
    gateway = next(iter(one.gateways), "")
    table = FIRST_TABLE + position
    return {
        "ip_netdev": one.netdev,
        "address": address.address,
        "length": address.length if found else "LENGTH",
        "subnet": address.subnet if found else "SUBNET",
        "table": table,
        "gateway": gateway or "GATEWAY",
        "via": f"; ip route add default via {gateway} dev {one.netdev} table {table}" if gateway else "",
    }
