"""The results of rounds as samples of the rows of owners, and in detail as JSON for the debug page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.catalog import owners as rows
from roce_exporter.model.owner import OTHER_OWNERS, ObjectKind
from roce_exporter.normalise.series import Series
from roce_exporter.owners.owner_totals import OwnerNumbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roce_exporter.model import SourceState
    from roce_exporter.model.owner import Owner
    from roce_exporter.normalise.series import Value
    from roce_exporter.owners.owner_scan import ObjectTotals
    from roce_exporter.owners.owner_totals import HostOwners, Round


Sample = tuple[Series, "Value"]


def device_samples(
    device: str, result: Round, seconds: float | None, ended: float | None
) -> Iterator[Sample]:
    """The samples of one device. `seconds` is the duration of the last complete round, `ended` the Unix time of its end."""
    for name, shown in result.owners.items():
        yield from _owner_samples((device, name), shown, result.kinds)
    for total, value in sorted(result.totals.items(), key=lambda item: (item[0].row.name, *item[0][1:])):
        yield Series(total.row, (device, total.owner, str(total.port))), value
    if result.kinds:
        yield Series(rows.FOLDED, (device,)), len(result.folded)
        yield Series(rows.HIDDEN_PROCESSES, (device,)), result.hidden
    for kind, count in result.unseen.items():
        yield Series(rows.UNSEEN, (device, kind.value)), count
    if seconds is not None:
        yield Series(rows.SURVEY_SECONDS, (device,)), seconds
        yield Series(rows.SURVEY_TIME, (device,)), ended


def host_samples(result: HostOwners) -> Iterator[Sample]:
    """The sums of each owner over all devices, which have no device, port and peer."""
    for name, held in result.held.items():
        peers = {"": held.connections.total()} if held.connections else {}
        for series, value in _owner_samples(("", name), OwnerNumbers(held, peers), result.kinds):
            if series.row is not rows.QUEUE_PAIRS:
                yield series, value
    for (row, name), count in sorted(result.counts.items(), key=lambda item: (item[0][0].name, item[0][1])):
        yield Series(row, ("", name, "")), count


def _owner_samples(
    labels: tuple[str, str], shown: OwnerNumbers, kinds: frozenset[ObjectKind]
) -> Iterator[Sample]:
    held = shown.held
    if ObjectKind.QUEUE_PAIR in kinds:
        for (state, transport), count in sorted(held.queue_pairs.items()):
            yield Series(rows.QUEUE_PAIRS, (*labels, state, transport)), count
        yield Series(rows.QUEUE_PAIRS_IN_ERROR, labels), held.in_error
    for kind, row, name in OF_KIND:
        if kind in kinds:
            yield Series(row, labels), held.numbers[name]
    if ObjectKind.CONNECTION in kinds:
        for peer, count in shown.peers.items():
            yield Series(rows.CONNECTIONS, (*labels, peer)), count
    yield Series(rows.PROCESSES, labels), len(held.processes)


def identities(results: Iterable[Round], before: Mapping[str, Owner]) -> dict[str, Owner]:
    """One identity per owner with series on any device; the one shown `before` as long as a process has it."""
    found: dict[str, dict[Owner, int]] = {}
    for result in results:
        for name in result.owners.keys() & result.identities.keys():
            for owner, count in result.identities[name].items():
                per = found.setdefault(name, {})
                per[owner] = per.get(owner, 0) + count
    return {
        name: before[name] if before.get(name) in per else min(per, key=lambda owner: (-per[owner], owner))
        for name, per in sorted(found.items())
    }


STATES = {True: "up", False: "down", None: "absent"}
OF_KIND = (
    (ObjectKind.QUEUE_PAIR, rows.REMOTE_QUEUE_PAIRS, "remote_queue_pairs"),
    (ObjectKind.COMPLETION_QUEUE, rows.COMPLETION_QUEUES, "completion_queues"),
    (ObjectKind.MEMORY_REGION, rows.MEMORY_REGIONS, "memory_regions"),
    (ObjectKind.MEMORY_REGION, rows.MEMORY_REGION_BYTES, "memory_region_bytes"),
    (ObjectKind.CONTEXT, rows.CONTEXTS, "contexts"),
)
"""Rows of one number of `ObjectTotals` each."""


def device_document(
    device: str, state: SourceState | None, result: Round, shown: Mapping[str, Owner], ended: float | None
) -> dict[str, Any]:
    """One device as JSON. Owners beyond the configured number are listed, too, each with `shown_as: other`."""
    held = {name: one.held for name, one in result.owners.items() if name != OTHER_OWNERS.name}
    return {
        "device": device,
        "state": STATES[state.up] if state else "not surveyed yet",
        "error": state.error if state else "",
        "errors_total": state.errors_total if state else 0,
        "seconds": state.seconds if state else None,
        "last_complete_survey": ended,
        "listed": sorted(kind.value for kind in result.kinds),
        "hidden_processes": result.hidden,
        "unseen_objects": {kind.value: count for kind, count in result.unseen.items()},
        "owners": [
            _owner_document(name, shown.get(name), result, one)
            for name, one in {**held, **result.folded}.items()
        ],
    }


def _owner_document(name: str, owner: Owner | None, result: Round, held: ObjectTotals) -> dict[str, Any]:
    known = owner or max(result.identities[name], default=None)
    facts = known._asdict() if known else {}
    return {
        "owner": name,
        "shown_as": OTHER_OWNERS.name if name in result.folded else name,
        **{fact: text for fact, text in facts.items() if text and fact != "name"},
        "pids": sorted(held.processes),
        "queue_pairs": [
            {"state": state, "type": kind, "count": count}
            for (state, kind), count in sorted(held.queue_pairs.items())
            if count
        ],
        **{name: held.numbers[name] for _, _, name in OF_KIND},
        "connections": dict(sorted(held.connections.items())),
        "counters": {
            f"{total.row.name}/{total.port}": value
            for total, value in result.totals.items()
            if total.owner == name
        },
    }
