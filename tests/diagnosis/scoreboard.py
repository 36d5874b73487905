"""What `check health` says of each fault, compared with the truth."""

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from changed_host import healthy_moments
from fault_histories import fault_history
from fault_table import Fault, load_faults

from roce_exporter.catalog.row import FULL, MetricSet
from roce_exporter.checks.finding import Finding, Report, Status
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.cli import check_host
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.normalise.series import Samples
from roce_exporter.view.host_view import TimedSamples, timed_samples


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of one fault: by all metrics, and by those of each smaller set."""

    fault: Fault
    diagnosis: Report
    served: dict[MetricSet, Report]

    @property
    def first(self) -> Finding | None:
        """The finding that counts: the worst of the faulty port, or of its whole device."""
        place = (self.fault.device, self.fault.port)
        here = (one for one in self.diagnosis.findings if (one.device, one.port or place[1]) == place)
        return next(here, None)

    @property
    def side_is_right(self) -> bool:
        """Whether the first finding names the right side."""
        return self.first is not None and self.first.side.value == self.fault.side

    @property
    def is_right(self) -> bool:
        """Whether the first finding names the right side and cause."""
        return self.first is not None and self.side_is_right and self.first.check in self.fault.causes


def host_of(fault: Fault) -> object:
    """What is the same for two faults of one host."""
    return (fault.simulate, fault.vendors) if fault.simulate else fault.recording or fault.id


def accused(said: Said) -> list[tuple[str, str]]:
    """Devices without any fault of which a finding says that they have failed."""
    faulty = {other.device for other in load_faults() if host_of(other) == host_of(said.fault)}
    return [
        (one.device, one.check)
        for one in said.diagnosis.findings
        if one.status is Status.FAILED and one.device not in faulty
    ]


async def judge_all(faults: Sequence[Fault], *metric_sets: MetricSet) -> tuple[Said, ...]:
    """What is said of these faults with all metrics, and with those that an exporter with each of these sets would have served."""
    with tempfile.TemporaryDirectory() as folder:
        moments = await healthy_moments(Path(folder))
    found: dict[object, dict[MetricSet, Report]] = {}
    for fault in faults:
        if host_of(fault) in found:
            continue
        served = {one: (ServedSeries(one), list[TimedSamples]()) for one in metric_sets}

        def sample(parts: Iterable[Samples], time: float, served: dict = served) -> TimedSamples:  # type: ignore[type-arg]
            for series, history in served.values():
                history.append(timed_samples(series.select(tuple(parts)), time))
            return timed_samples(parts, time)

        with mock.patch.object(check_host, "timed_samples", sample):
            whole = diagnose(await fault_history(fault, moments))
        seen = {one: diagnose(tuple(history)) for one, (_, history) in served.items()}
        found[host_of(fault)] = {FULL: whole, **seen}
    return tuple(Said(fault, (of := found[host_of(fault)])[FULL], of) for fault in faults)


def scored(all_said: Iterable[Said]) -> tuple[Said, ...]:
    """Without the faults that no host can tell."""
    return tuple(said for said in all_said if not said.fault.hidden)


def interval(right: int, total: int) -> str:
    """The 95 % interval of a share by Wilson's score, in percent: `66-84`; empty without cases."""
    if not total:
        return ""
    z = 1.96
    share, spread = right / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / 4 / total)
    return f"{100 * max(middle - half, 0.0):.0f}-{100 * (middle + half):.0f}"


def share_of(right: int, total: int) -> str:
    """`38 of 40, 95 % (83-99)`."""
    return f"{right} of {total}, {100 * right // total} % ({interval(right, total)})" if total else "-"


def source_of(fault: Fault) -> str:
    """Where the counters of a fault are from: one word."""
    return fault.source.partition(":")[0].partition(" ")[0]


def sources(all_said: Iterable[Said]) -> Iterator[str]:
    """One line of Markdown per source of the counters."""
    counted = scored(all_said)
    yield "| source | side is right (95 % interval) | side and cause |"
    yield "| --- | --- | --- |"
    for source in dict.fromkeys(source_of(said.fault) for said in counted):
        here = [said for said in counted if source_of(said.fault) == source]
        sides, right = sum(said.side_is_right for said in here), sum(said.is_right for said in here)
        yield f"| {source} | {share_of(sides, len(here))} | {share_of(right, len(here))} |"


def score_lines(all_said: Iterable[Said]) -> Iterator[str]:
    """The score in words; shares are rounded down, so that no goal is met by rounding."""
    counted = scored(all_said)
    whole, sides, right = (
        len(counted),
        sum(said.side_is_right for said in counted),
        sum(said.is_right for said in counted),
    )
    yield f"Of {whole} faults, the side is right for {sides} ({100 * sides // whole} %) and side and cause for {right}"
    yield f"({100 * right // whole} %)."


def table(all_said: Iterable[Said]) -> Iterator[str]:
    """One line of Markdown per fault."""
    yield "| fault | source | truth | `check health` says | right | alert |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for said in all_said:
        fault, first = said.fault, said.first
        truth = f"{fault.side}: `{fault.cause}`" if fault.cause else fault.side
        answer = f"{first.side.value}: `{first.check}`" if first else "nothing"
        yield f"| {fault.title} | {source_of(fault)} | {truth}; {fault.owner} | {answer} | {_mark(said)} | {first.runbook if first else ''} |"


def _mark(said: Said) -> str:
    if said.fault.hidden:
        return "not scored"
    return "yes" if said.is_right else "side only" if said.side_is_right else "**no**"
