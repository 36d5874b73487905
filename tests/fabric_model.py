"""Fabrics with a known root of their pause, and how well the pause tree names it: `python tests/fabric_model.py [FABRICS [FIRST SEED]]`.

A fluid model: leaf and spine switches, one lossless priority, flows on fixed paths, up and then down. A link serves the smaller of its
rate and of what the next queues of its flows accept; where the next queue is the limit, the switch behind the link pauses it for the rest
of the time, and where the rate is, its queue is full: that queue is a root. A host that takes less than its link's rate pauses its leaf:
that host is a root. Each switch becomes the tables of a SONiC, twice, which the exporter's own reader, rows and pause tree interpret;
nothing of the model is taken from the exporter.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sonic_redis import as_tables

from roce_exporter.switches.interpretation import Interpreter, earlier
from roce_exporter.switches.pause.pause_report import OPEN_ENDS
from roce_exporter.switches.pause.pause_tree import pause_tree
from roce_exporter.switches.switch_view import SwitchView
from roce_exporter.switches.systems.sonic.read import read_tables

Name = tuple[str, str]
"""A switch or a host, and its port."""
Root = tuple[Any, ...]
"""`("receiver", HOST)`, `("incast", SWITCH, PORT)` or `("loop", SWITCHES)`."""

RATE, UP = 100.0, 2.0
"""Gbit/s of a link to a host, and how much faster those between switches are."""
PACKET = 4096 * 8
THRESHOLD, ECN_MAXIMUM = 1_000_000, 400_000
QUANTUM = 65535 * 512 / 100e9
"""Seconds of pause that one frame requests at 100 Gbit/s."""
SECONDS = 10.0
GOALS = {"all roots named": 0.95, "a root first": 0.95, "no false root": 0.95}
KINDS = (
    *("receiver", "receiver_far", "incast", "spine_incast", "two", "slow_both", "storm", "loop"),
    *(
        "silent",
        "silent_leaf",
        "lldp_gap",
        "frames_only",
        "noise",
        "everyday",
        "old_watermark",
        "blind_incast",
    ),
    *("skewed", "ended", "quiet_trip"),
)


@dataclass
class Link:
    """One direction of a link, with the queue in front of it."""

    name: Name
    to: Name
    rate: float
    flows: list[tuple[list[Name], int]] = field(default_factory=list)
    served: float = 1.0
    demand: float = 0.0
    paused: float = 0.0
    full: bool = False
    tripped: bool = False


class Fabric:
    """One fabric of a kind. `truth` is the set of its roots."""

    def __init__(self, seed: int, kind: str) -> None:
        chance = self.random = random.Random(seed)  # noqa: S311 - not for secrets
        self.kind, self.seed = kind, seed
        self.leaves, self.spines, self.width = (
            chance.randint(3, 6),
            chance.randint(2, 3),
            chance.randint(4, 6),
        )
        self.links: dict[Name, Link] = {}
        self.drain: dict[str, float] = {}
        self.truth: set[Root] = set()
        self.silent: set[str] = set()
        self.lost: set[Name] = set()
        self.old: set[Name] = set()
        self.flows: list[tuple[list[Name], float]] = []
        names = [*(f"leaf{n}" for n in range(self.leaves)), *(f"spine{n}" for n in range(self.spines))]
        self.ports: dict[str, dict[str, Name]] = {name: {} for name in names}
        for leaf in range(self.leaves):
            for host in range(self.width):
                self._join((f"leaf{leaf}", f"Ethernet{host * 4}"), (f"gpu-{leaf}-{host}", "eth0"), RATE)
            for spine in range(self.spines):
                far = (f"spine{spine}", f"Ethernet{leaf * 4}")
                self._join((f"leaf{leaf}", f"Ethernet{100 + spine * 4}"), far, RATE * UP)
        self.hosts = [f"gpu-{leaf}-{host}" for leaf in range(self.leaves) for host in range(self.width)]
        self._load()
        self._solve()
        for sink in self.drain if kind in ("storm", "quiet_trip") else ():
            link = self.links[self.links[sink, "eth0"].to]
            link.tripped = True
            # A watchdog that has tripped may hide the pause: the queue is no longer stopped by it.
            link.paused = 0.999 if kind == "storm" else 0.0
        if kind == "loop":
            self._close_loop()

    def _join(self, one: Name, other: Name, rate: float) -> None:
        for here, there in ((one, other), (other, one)):
            self.links[here] = Link(here, there, rate)
            if here[0] in self.ports:
                self.ports[here[0]][here[1]] = there

    def _flow(self, source: str, sink: str, demand: float, spine: int | None = None) -> None:
        here, there = source.split("-")[1], sink.split("-")[1]
        path = [(source, "eth0")]
        if here != there:
            spine = self.random.randrange(self.spines) if spine is None else spine
            path += [
                (f"leaf{here}", f"Ethernet{100 + spine * 4}"),
                (f"spine{spine}", f"Ethernet{int(there) * 4}"),
            ]
        path.append((f"leaf{there}", f"Ethernet{int(sink.split('-')[2]) * 4}"))
        self.flows.append((path, demand))

    def _far(self, sink: str, count: int) -> list[str]:
        return self.random.sample(
            [one for one in self.hosts if one.split("-")[1] != sink.split("-")[1]], count
        )

    def _slow(self, sink: str, least: float, most: float, sources: list[str], demand: float) -> None:
        self.drain[sink] = self.random.uniform(least, most)
        for source in sources:
            self._flow(source, sink, demand * RATE / len(sources))

    def _load(self) -> None:
        """The flows: those that have a root, and light ones that cause nothing by themselves."""
        chance, busy = self.random, set[str]()
        sink = chance.choice(self.hosts)
        if self.kind in ("incast", "blind_incast"):
            for source in self._far(sink, chance.randint(3, 6)):
                self._flow(source, sink, 0.6 * RATE)
        elif self.kind == "spine_incast":
            # A link from a spine to a leaf at a quarter of its speed (lost lanes), with flows to several hosts behind it.
            leaf, spine = chance.randrange(self.leaves), chance.randrange(self.spines)
            self.links[f"spine{spine}", f"Ethernet{leaf * 4}"].rate = RATE * UP / 4
            busy |= {f"gpu-{leaf}-{host}" for host in range(self.width)}
            for one in sorted(busy)[:4]:
                self._flow(self._far(one, 1)[0], one, 0.4 * RATE, spine)
        elif self.kind in ("receiver", "two", "storm", "slow_both", "noise"):
            others = [host for host in self.hosts if host != sink]
            least, most = (0.01, 0.01) if self.kind == "storm" else (0.1, 0.6)
            self._slow(sink, least, most, chance.sample(others, chance.randint(1, 3)), 0.9)
        elif self.kind != "loop":
            self._slow(sink, 0.05, 0.3, self._far(sink, 3), 0.9)
        if self.kind in ("two", "slow_both"):
            busy.add(self._second(sink))
        self._hide(int(sink.split("-")[1]))
        pool = [host for host in self.hosts if host != sink and host not in busy]
        chance.shuffle(pool)
        for source, target in zip(pool[::2], pool[1::2], strict=False):
            self._flow(source, target, 0.2 * RATE)

    def _second(self, sink: str) -> str:
        """Another root: an incast elsewhere, or a less slow receiver behind the same leaf."""
        if self.kind == "two":
            other = self._far(sink, 1)[0]
            for source in self._far(other, self.random.randint(3, 6)):
                self._flow(source, other, 0.6 * RATE)
            return other
        near = [
            one for one in self.hosts if one.rpartition("-")[0] == sink.rpartition("-")[0] and one != sink
        ]
        other = self.random.choice(near)
        self._slow(other, 0.5, 0.7, self._far(other, 2), 0.9)
        return other

    def _hide(self, leaf: int) -> None:
        """What is not known of the fabric, or is out of date; `leaf` has the root."""
        chance = self.random
        if self.kind == "silent":
            self.silent = {f"spine{chance.randrange(self.spines)}"}
        elif self.kind == "silent_leaf":
            self.silent = {f"leaf{leaf}"}
        elif self.kind == "lldp_gap":
            one, spine = chance.randrange(self.leaves), chance.randrange(self.spines)
            self.lost = {
                (f"leaf{one}", f"Ethernet{100 + spine * 4}"),
                (f"spine{spine}", f"Ethernet{one * 4}"),
            }
        elif self.kind == "old_watermark":
            self.old = {
                (f"leaf{n}", f"Ethernet{chance.randrange(self.width) * 4}") for n in range(self.leaves)
            }

    def _close_loop(self) -> None:
        """Routes that go down and up again: the queues wait for each other."""
        leaves, spines = self.random.sample(range(self.leaves), 2), self.random.sample(range(self.spines), 2)
        ring = [f"leaf{leaves[0]}", f"spine{spines[0]}", f"leaf{leaves[1]}", f"spine{spines[1]}"]
        for here, there in zip(ring, [*ring[1:], ring[0]], strict=True):
            number = 100 + int(there[5:]) * 4 if here.startswith("leaf") else int(there[4:]) * 4
            link = self.links[here, f"Ethernet{number}"]
            link.paused, link.full = 0.999, True
        self.truth = {("loop", frozenset(ring))}

    def _solve(self) -> None:
        for path, demand in self.flows:
            for place, name in enumerate(path):
                self.links[name].flows.append((path, place))
                self.links[name].demand += demand
        # Of every flow the last link first: what a link serves follows from those behind it.
        order = [link for link in self.links.values() if link.flows]
        order.sort(key=lambda one: max(len(path) - place for path, place in one.flows))
        for link in order:
            ends = [self.links[path[place + 1]].served for path, place in link.flows if place + 1 < len(path)]
            accept = min([1.0, *ends])
            if (drain := self.drain.get(link.to[0])) is not None:
                accept = min(accept, drain * link.rate / link.demand)
            own = min(1.0, link.rate / link.demand)
            link.served = min(own, accept)
            if accept < own - 1e-9:
                link.paused = max(0.0, min(0.999, 1 - accept * link.demand / link.rate))
                link.full = True
                if drain is not None:
                    self.truth.add(("receiver", link.to[0]))
            elif own < 1 - 1e-9:
                link.full = True
                if link.name[0] in self.ports:
                    self.truth.add(("incast", *link.name))

    def tables(self, switch: str, seconds: float) -> dict[str, dict[str, str]]:
        """The rows of all databases of a switch, whose keys do not clash, with counters as after `seconds`."""
        chance = random.Random(f"{self.seed}{switch}")  # noqa: S311 - not for secrets
        rows = {
            "DEVICE_METADATA|localhost": {"hostname": switch, "hwsku": "Sim"},
            "WRED_PROFILE|W": {"ecn": "ecn_all", "green_max_threshold": str(ECN_MAXIMUM)},
            "BUFFER_PROFILE|B": {"pool": "P", "xoff": "165888", "static_th": str(THRESHOLD)},
            "BUFFER_POOL|P": {"size": "33554432"},
        }
        maps: dict[str, dict[str, str]] = {f"COUNTERS_{one}_NAME_MAP": {} for one in ("PORT", "QUEUE", "PG")}
        # A storm that ended between the two answers: its counters rose for a part of the time.
        lasted = min(seconds, 0.4 * SECONDS) if self.kind == "ended" else seconds
        for number, (port, (other, other_port)) in enumerate(self.ports[switch].items()):
            out, back = self.links[switch, port], self.links[other, other_port]
            noise = chance.uniform(0.0002, 0.0009) if self.kind == "noise" else 0.0
            every = (
                chance.uniform(0.002, 0.01) if self.kind == "everyday" and other not in self.ports else 0.0
            )
            received, sent = max(out.paused, noise, every), max(back.paused, noise)
            base = chance.randrange(10**6)
            oid, queue = f"oid:0x1{number:06x}", f"oid:0x15{number:06x}03"
            rate = min(out.served * out.demand, out.rate) * 1e9
            counters = {
                "SAI_PORT_STAT_PFC_3_RX_PKTS": base + int(received * lasted / QUANTUM * 1.4),
                "SAI_PORT_STAT_PFC_3_TX_PKTS": base + int(sent * lasted / QUANTUM * 1.4),
                "SAI_PORT_STAT_IF_OUT_OCTETS": base + int(rate / 8 * seconds),
            }
            is_blind = self.kind == "blind_incast"
            if not is_blind and self.kind != "frames_only":
                counters["SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"] = base * 7 + int(received * lasted * 1e6)
            held = {"SAI_QUEUE_STAT_PACKETS": base + int(rate * seconds / PACKET)}
            if not is_blind:
                is_full = out.full and self.kind != "ended"
                held["SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS"] = base + (
                    int(1000 * lasted) if out.full else 0
                )
                held["SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"] = 900_000 if is_full else chance.randrange(60_000)
                peak = 950_000 if out.full or (switch, port) in self.old else 120_000
                rows[f"PERIODIC_WATERMARKS:{queue}"] = {"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": str(peak)}
            rows[f"COUNTERS:{oid}"] = {name: str(value) for name, value in counters.items()}
            rows[f"COUNTERS:{queue}"] = {name: str(value) for name, value in held.items()} | {
                "PFC_WD_STATUS": "stormed" if out.tripped else "operational"
            }
            maps["COUNTERS_PORT_NAME_MAP"][port] = oid
            maps["COUNTERS_QUEUE_NAME_MAP"][f"{port}:3"] = queue
            maps["COUNTERS_PG_NAME_MAP"][f"{port}:3"] = f"oid:0x1a{number:06x}03"
            rows[f"PORT_TABLE:{port}"] = {"oper_status": "up", "speed": str(int(out.rate * 1000))}
            rows[f"PORT|{port}"] = {"alias": f"etp{number}"}
            rows[f"PORT_QOS_MAP|{port}"] = {"pfc_enable": "3"}
            rows[f"PFC_WD|{port}"] = {"action": "drop", "detection_time": "200", "restoration_time": "200"}
            rows[f"QUEUE|{port}|3"], rows[f"BUFFER_PG|{port}|3"] = {"wred_profile": "W"}, {"profile": "B"}
            if (switch, port) not in self.lost:
                rows[f"LLDP_ENTRY_TABLE:{port}"] = {
                    "lldp_rem_sys_name": other,
                    "lldp_rem_port_id": other_port,
                    "lldp_rem_port_id_subtype": "5",
                }
        return rows | maps

    def view(self, switch: str) -> SwitchView:
        """Two answers of a switch, as the exporter reads them."""
        if switch in self.silent:
            return SwitchView(switch, faults={"": "no connection"})
        start = self.random.uniform(0.0, 15.0) if self.kind == "skewed" else 0.0
        one, answers = Interpreter("sonic"), []
        for moment in (start, start + SECONDS):
            rows = self.tables(switch, moment)
            databases = dict.fromkeys(("appl_db", "counters_db", "config_db", "state_db"), rows)
            answers.append(one.samples(switch, read_tables([as_tables(databases)], {})))
        return SwitchView(switch, answers[1], earlier(0.0, answers[0]), SECONDS)

    def judge(self) -> tuple[bool, bool, bool]:
        """Whether all roots were named, one of them first, and nothing else."""
        certain: list[Root] = []
        unsure = set()
        for step in pause_tree([self.view(switch) for switch in self.ports]).causes:
            place = step.place
            if step.kind in OPEN_ENDS:
                unsure.add((place.switch, place.port))
            elif step.kind == "incast":
                certain.append(("incast", place.switch, place.port))
            elif step.kind == "loop":
                certain.append(("loop", frozenset(text.partition(" ")[0] for text in step.ports)))
            else:
                certain.append(("receiver", step.neighbor))
        # A root behind a switch that does not answer cannot be named: the open end has to be the link towards it.
        wanted = {
            root
            for root in self.truth
            if not any(f"-{one.removeprefix('leaf')}-" in str(root) for one in self.silent if "leaf" in one)
            and not (root[0] == "incast" and root[1] in self.silent)
        }
        towards = {
            (switch, port)
            for switch, ports in self.ports.items()
            for port, (other, _) in ports.items()
            if switch not in self.silent and other in self.silent and self.links[switch, port].paused
        }
        false = bool(set(certain) - self.truth)
        if not wanted:
            return bool(unsure & towards), not certain, not false
        return wanted <= set(certain), bool(certain) and certain[0] in self.truth, not false


def fabrics(count: int, first: int) -> list[Fabric]:
    """Fabrics of all kinds in turn, without those in which nothing is paused."""
    made = (Fabric(seed, KINDS[seed % len(KINDS)]) for seed in range(first, first + count))
    return [one for one in made if one.truth]


def main(count: int = 500, first: int = 1001) -> int:
    """Print how often each kind is judged right; 1 if a goal is missed."""
    total, right = Counter[str](), {goal: Counter[str]() for goal in GOALS}
    for fabric in fabrics(count, first):
        total[fabric.kind] += 1
        for goal, found in zip(GOALS, fabric.judge(), strict=True):
            right[goal][fabric.kind] += found
    lines = [f"| kind | fabrics | {' | '.join(GOALS)} |", f"| --- | ---: |{' ---: |' * len(GOALS)}"]
    lines += [
        f"| {kind} | {total[kind]} | {' | '.join(str(right[goal][kind]) for goal in GOALS)} |"
        for kind in sorted(total)
    ]
    shares = {goal: right[goal].total() / total.total() for goal in GOALS}
    lines.append(f"| all | {total.total()} | {' | '.join(f'{share:.1%}' for share in shares.values())} |")
    sys.stdout.write("\n".join((*lines, "")))
    return int(any(shares[goal] < least for goal, least in GOALS.items()))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
