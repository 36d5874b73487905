"""The audit of a host: every check of every port, judged anew only when a setting changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from roce_exporter.audit import host_checks, lossless_checks, marking_checks
from roce_exporter.audit.arithmetic import rdma_mtu
from roce_exporter.audit.consistency import CONSISTENCY, compare
from roce_exporter.audit.facts import ADAPTIVE, SOURCES, facts_of
from roce_exporter.audit.fingerprint import fingerprint, settings_of
from roce_exporter.audit.verdict import Verdict
from roce_exporter.catalog.configuration import CHECK_OK, CHECK_UNREADABLE, FINGERPRINT, RDMA_MTU
from roce_exporter.catalog.row import HW_COUNTERS
from roce_exporter.normalise.normaliser import Samples, Series
from roce_exporter.sources.configuration import AGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile
    from roce_exporter.model import DeviceReadings, Reading
    from roce_exporter.normalise.normaliser import Value

CHECKS = (*lossless_checks.CHECKS, *marking_checks.CHECKS, *host_checks.CHECKS)

ALL_CHECKS = (*CHECKS, CONSISTENCY)

MOVING = ("pfc_requests_", "pfc_indications_", "down_events", "receive_frames", "transmit_", "aer_", *AGE)
"""What stands among the settings and moves by itself."""

MOST_PICKS = 4096
"""Sets of names that are remembered: a host of 16 ports has some 200."""

Pick = Callable[[Sequence["int | None"]], object]
"""What picks the settings from the values of a reading."""


def audit(devices: Sequence[DeviceReadings], profile: Profile) -> tuple[Verdict, ...]:
    """What every check says that the profile asks for, by port, in the order of `ALL_CHECKS`."""
    return judge(facts_of_all(devices), profile)


def facts_of_all(devices: Sequence[DeviceReadings]) -> tuple[Facts, ...]:
    """The settings of all Ethernet ports of a host."""
    return tuple(facts for found in devices for facts in facts_of(found))


def judge(ports: Sequence[Facts], profile: Profile) -> tuple[Verdict, ...]:
    """See `audit`."""
    found = [verdict for facts in ports for verdict in _of_port(facts, profile)]
    if profile.consistent:
        found.extend(compare(ports))
    places = {(facts.device, facts.port, facts.netdev): number for number, facts in enumerate(ports)}
    return tuple(sorted(found, key=lambda one: places[one.facts.device, one.facts.port, one.facts.netdev]))


def _of_port(facts: Facts, profile: Profile) -> Iterator[Verdict]:
    for check in CHECKS:
        if (answer := check.judge(facts, profile)) is not None:
            yield Verdict(check, facts, answer)


class Auditor:
    """Keeps the last audit and the series made of it."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._signature: tuple[object, ...] | None = None
        self._samples = Samples((), ())
        self._picks: dict[int, tuple[tuple[str, ...], Pick]] = {}

    def samples(self, devices: Sequence[DeviceReadings]) -> Samples:
        """The samples of one collection; the same object as long as no setting has changed."""
        signature = tuple(self._signature_of(found) for found in devices)
        if signature != self._signature:
            self._signature = signature
            self._samples = _samples(facts_of_all(devices), self.profile)
        return self._samples

    def _signature_of(self, found: DeviceReadings) -> tuple[object, ...]:
        settings = [self._pick(reading)(reading.values) for reading in found.readings]
        return (found.device, *settings)

    def _pick(self, reading: Reading) -> Pick:
        # The names of a reading are the same object from one collection to the next. Held here, no other gets its id.
        known = self._picks.get(id(reading.names))
        if known is None:
            if len(self._picks) >= MOST_PICKS:
                self._picks.clear()
            known = self._picks[id(reading.names)] = (reading.names, _make_pick(reading))
        return known[1]


def _make_pick(reading: Reading) -> Pick:
    names = reading.names
    if reading.source == HW_COUNTERS and ADAPTIVE in names:
        position = names.index(ADAPTIVE)
        return lambda values: bool(values[position])
    if reading.source not in SOURCES:
        return lambda _: None
    picks = [position for position, name in enumerate(names) if not name.startswith(MOVING)]
    pick = itemgetter(*picks) if picks else len
    return lambda values: (names, pick(values))


def _samples(ports: Sequence[Facts], profile: Profile) -> Samples:
    found: list[tuple[Series, Value]] = []
    mtus: dict[tuple[str, str], Value] = {}
    for facts in ports:
        if facts.mtu is not None:
            mtus[facts.device, str(facts.port)] = rdma_mtu(facts.mtu)
        if settings := settings_of(facts):
            found.append((Series(FINGERPRINT, _labels(facts)), fingerprint(settings)))
    found += [(Series(RDMA_MTU, labels), value) for labels, value in mtus.items()]
    for verdict in judge(ports, profile):
        ok = verdict.answer.ok
        row = CHECK_UNREADABLE if ok is None else CHECK_OK
        found.append((Series(row, (*_labels(verdict.facts), verdict.check.id)), 1 if ok is None else int(ok)))
    return Samples(tuple(series for series, _ in found), tuple(value for _, value in found))


def _labels(facts: Facts) -> tuple[str, str, str]:
    return facts.device, str(facts.port), facts.netdev
