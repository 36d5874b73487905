"""The switch at the other end of a simulated host's links: the series of `roce-exporter serve --switches.config`, derived from those of the host.

What the host transmits its switch receives, so both ends agree. Everything else (queues, buffers, the watchdog) follows from
the pause by simple proportions: enough for queries to have a result, no model of a switch.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dashboard_contents import ROWS

SAMPLE = re.compile(r"(roce_\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
SOURCES = ("databases", "port_counters", "queue_counters", "watermarks")
UPLINK = "Ethernet252"
"""A port without a host."""
KILOBYTES = 1000


@dataclass(frozen=True, slots=True)
class Leaf:
    """A switch: its name, its operating system, and the metrics that this model does not have."""

    system: str = "sonic"
    without: tuple[str, ...] = ()
    trips: float = 0.15
    """The share of a scrape interval in pause at which the watchdog trips and headroom overflows: storms last a few seconds."""
    faulty: bool = True
    """Whether one of its ports has other settings than the rest, and one of its sources fails."""

    def reports(self, name: str) -> bool:
        """Whether its operating system has a raw value for the metric, according to the catalogue."""
        spelt = {spelling.dialect for spelling in ROWS[name].spellings}
        return name not in self.without and (not spelt or self.system in spelt)


LEAVES = {
    "quiet": Leaf(faulty=False),
    "pfc-storm": Leaf(),
    "incast": Leaf(),
    "slow-receiver": Leaf(without=("roce_switch_pfc_receive_pause_seconds_total",), trips=1.0),
    "lossy": Leaf("nxos"),
}
"""The switch of each cluster that has one."""


class Port(NamedTuple):
    """A host's port with the counters of one priority."""

    netdev: str
    mac: str
    hostname: str
    values: dict[str, float]


