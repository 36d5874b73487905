"""Our exporter and the others on the same kernel, with the same faults; prints the tables of docs/comparison.md.

`tests/lab/run.sh --compare` runs it in the lab's guest.

Every counter of every card gets a unique number, so that an exported value is recognised whatever its name. Then the
cards fail in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import nic
import traffic
from daemon import COMMAND, NOBODY, get, parse, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = Path(os.environ.get("ROCELAB_TOOLS", "/nowhere"))
COLLECTORS = ("--collector.disable-defaults", "--collector.infiniband", "--collector.ethtool")
SCALES = (1, 4, 1e-6, 0.5, 125_000)
"""Words, microseconds, half transitions, megabits: units that exporters convert."""

SICK, WELL = "mlx5_0", "bnxt_re0"
PATIENCE = 12.0
"""Seconds after which a scrape is abandoned, longer than Prometheus's default of 10."""

HALF = 0.5
SLOW = 2.0
"""Seconds from which on the duration of a scrape is reported."""

DELAY = 200
"""Microseconds that each query of the firmware takes, as measured in the field for mlx5."""


@dataclass(frozen=True, slots=True)
class Rival:
    """One serving exporter."""

    name: str
    process: subprocess.Popen[bytes]
    url: str

    def scrape(self) -> tuple[dict[str, float], float]:
        """Every sample (empty without a timely reply), and the duration in seconds."""
        begun = time.monotonic()
        try:
            samples = parse_loosely(get(self.url, PATIENCE))
        except (OSError, ValueError):
            samples = {}
        return samples, time.monotonic() - begun

    def processor_seconds(self) -> float:
        """Processor time that it has used, user and kernel."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def parse_loosely(text: str) -> dict[str, float]:
    """As `daemon.parse`, for expositions that include the exporter's own runtime too."""
    return {
        series: number
        for series, number in parse(text).items()
        if not series.startswith(("go_", "process_", "promhttp_"))
    }


def commands() -> dict[str, tuple[str, ...]]:
    """The available exporters by name, each with its port."""
    found = {
        "roce_exporter": (
            COMMAND,
            "--web.listen-address=127.0.0.1:9001",
            "--sampler.mode=off",
            "--collect.timeout=5",
        )
    }
    for program, name, port in (
        ("node_exporter_debian", "node_exporter (Debian)", 9002),
        ("node_exporter", "node_exporter (newest)", 9003),
    ):
        if (TOOLS / program).exists():
            found[name] = (str(TOOLS / program), f"--web.listen-address=127.0.0.1:{port}", *COLLECTORS)
    if (TOOLS / "rdma_exporter").exists():
        found["rdma_exporter (yuuki)"] = (str(TOOLS / "rdma_exporter"), "--listen-address=127.0.0.1:9004")
    return found


def start() -> list[Rival]:
    """Start all of them, unprivileged."""
    rivals = []
    for name, command in commands().items():
        with Path(f"/run/{command[0].rpartition('/')[2]}.log").open("wb") as log:
            process = subprocess.Popen([*NOBODY, *command], stdout=log, stderr=log)  # noqa: S603 - of this file
        address = next(flag.partition("=")[2] for flag in command if "listen-address" in flag)
        rivals.append(Rival(name, process, f"http://{address}/metrics"))
    for rival in rivals:
        wait_until(lambda rival=rival: rival.scrape()[0])
    return rivals


class Place(NamedTuple):
    """The place of a counter: device, and `hw_counters`, `counters` or `ethtool`."""

    device: str
    interface: str


def play() -> dict[Place, set[int]]:
    """Set every counter of every card that the kernel exposes to a unique number."""
    numbers: dict[Place, set[int]] = {}
    following = 1_000_003
    for device, card in sorted(nic.nics().items()):
        card.leg("ethtool").write("refresh_ms", "0")
        for interface, (table, names) in counters(card).items():
            table.set({name: following + 1009 * place for place, name in enumerate(names)})
            numbers[Place(device, interface)] = {following + 1009 * place for place in range(len(names))}
            following += 1009 * (len(names) + 1)
    return numbers


