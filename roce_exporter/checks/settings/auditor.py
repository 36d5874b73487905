"""The audit of a host: every check of every port, repeated only when a setting changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import (
    CHECK_OK,
    CHECK_UNREADABLE,
    CHECKS_FAILED,
    CHECKS_PASSED,
    FINGERPRINT,
    RDMA_MTU,
)
from roce_exporter.catalog.row import ANY, HW_COUNTERS
from roce_exporter.catalog.table import parts, sections
from roce_exporter.checks.finding import NotChecked, Report, Topic
from roce_exporter.checks.settings import host_checks, lossless_checks, marking_checks, rail_checks
from roce_exporter.checks.settings.arithmetic import rdma_mtu
from roce_exporter.checks.settings.check import Check, CheckResult, not_alone
from roce_exporter.checks.settings.commands import fill
from roce_exporter.checks.settings.consistency import comparable, compare, fingerprint
from roce_exporter.checks.settings.ip_settings import with_rails
from roce_exporter.checks.settings.port_settings import ADAPTIVE, SOURCES, port_settings
from roce_exporter.collect.rounds import ExporterPart
from roce_exporter.host.sources.configuration import AGE
from roce_exporter.normalise.series import NO_SAMPLES, Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.finding import Finding
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.model import DeviceReadings, Reading
    from roce_exporter.normalise.series import Samples, Value
    from roce_exporter.view.host_view import View


def settings_report(host: View) -> Report:
    """The findings of the newest moment. The values that were found are only on the host, and so are the commands that fill them in."""
    checks = {check.id: check for check in ALL_CHECKS}
    found: list[Finding] = []
    for row in (CHECK_OK, CHECK_UNREADABLE):
        for labels, value in host.current(row.name):
            check = checks.get(labels["check"])
            if check is None or (row is CHECK_UNREADABLE and not value):
                continue
            result = CheckResult(bool(value) if row is CHECK_OK else None, "")
            place = (labels["device"], labels["port"], labels["netdev"])
            found.append(check.finding(Topic.SETTINGS, place, result))
    gaps = () if found else (NotChecked("settings: the exporter serves no results of checks", needed=True),)
    return Report(tuple(found), gaps)


def _checks() -> Iterator[Check]:
    text = Path(__file__).with_name("checks.txt").read_text(encoding="utf-8")
    modules = {one.__name__.rpartition(".")[2]: one for one in _MODULES}
    for heading, entries in sections("checks.txt", text):
        for entry in entries:
            head, _, title = entry.head.partition(": ")
            name, _, only = head.partition(" of ")
            found = {part: " ".join(texts) for part, texts in parts(entry, _PARTS).items() if texts}
            yield Check(
                name,
                title,
                found.pop("why"),
                getattr(modules.get(heading), name, not_alone),
                {
                    part.removeprefix("fix").strip() or ANY: SCRIPTS.get(fix, fix)
                    for part, fix in found.items()
                },
                tuple(only.split(",")) if only else (),
            )


_MODULES = (lossless_checks, marking_checks, host_checks, rail_checks)
_PARTS = ("why", "fix", "fix mlx5", "fix bnxt_re")
SCRIPTS = {
    "BNXT_SETUP": "bnxt_setupcc.sh -d {device} -i {netdev} -m 3 -s {dscp} -p {cnp_dscp} -r {priority} -c {cnp_priority}"
}
"""Broadcom's script sets PFC, DSCP mapping, scheduling and congestion control at once."""

ALL_CHECKS = tuple(_checks())
CONSISTENCY = next(check for check in ALL_CHECKS if check.judge is not_alone)
"""It compares ports, the others judge one."""

VOLATILE = ("pfc_requests_", "pfc_indications_", "down_events", "receive_frames", "transmit_", "aer_", *AGE)
"""Prefixes of values that change without a change of settings, although the same sources report them."""

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
    return tuple(
        check.finding(
            Topic.SETTINGS,
            _labels(settings),
            result,
            dialect=settings.dialect,
            fill=partial(fill, settings, profile),
        )
        for check, settings, result in judge(ports, profile)
    )


def judge(ports: Sequence[PortSettings], profile: Profile) -> list[tuple[Check, PortSettings, CheckResult]]:
    """Check, port and result of all checks that the profile enables, by port."""
    found = [
        (check, settings, result)
        for settings in ports
        for check in ALL_CHECKS
        if check.applies_to(settings.dialect) and (result := check.judge(settings, profile)) is not None
    ]
    if profile.consistent:
        found.extend((CONSISTENCY, *one) for one in compare(ports))
    order = {_labels(settings): number for number, settings in enumerate(ports)}
    return sorted(found, key=lambda one: order[_labels(one[1])])


class Auditor(ExporterPart):
    """Keeps the result of the last audit and its series."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._signature: tuple[object, ...] | None = None
        self._samples = NO_SAMPLES
        self._last: dict[str, tuple[DeviceReadings, object]] = {}
        """By device, its last readings and their signature."""
        self._picks: dict[int, tuple[tuple[str, ...], Pick | None]] = {}

    def follow(self, devices: Sequence[DeviceReadings]) -> None:
        """Audit these devices, if a setting has changed."""
        signature = self._signature_of_all(devices)
        if signature != self._signature:
            self._signature = signature
            self._samples = self._samples.replace(_samples(all_port_settings(devices), self.profile))

    def samples(self) -> tuple[Samples]:
        """The samples of the last audit; the same object until a setting changes."""
        return (self._samples,)

    def _signature_of_all(self, devices: Sequence[DeviceReadings]) -> tuple[object, ...]:
        last, self._last = self._last, {}
        for found in devices:
            known = last.get(found.device.name)
            if known is None or known[0] is not found:
                known = (found, self._signature_of(found))
            self._last[found.device.name] = known
        return tuple([signature for _, signature in self._last.values()])

    def _signature_of(self, found: DeviceReadings) -> tuple[object, ...]:
        settings: list[object] = []
        for reading in found.readings:
            # The names of a reading are the same object in every collection. The reference kept here prevents reuse of its id.
            known = self._picks.get(id(reading.names)) or self._add_pick(reading)
            if known[1] is not None:
                settings.append((reading.port, known[1](reading.values)))
        return (found.device, *settings)

    def _add_pick(self, reading: Reading) -> tuple[tuple[str, ...], Pick | None]:
        if len(self._picks) >= MOST_PICKS:
            self._picks.clear()
        known = self._picks[id(reading.names)] = (reading.names, _make_pick(reading))
        return known


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
            found.append((Series(FINGERPRINT, _labels(settings)), fingerprint(values)))
    found += [(Series(RDMA_MTU, labels), value) for labels, value in mtus.items()]
    for check, settings, (ok, *_) in judge(ports, profile):
        place = _labels(settings)
        row = CHECK_UNREADABLE if ok is None else CHECK_OK
        found.append((Series(row, (*place, check.id)), 1 if ok is None else int(ok)))
        if ok is not None:
            results.setdefault(place[:2], []).append(ok)
    for port, passed in results.items():
        found.append((Series(CHECKS_PASSED, port), passed.count(True)))
        found.append((Series(CHECKS_FAILED, port), passed.count(False)))
    return found


def _labels(settings: PortSettings) -> tuple[str, str, str]:
    return settings.device, str(settings.port), settings.netdev