class OtherEnd:
    """The ports of a switch with one host behind them; `first` adds the series of the whole switch."""

    def __init__(self, cluster: str, number: int, *, first: bool) -> None:
        self._leaf = LEAVES[cluster]
        self.instance = f"leaf-{cluster}"
        self._number = number
        self._first = first
        self._before: dict[str, float] = {}
        self._counted: defaultdict[str, float] = defaultdict(float)

    def scrape(self, text: str, seconds: float) -> Iterator[str]:
        """Samples without labels of the target, for the host's exposition of the same moment."""
        found = [*self._whole()] if self._first else []
        for place, port in enumerate(_ports(text)):
            found += self._port(f"Ethernet{32 * (self._number - 1) + 4 * place}", place, port, seconds)
        for name, labels, value in found:
            if self._leaf.reports(name):
                written = ",".join(f'{key}="{one}"' for key, one in {"device": "leaf1", **labels}.items())
                yield f"{name}{{{written}}} {value}"

    def _whole(self) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "roce_switch_info", {"os": self._leaf.system, "version": "1", "model": "", "asic": ""}, 1
        yield "roce_switch_probe_success", {}, 1
        yield "roce_switch_probe_duration_seconds", {}, 0.16
        for number, source in enumerate(SOURCES):
            fails = self._leaf.faulty and number == len(SOURCES) - 1
            yield "roce_switch_source_up", {"source": source}, int(not fails)
            yield "roce_switch_source_unreadable_values", {"source": source}, 3 * fails
            yield "roce_switch_source_renewal_seconds", {"source": source}, 10
        for what in ("", "_headroom"):
            labels = {"pool": "ingress_lossless_pool", "window": "periodic"}
            yield f"roce_switch_pool{what}_watermark_bytes", labels, 900 * KILOBYTES

        yield "roce_switch_port_info", {"port": UPLINK, "alias": "etp64", "description": "to spine1"}, 1
        for way in ("receive", "transmit"):
            name = f"roce_switch_pfc_{way}_frames_total"
            yield name, {"port": UPLINK, "priority": "3"}, self._add(f"{UPLINK} {way}", 10)

    def _port(
        self, name: str, place: int, port: Port, seconds: float
    ) -> Iterator[tuple[str, dict[str, str], float]]:
        held = self._share(f"{name} held", port.values["transmit_pause_seconds"], seconds)
        pauses = self._share(f"{name} pauses", port.values["receive_pause_seconds"], seconds)
        odd = self._leaf.faulty and place == 1
        at = {"port": name}
        yield "roce_switch_port_info", {**at, "alias": f"etp{place}", "description": ""}, 1
        yield "roce_switch_lldp_neighbor_info", {**at, **_neighbor(port)}, 1
        yield "roce_switch_link_up", at, 1
        yield "roce_switch_link_speed_bytes_per_second", at, 5e10
        for way, other in (("receive", "transmit"), ("transmit", "receive")):
            yield (
                f"roce_switch_global_pause_{way}_frames_total",
                at,
                port.values[f"{other}_global_frames"] + odd * self._add(f"{name} {way}", 20),
            )
        for row, label, value in (*_priority(port, odd=odd), *self._queue(name, port, held, odd=odd)):
            yield row, {**at, label: "3"}, value
        yield "roce_switch_queue_info", {**at, "priority": "3", "queue": "3", "priority_group": "3"}, 1
        yield "roce_switch_pfc_enabled", {**at, "priority": "4"}, int(odd)
        yield "roce_switch_port_buffer_discards_total", at, self._add(f"{name} port", 50 * odd)
        yield from self._health(at, odd=odd)
        yield from self._watermarks(at, held, pauses)

    def _health(self, at: dict[str, str], *, odd: bool) -> Iterator[tuple[str, dict[str, str], float]]:
        """A port with a bad cable, if odd."""
        phy, optics = "roce_switch_phy", "roce_switch_transceiver"
        wrong = ("receive_crc_errors", "fec_uncorrectable_blocks", "receive_errors")
        for what in (*wrong, "transmit_errors", "receive_discards", "transmit_discards", "local_faults"):
            yield f"{phy}_{what}_total", at, self._add(f"{at['port']} {what}", 3 * (odd and what in wrong))
        yield f"{phy}_pre_fec_bit_error_ratio", at, 1e-6 if odd else 1e-10
        for lane in range(4):
            yield (
                f"{optics}_receive_power_watts",
                {**at, "lane": str(lane)},
                0.0002 if odd and lane == 2 else 0.0009,
            )
        yield f"{optics}_receive_power_low_alarm_watts", at, 0.0003
        yield f"{optics}_temperature_celsius", at, 48.0

    def _queue(self, name: str, port: Port, held: float, *, odd: bool) -> Iterator[tuple[str, str, float]]:
        tripped = held > self._leaf.trips
        was = self._before.get(f"{name} tripped", 0)
        self._before[f"{name} tripped"] = tripped
        watchdog, queue, ecn = "roce_switch_pfc_watchdog", "roce_switch_queue", "roce_switch_config_ecn"
        yield f"{watchdog}_enabled", "queue", int(not odd)
        yield f"{watchdog}_acts", "queue", 1
        yield f"{watchdog}_detection_seconds", "queue", 0.2
        yield f"{watchdog}_restoration_seconds", "queue", 0.4
        yield f"{watchdog}_tripped", "queue", int(tripped)
        yield f"{watchdog}_trips_total", "queue", self._add(f"{name} trips", tripped > was)
        yield f"{watchdog}_restores_total", "queue", self._add(f"{name} restores", tripped < was)
        for way in ("transmit", "receive"):
            yield f"{watchdog}_{way}_discards_total", "queue", self._add(f"{name} {way} lost", 900 * tripped)
        yield f"{queue}_discards_total", "queue", self._add(f"{name} lost", 900 * tripped)
        yield f"{queue}_wred_discards_total", "queue", self._add(f"{name} wred", 5 * odd)
        yield f"{queue}_trimmed_packets_total", "queue", self._add(f"{name} trimmed", 2 * odd)
        yield f"{queue}_transmit_bytes_total", "queue", port.values["receive_bytes"]
        yield f"{queue}_ecn_marked_packets_total", "queue", port.values["ecn_marked"] // 1.25
        yield f"{queue}_paused", "queue", int(held > 0)
        yield f"{queue}_occupancy_bytes", "queue", 10 * KILOBYTES + 900 * KILOBYTES * held
        yield f"{ecn}_enabled", "queue", 1
        yield f"{ecn}_minimum_bytes", "queue", (1000 if odd else 500) * KILOBYTES
        yield f"{ecn}_maximum_bytes", "queue", 2000 * KILOBYTES
        yield f"{ecn}_probability_ratio", "queue", 0.05

    def _watermarks(
        self, at: dict[str, str], held: float, pauses: float
    ) -> Iterator[tuple[str, dict[str, str], float]]:
        group = {**at, "priority_group": "3"}
        window, buffer = {"window": "periodic"}, "roce_switch_buffer"
        most = 50 * KILOBYTES + 2000 * KILOBYTES * held
        yield "roce_switch_queue_watermark_bytes", {**at, "queue": "3", **window}, most
        yield f"{buffer}_headroom_bytes", group, 180 * KILOBYTES
        yield f"{buffer}_pause_threshold_bytes", group, 800 * KILOBYTES
        yield f"{buffer}_headroom_watermark_bytes", {**group, **window}, 180 * KILOBYTES * max(held, pauses)
        yield f"{buffer}_shared_watermark_bytes", {**group, **window}, 800 * KILOBYTES * max(held, pauses)
        yield (
            f"{buffer}_discards_total",
            group,
            self._add(f"{at['port']} headroom", 30 * (max(held, pauses) > self._leaf.trips)),
        )

    def _share(self, key: str, total: float, seconds: float) -> float:
        """The part of the interval in which a counter of seconds rose."""
        share = (total - self._before.get(key, total)) / seconds
        self._before[key] = total
        return min(1.0, max(0.0, share))

    def _add(self, key: str, more: float) -> float:
        self._counted[key] += more
        return self._counted[key]


