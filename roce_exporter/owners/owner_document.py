"""The owners of one device in detail, for the debug page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.model.owner import OTHER_OWNERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.model import SourceState
    from roce_exporter.model.owner import Owner
    from roce_exporter.owners.device_owners import Round
    from roce_exporter.owners.holdings import Holdings

STATES = {True: "up", False: "down", None: "absent"}


def device_document(
    device: str,
    state: SourceState | None,
    result: Round,
    shown: Mapping[str, Owner],
    ended: float | None,
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


def _owner_document(name: str, owner: Owner | None, result: Round, held: Holdings) -> dict[str, Any]:
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
        "remote_queue_pairs": held.connected,
        "completion_queues": held.completion_queues,
        "memory_regions": held.memory_regions,
        "memory_region_bytes": held.memory_region_bytes,
        "contexts": held.contexts,
        "connections": dict(sorted(held.connections.items())),
        "counters": {
            f"{total.row.name}/{total.port}": value
            for total, value in result.totals.items()
            if total.owner == name
        },
    }
