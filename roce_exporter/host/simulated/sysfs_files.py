"""The changing files below /sys: state and counters of the RDMA ports, carrier and drops of the network devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.simulated.drivers import amounts, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.host.simulated.drivers import DriverCounter
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev

MEGABIT = 10**6

Content = Callable[[float], str]
"""The content of a file at a given time."""


class MovingFile(NamedTuple):
    """A file with changing content, and the simulated faults of its port."""

    content: Content
    faults: frozenset[str]


def moving_files(cards: Sequence[Card]) -> dict[str, MovingFile]:
    """Every file with changing content, by its path below /sys."""
    return dict(_files(cards))


def _files(cards: Sequence[Card]) -> Iterator[tuple[str, MovingFile]]:
    for card in cards:
        faults = card.members[0].setup.faults
        for path, content in (*_port_files(card), *_counter_files(card)):
            yield f"class/infiniband/{card.name}/ports/1/{path}", MovingFile(content, faults)
        for member in card.members:
            for path, content in _netdev_files(member):
                yield f"class/net/{member.netdev}/{path}", MovingFile(content, member.setup.faults)


def _port_files(card: Card) -> Iterator[tuple[str, Content]]:
    yield "state", lambda now: "4: ACTIVE" if card.up(now) else "1: DOWN"
    yield "phys_state", lambda now: "5: LinkUp" if card.up(now) else "2: Polling"
    yield "rate", lambda now: rate_text(card.speed(now)) if card.up(now) else card.driver.down_rate


def _counter_files(card: Card) -> Iterator[tuple[str, Content]]:
    groups = {"hw_counters": card.driver.hw_counters, "counters": card.driver.counters}
    for folder, reported in groups.items():
        for one in reported:
            yield f"{folder}/{one.raw}", _counter(card, one)


def _counter(card: Card, reported: DriverCounter) -> Content:
    return lambda now: str(amounts((reported,), card.facts(now))[0])


def _netdev_files(member: SimulatedNetdev) -> Iterator[tuple[str, Content]]:
    files = {
        "carrier_changes": "carrier_changes",
        "carrier_up_count": "carrier_ups",
        "carrier_down_count": "carrier_downs",
        "statistics/rx_dropped": "kernel_drops",
    }
    for path, fact in files.items():
        yield path, lambda now, fact=fact: str(int(member.facts(now).get(fact, 0)))  # type: ignore[misc]
    yield "carrier", lambda now: str(int(member.conditions(now).up))
    yield "operstate", lambda now: "up" if member.conditions(now).up else "down"
    yield (
        "speed",
        lambda now: str((member.conditions(now).speed or 0) // MEGABIT if member.conditions(now).up else -1),
    )
