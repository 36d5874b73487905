"""What `diagnose` says of each fault, compared with the truth."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from changed_host import healthy_moments
from fault_histories import fault_history
from fault_table import Fault, load_faults
from served_history import served_too

from roce_exporter.catalog.row import FULL, LEAN, STANDARD, MetricSet
from roce_exporter.health.diagnosis import diagnose
from roce_exporter.health.port_fault import Health, PortFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roce_exporter.health.port_fault import Diagnosis

Diagnoses = dict[MetricSet, "Diagnosis"]
"""What is said of one host with each set of metrics."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of one fault."""

    fault: Fault
    diagnosis: Diagnosis
    here: tuple[PortFault, ...]
    """The findings of the faulty port, or of its whole device, the worst first."""

    @property
    def first(self) -> PortFault | None:
        """The finding that counts."""
        return self.here[0] if self.here else None

    @property
    def side_is_right(self) -> bool:
        """Whether the first finding names the right side."""
        return self.first is not None and self.first.side.value == self.fault.side

    @property
    def cause_is_right(self) -> bool:
        """Whether the first finding names the right cause, whatever side."""
        return self.first is not None and self.first.cause.name in self.fault.causes


def accused(said: Said, faulty: frozenset[str]) -> tuple[PortFault, ...]:
    """Findings that a device has failed, other than the `faulty` ones of this host."""
    return tuple(
        one
        for one in said.diagnosis.findings
        if one.cause.health is Health.FAILED and one.device not in faulty
    )


def faulty_devices(fault: Fault, faults: Iterable[Fault]) -> frozenset[str]:
    """The devices of the fault's host that have any fault."""
    same = (other for other in faults if host_of(other) == host_of(fault))
    return frozenset(other.device for other in same)


def host_of(fault: Fault) -> object:
    """What is the same for two faults of one host."""
    if fault.simulate:
        return fault.simulate, fault.vendors
    return fault.recording or fault.id


def judge(fault: Fault, diagnosis: Diagnosis) -> Said:
    """What is said of the fault in this diagnosis of its host."""
    here = tuple(
        one for one in diagnosis.findings if one.device == fault.device and one.port in ("", fault.port)
    )
    return Said(fault, diagnosis, here)


async def diagnose_all() -> dict[object, Diagnoses]:
    """Of every host with faults, by `host_of`: what is said of it with each set of metrics."""
    with tempfile.TemporaryDirectory() as folder:
        moments = await healthy_moments(Path(folder))
        found: dict[object, Diagnoses] = {}
        for fault in load_faults():
            if host_of(fault) not in found:
                with served_too(LEAN, STANDARD) as served:
                    everything = await fault_history(fault, moments)
                seen = {one: diagnose(history.history()) for one, history in served.items()}
                found[host_of(fault)] = {FULL: diagnose(everything), **seen}
        return found


def judge_all(diagnoses: Mapping[object, Diagnoses]) -> tuple[Said, ...]:
    """What is said of every fault with all metrics."""
    return tuple(judge(fault, diagnoses[host_of(fault)][FULL]) for fault in load_faults())


def scored(all_said: Iterable[Said]) -> tuple[Said, ...]:
    """Without the faults that no host can tell."""
    return tuple(said for said in all_said if not said.fault.hidden)


def percent(right: int, of: int) -> str:
    """A share, rounded down, so that no goal is met by rounding."""
    return f"{100 * right // of} %"


def score_lines(all_said: Iterable[Said]) -> Iterator[str]:
    """The score in words, and which faults it is not perfect for."""
    counted = scored(all_said)
    sides = sum(said.side_is_right for said in counted)
    causes = sum(said.cause_is_right and said.side_is_right for said in counted)
    yield f"Of {len(counted)} faults, the side is right for {sides} ({percent(sides, len(counted))}) and side and cause for {causes}"
    yield f"({percent(causes, len(counted))})."


def table(all_said: Iterable[Said]) -> Iterator[str]:
    """One line of Markdown per fault."""
    yield "| fault | source | truth | `diagnose` says | right | alert |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for said in all_said:
        fault, first = said.fault, said.first
        truth = f"{fault.side}: `{fault.cause}`" if fault.cause else fault.side
        answer = f"{first.side.value}: `{first.cause.name}`" if first else "nothing"
        yield f"| {fault.title} | {_kind(fault)} | {truth}; {fault.owner} | {answer} | {_mark(said)} | {first.cause.runbook if first else ''} |"


def _kind(fault: Fault) -> str:
    return fault.source.partition(":")[0].partition(" ")[0]


def _mark(said: Said) -> str:
    if said.fault.hidden:
        return "not scored"
    if said.cause_is_right and said.side_is_right:
        return "yes"
    return "side only" if said.side_is_right else "**no**"