def _priority(port: Port, *, odd: bool) -> Iterator[tuple[str, str, float]]:
    """The series of a switch port's priority, from the host's."""
    yield "roce_switch_pfc_enabled", "priority", 1
    for way, other in (("receive", "transmit"), ("transmit", "receive")):
        yield (
            f"roce_switch_pfc_{way}_frames_total",
            "priority",
            port.values[f"{other}_frames"] // (1.1 if odd else 1),
        )
    paused = port.values["transmit_pause_seconds"]
    yield "roce_switch_pfc_receive_pause_seconds_total", "priority", paused
    yield "roce_switch_pfc_receive_pause_estimated_seconds_total", "priority", 1.1 * paused
    yield "roce_switch_pfc_receive_transitions_total", "priority", port.values["transmit_frames"] // 2


def _neighbor(port: Port) -> dict[str, str]:
    """What the switch's LLDP table has about a NIC whose port identifier is its MAC address."""
    return {
        "neighbor": port.hostname, "neighbor_chassis": port.mac, "neighbor_port": port.mac, "neighbor_mac": port.mac,
        "neighbor_description": "", "port_id_kind": "mac", "source": "lldp",
    }  # fmt: skip


NAMES = {
    "roce_pfc_{way}_pause_seconds_total": "{way}_pause_seconds",
    "roce_pfc_{way}_frames_total": "{way}_frames",
    "roce_global_pause_{way}_frames_total": "{way}_global_frames",
    "roce_priority_{way}_bytes_total": "{way}_bytes",
    "roce_ecn_marked_packets_total": "ecn_marked",
}
WANTED = {key.format(way=way): value.format(way=way) for key, value in NAMES.items() for way in ("receive", "transmit")}  # fmt: skip


def _ports(text: str) -> list[Port]:
    """The ports in an exposition that have a MAC address, with their counters of priority 3."""
    found: dict[str, Port] = {}
    values: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, labelled, value in SAMPLE.findall(text):
        if name != "roce_netdev_info" and name not in WANTED:
            continue
        labels = dict(LABEL.findall(labelled))
        if name == "roce_netdev_info":
            port = Port(labels["netdev"], labels["mac"], labels["hostname"], values[labels["device"]])
            found[labels["device"]] = port
        elif labels.get("priority", "3") == "3":
            values[labels["device"]][WANTED[name]] = float(value)
    return list(found.values())
