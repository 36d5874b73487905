"""Small fabrics for the tests of the pause tree and of the audit: constructed values, no recorded ones."""

from __future__ import annotations

from dataclasses import replace

from roce_exporter.catalog import INDEX
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.switches.interpretation import SeriesTable, earlier
from roce_exporter.switches.switch_view import SwitchView

ROWS = INDEX.named

SECONDS = 10.0
"""Between two answers."""

START = 1_000_000
"""What counters have before: they do not start with the test."""


class MadeSwitch:
    """A switch whose answers are built line by line; names of rows are without `roce_switch_`."""

    def __init__(self, name: str, *ports: str, os: str = "sonic") -> None:
        self.name = name
        self.now: dict[Series, float | None] = {}
        self.before: dict[Series, float | None] = {}
        self.set("info", os, "1", "model", "asic", value=1)
        for port in ports:
            self.port(port)

    def series(self, row: str, *labels: str) -> Series:
        found = ROWS[f"roce_switch_{row}"]
        assert len(labels) == len(found.labels) - 1, found.labels
        return Series(found, (self.name, *labels))

    def set(self, row: str, *labels: str, value: float | None) -> MadeSwitch:
        """A value that is the same in both answers."""
        self.now[self.series(row, *labels)] = self.before[self.series(row, *labels)] = value
        return self

    def rate(self, row: str, *labels: str, each_second: float) -> MadeSwitch:
        series = self.series(row, *labels)
        self.before[series], self.now[series] = START, START + each_second * SECONDS
        return self

    def drop(self, row: str) -> MadeSwitch:
        """Remove all series of a row."""
        for answer in (self.now, self.before):
            for series in [one for one in answer if one.row.name == f"roce_switch_{row}"]:
                del answer[series]
        return self

    def port(self, port: str, alias: str = "") -> None:
        self.set("port_info", port, alias, "", value=1)
        self.set("queue_info", port, "3", "3", "3", value=1)
        for row in ("receive_frames", "transmit_frames", "receive_pause_seconds"):
            self.rate(f"pfc_{row}_total", port, "3", each_second=0)
        self.set("buffer_pause_threshold_bytes", port, "3", value=1_000_000)
        self.set("queue_watermark_bytes", port, "3", "periodic", value=1000)

    def neighbor(
        self,
        port: str,
        name: str,
        neighbor_port: str,
        kind: str = "name",
        mac: str = "",
        *,
        description: str = "",
        source: str = "lldp",
        chassis: str = "",
    ) -> MadeSwitch:
        labels = (port, name, chassis, neighbor_port, description, mac, kind, source)
        return self.set("lldp_neighbor_info", *labels, value=1)

    def paused(self, port: str, share: float, priority: str = "3") -> MadeSwitch:
        """The neighbour pauses the port."""
        self.rate("pfc_receive_pause_seconds_total", port, priority, each_second=share)
        return self.rate("pfc_receive_frames_total", port, priority, each_second=1000 * share)

    def pauses(self, port: str, frames: float = 100, priority: str = "3") -> MadeSwitch:
        """The port pauses its neighbour."""
        return self.rate("pfc_transmit_frames_total", port, priority, each_second=frames)

    def full(self, port: str, held: float = 900_000) -> MadeSwitch:
        return self.set("queue_watermark_bytes", port, "3", "periodic", value=held)

    def view(self, *, answers: int = 2) -> SwitchView:
        now, before = (Samples(tuple(answer), tuple(answer.values())) for answer in (self.now, self.before))
        more = (earlier(0.0, before), SECONDS) if answers > 1 else ()
        return SwitchView(self.name, now, *more)


def linked(one: MadeSwitch, port: str, other: MadeSwitch, other_port: str) -> None:
    """A link between two switches, reported by both."""
    one.neighbor(port, other.name, other_port)
    other.neighbor(other_port, one.name, port)


def leaf_spine() -> tuple[MadeSwitch, MadeSwitch, MadeSwitch]:
    """leaf1 with gpu-001 and gpu-002, leaf2 with gpu-007 and gpu-008, and one spine."""
    leaf1 = MadeSwitch("leaf1", "Ethernet0", "Ethernet4", "Ethernet48")
    leaf2 = MadeSwitch("leaf2", "Ethernet12", "Ethernet16", "Ethernet48")
    spine = MadeSwitch("spine1", "Ethernet0", "Ethernet4")
    leaf1.neighbor("Ethernet0", "gpu-001", "eth0").neighbor("Ethernet4", "gpu-002", "eth0")
    leaf2.neighbor("Ethernet12", "gpu-007", "eth2").neighbor("Ethernet16", "gpu-008", "eth0")
    linked(leaf1, "Ethernet48", spine, "Ethernet0")
    linked(leaf2, "Ethernet48", spine, "Ethernet4")
    return leaf1, leaf2, spine


def slow_receiver() -> tuple[MadeSwitch, MadeSwitch, MadeSwitch]:
    """gpu-007 does not take its packets: pause spreads over leaf2 and spine1 to leaf1 and gpu-001."""
    leaf1, leaf2, spine = leaf_spine()
    leaf2.paused("Ethernet12", 0.84).pauses("Ethernet48", 820)
    spine.paused("Ethernet4", 0.82).pauses("Ethernet0", 800)
    leaf1.paused("Ethernet48", 0.8).pauses("Ethernet0", 310)
    return leaf1, leaf2, spine


def as_kept(view: SwitchView, table: SeriesTable) -> SwitchView:
    """With its series as the exporter keeps them."""
    samples, before = view.samples._replace(series=table), view.before and view.before._replace(series=table)
    return replace(view, samples=samples, before=before)


def views(*switches: MadeSwitch) -> list[SwitchView]:
    return [switch.view() for switch in switches]