def counters(card: nic.Nic) -> dict[str, tuple[nic.Table, tuple[str, ...]]]:
    """The table behind each interface of a card, and the names that the kernel exposes there, wide enough for a number."""
    (statistic,) = nic.ask_json("rdma", "-j", "statistic", "show", "link", f"{card.rdma}/1")
    lines = nic.run("ethtool", "-S", card.netdevs[0]).splitlines()[1:]
    private = tuple(line.rpartition(":")[0].strip() for line in lines)
    found = {
        "hw_counters": (
            card.table("rdma"),
            tuple(name for name in card.table("rdma").values() if name in statistic),
        ),
        "ethtool": (card.leg("ethtool"), private),
    }
    if card.table("port").path.exists():
        wide = ("port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets")
        found["counters"] = (card.table("port"), wide)
    return found


def found(samples: dict[str, float], numbers: set[int]) -> int:
    """How many of the numbers are in an exposition, in whatever unit."""
    values = {round(number, 6) for number in samples.values()}
    return sum(any(round(number * scale, 6) in values for scale in SCALES) for number in numbers)


def coverage(rivals: list[Rival]) -> Iterator[str]:
    """A table: how many of the kernel's values each exporter reports."""
    numbers = play()
    reported = {rival.name: rival.scrape()[0] for rival in rivals}
    yield table_row("", *reported)
    yield table_row(*["---"] * (len(reported) + 1))
    for place, wanted in numbers.items():
        cells = [f"{found(samples, wanted)} of {len(wanted)}" for samples in reported.values()]
        yield table_row(f"{nic.nics()[place.device].rdma} `{place.interface}`", *cells)
    yield table_row(
        "network devices distinguished by RDMA device",
        *[says(samples, 'device="mlx5_0"', "netdev=") for samples in reported.values()],
    )
    yield table_row(
        "PFC on or off per priority", *[says(samples, "roce_pfc_enabled") for samples in reported.values()]
    )


def says(samples: dict[str, float], *texts: str) -> str:
    """Whether a series has all these texts."""
    return "yes" if any(all(text in series for text in texts) for series in samples) else "no"


FAULTS = (
    ("one RDMA counter fails (EIO)", "rdma", "np_cnp_sent EIO"),
    ("all RDMA counters of a device fail (EIO)", "rdma", "EIO"),
    ("all RDMA counters of a device fail (EINVAL)", "rdma", "EINVAL"),
    ("`counters/` fails (EINVAL)", "port", "EIO"),
    ("the port's state fails (EIO)", "state", "EIO"),
    ("ethtool of one network device fails (EIO)", "leg0/access", "EIO"),
    ("ethtool of one network device is gone (ENODEV)", "leg0/access", "ENODEV"),
    ("RDMA counters of one device hang", "rdma", "hang"),
    ("ethtool of one network device hangs", "leg0/ethtool", "hang"),
)


def is_about(series: str, device: str, netdev: str) -> bool:
    """Whether a series names a device or its network device."""
    return f'"{device}"' in series or f'"{netdev}"' in series


def fates(rivals: list[Rival]) -> Iterator[str]:
    """A table: what remains in each exporter when a card fails, of the failed device and of all others."""
    cards = nic.nics()
    yield table_row("fault", *[rival.name for rival in rivals])
    yield table_row(*["---"] * (len(rivals) + 1))
    for words, table, fault in FAULTS:
        before = {rival.name: rival.scrape()[0] for rival in rivals}
        with cards[SICK].table(table).broken(fault):
            if fault == "hang":
                # The first scrape may have queried other cards before the hung one.
                for rival in rivals:
                    rival.scrape()
            after = {rival.name: rival.scrape() for rival in rivals}
        cells = [fate(before[name], samples, seconds) for name, (samples, seconds) in after.items()]
        yield table_row(words, *cells)
        for rival in rivals:
            enough = HALF * len(before[rival.name])
            wait_until(lambda rival=rival, enough=enough: len(rival.scrape()[0]) >= enough)


def fate(before: dict[str, float], after: dict[str, float], seconds: float) -> str:
    """What a fault did to a scrape."""
    if not after:
        return f"**no answer** within {PATIENCE:.0f} s"
    netdev = nic.nics()[SICK].netdevs[0]
    reported = {
        series for series in before if 'device="' in series and not series.startswith("roce_exporter_")
    }
    sick = {series for series in reported if is_about(series, SICK, netdev)}
    ethernet = {series for series in reported if not is_rdma(series)}
    slow = f"; {seconds:.0f} s" if seconds > SLOW else ""
    rdma = f"RDMA {share(sick - ethernet, after)} / {share(reported - sick - ethernet, after)}"
    return f"{rdma}, Ethernet {share(sick & ethernet, after)} / {share(ethernet - sick, after)}{slow}"


def is_rdma(series: str) -> bool:
    """Whether a series is about the RDMA side of a port, and not about its network device."""
    return series.startswith(("node_infiniband_", "rdma_")) or (
        series.startswith("roce_") and "netdev=" not in series
    )


def share(series: set[str], after: dict[str, float]) -> str:
    """The percentage of the series that are left."""
    return f"{100 * len(series & after.keys()) / len(series):.0f}" if series else "-"


def soft_roce(rivals: list[Rival]) -> Iterator[str]:
    """A table: a Soft-RoCE device, which has no `counters` directory, is added to the host."""
    before = {rival.name: rival.scrape()[0] for rival in rivals}
    traffic.bring_up()
    after = {rival.name: rival.scrape() for rival in rivals}
    yield table_row("", *after)
    yield table_row(*["---"] * (len(after) + 1))
    yield table_row(
        "left of the others", *[fate(before[name], *reported) for name, reported in after.items()]
    )
    yield table_row("its own counters", *[says(samples, 'device="rxe0"') for samples, _ in after.values()])
    traffic.take_down()


def costs(rivals: list[Rival]) -> Iterator[str]:
    """A table: how often each scrape queries the drivers, and its duration when each query is slow."""
    tables = [
        table
        for card in nic.nics().values()
        for table in (
            card.table("rdma"),
            card.table("port"),
            *(card.leg(name) for name in ("ethtool", "dcb", "pause", "fec", "standard", "link")),
        )
        if table.path.exists()
    ]
    for table in tables:
        table.delay(DELAY)
    yield table_row("per scrape", *[rival.name for rival in rivals])
    yield table_row(*["---"] * (len(rivals) + 1))
    measured = [cost(rival, tables) for rival in rivals]
    yield table_row("queries of the drivers", *[f"{queries:.0f}" for queries, _, _, _ in measured])
    yield table_row("series", *[f"{series}" for _, series, _, _ in measured])
    yield table_row("seconds, in the guest", *[f"{seconds:.2f}" for _, _, seconds, _ in measured])
    yield table_row("processor seconds, in the guest", *[f"{used:.2f}" for _, _, _, used in measured])
    for table in tables:
        table.delay(0)


def cost(rival: Rival, tables: list[nic.Table], rounds: int = 5) -> tuple[float, int, float, float]:
    """What a scrape costs an exporter."""
    rival.scrape()
    queries, used = sum(table.queries() for table in tables), rival.processor_seconds()
    seconds, series = 0.0, 0
    for _ in range(rounds):
        samples, took = rival.scrape()
        seconds, series = seconds + took, len(samples)
        time.sleep(HALF)  # longer than the 10 ms for which the kernel caches the values
    asked = sum(table.queries() for table in tables) - queries
    return asked / rounds, series, seconds / rounds, (rival.processor_seconds() - used) / rounds


def table_row(*cells: str) -> str:
    """One row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


HOSTS = (
    ("mlx5,mlx5", (("One kind of card", coverage), ("A card of another kind", soft_roce))),
    (
        "mlx5,bnxt,ionic,ice",
        (("Cards of four kinds", coverage), ("A card breaks", fates), ("Cost, with 0.2 ms per query", costs)),
    ),
)
"""The cards of a host, and the tables that are made on it."""


def main() -> None:
    """Print the tables."""
    nic.run("modprobe", "-a", "ib_core", "ib_uverbs")
    for devices, tables in HOSTS:
        nic.load(devices)
        rivals = start()
        for title, rows in tables:
            sys.stdout.write(f"\n## {title} ({devices})\n\n")
            for row in rows(rivals):
                sys.stdout.write(row + "\n")
                sys.stdout.flush()
        for rival in rivals:
            rival.process.kill()
            rival.process.wait()
        nic.unload()


if __name__ == "__main__":
    main()
