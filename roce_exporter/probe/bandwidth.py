"""What a rail carries between two hosts, measured by `ib_write_bw` of perftest: for the prolog of a job, never on a schedule.

A small packet passes a slow link as quickly as a good one, so only traffic shows it. Both hosts run the same command, each with the name
of the other. Each serves every rail on a TCP port of its own, and they send in turn, one rail and one direction at a time, for a second:
the host that is first in the list begins, the other one sends on a rail when it has been sent to. A rail whose port carries more than a
tenth of its speed is neither served nor sent on.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.finding import Finding, NotChecked, Report, Status, Topic
from roce_exporter.errors import UserError
from roce_exporter.probe.plan import ring_order
from roce_exporter.probe.service import own_addresses
from roce_exporter.words import share

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from roce_exporter.model import Device
    from roce_exporter.probe.plan import Address, ProbeTarget
    from roce_exporter.view.history import TimedSamples

PROGRAM = "ib_write_bw"
FLAGS = ("-F", "--report_gbits", "-s", "65536", "-D", "1", "-f", "0")
"""Messages of 64 KiB, counted for one second without a margin; no warning about the frequency of processors."""
FIRST_PORT = 18515
"""TCP port of the first rail, on which perftest exchanges queue pairs; two for each rail."""
WAIT, STEP = 15.0, 10.0
"""Seconds from the beginning until the peer must be there, and that one measurement may take with what is around it."""
RETRY = 0.2
BUSY = 0.1
"""A port that carries more of its speed in either direction is busy."""
SLOW = 0.5
"""A rail that carries less of the speed of its port, or of the best rail where that is not known, is slow."""
RESULT = re.compile(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$", re.MULTILINE)
"""Bytes, iterations, peak, average in Gb/s, messages."""
REFUSED = "Couldn't connect"


class Rail(NamedTuple):
    """One port of this host, and the port of the peer that it is measured with."""

    name: str
    device: str
    port: str
    gid: int
    """Index of the own address in the GID table."""
    peer: Address

    @property
    def place(self) -> tuple[str, str]:
        """Device and port, as labels have them."""
        return self.device, self.port


class PortLoad(NamedTuple):
    """What a port can carry, and what it carries now, in bytes per second; None: not known."""

    speed: float | None = None
    rate: float | None = None

    @property
    def is_busy(self) -> bool:
        """Whether it has traffic that a measurement would disturb."""
        return bool(self.speed and self.rate and self.rate > BUSY * self.speed)


def port_loads(before: TimedSamples, now: TimedSamples) -> dict[tuple[str, ...], PortLoad]:
    """The load of each port between two moments, in the direction that carries more."""
    rates: dict[tuple[str, ...], float] = {}
    for name in ("roce_port_receive_bytes_total", "roce_port_transmit_bytes_total"):
        for place, value in now.values.get(name, {}).items():
            if (last := before.value(name, place)) is not None:
                rates[place] = max(rates.get(place, 0.0), (value - last) / (now.time - before.time))
    speeds = now.values.get("roce_port_speed_bytes_per_second", {})
    return {place: PortLoad(speeds.get(place), rates.get(place)) for place in speeds.keys() | rates.keys()}


class Pairing(NamedTuple):
    """The rails of two hosts."""

    rails: tuple[Rail, ...]
    begins: bool
    """Whether this host sends first."""


def pair_rails(devices: Iterable[Device], targets: Sequence[ProbeTarget], peer: str) -> Pairing:
    """The rails that this host and the peer, by its name or an address, have in the list.

    Raises:
        UserError: the list has none of them.
    """
    places = own_addresses(devices)
    own = sorted((one for one in targets if one.address in places), key=ring_order)
    names = {one.host for one in targets if str(one.address) == peer}
    others = sorted((one for one in targets if one.host in names | {peer}), key=ring_order)
    if not own:
        raise UserError(
            "--probe.targets: has no address of this host; list it as `cat /sys/class/infiniband/*/ports/*/gids/*` has it"
        )
    if not others or set(own) & set(others):
        raise UserError(
            f"--bandwidth={peer}: is not another host of the list; use a host or an address of --probe.targets"
        )
    left = list(others)
    rails = []
    for one in own:
        alike = [two for two in left if (two.rail, two.address.version) == (one.rail, one.address.version)]
        if alike:
            left.remove(alike[0])
            rails.append(Rail(one.rail or one.name, *places[one.address], alike[0].address))
    if not rails:
        raise UserError(f"--bandwidth={peer}: has no rail of this host in the list; compare the label `rail`")
    return Pairing(tuple(rails), ring_order(own[0]) < ring_order(others[0]))


async def measure(
    pairing: Pairing, busy: Collection[Rail] = (), program: str = PROGRAM
) -> dict[Rail, float | str]:
    """Bytes per second that each rail but the busy ones carried to the peer, or why it was not measured."""
    rails, begins = pairing
    limit = time.monotonic() + WAIT
    # Both hosts number the rails alike, whichever of them one leaves out.
    ports = {rail: FIRST_PORT + 2 * number for number, rail in enumerate(rails) if rail not in busy}
    served = {
        rail: asyncio.create_task(_run(program, rail, port + begins, limit=WAIT + STEP * len(rails)))
        for rail, port in ports.items()
    }
    found: dict[Rail, float | str] = {}
    try:
        for rail, port in ports.items():
            if not begins:
                await asyncio.wait({served[rail]}, timeout=max(STEP, limit - time.monotonic()))
            found[rail] = await _send(program, rail, port + (not begins), limit)
            if isinstance(found[rail], str):
                continue
            limit = 0.0  # the peer is there, and serves all that it will serve
            if begins:
                await asyncio.wait({served[rail]}, timeout=STEP)
    finally:
        for task in served.values():
            task.cancel()
        await asyncio.gather(*served.values(), return_exceptions=True)
    return found


async def _send(program: str, rail: Rail, port: int, limit: float) -> float | str:
    """Send to the peer, which may begin to serve until `limit`."""
    while True:
        said = await _run(program, rail, port, str(rail.peer), limit=STEP)
        if match := RESULT.search(said):
            return float(match[1]) * 1e9 / 8
        if REFUSED not in said:
            return f"{PROGRAM} says: {(said.strip().splitlines() or ['nothing'])[-1].strip()}"
        if time.monotonic() > limit:
            return "the peer does not serve it: the command does not run there, or its port is busy"
        await asyncio.sleep(RETRY)


async def _run(program: str, rail: Rail, port: int, *to: str, limit: float) -> str:
    """The output of one end; without `to` it serves."""
    flags = ("-d", rail.device, "-i", rail.port, "-x", str(rail.gid), "-p", str(port))
    process = await asyncio.create_subprocess_exec(
        program, *FLAGS, *flags, *to, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        return (await asyncio.wait_for(process.communicate(), limit))[0].decode(errors="replace")
    except TimeoutError:
        return f"no result in {limit:g} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def bandwidth_report(
    found: Mapping[Rail, float | str], busy: Iterable[Rail], loads: Mapping[tuple[str, ...], PortLoad]
) -> Report:
    """A finding for each rail that was measured. Speeds are in bytes per second."""
    rates = {rail: one for rail, one in found.items() if not isinstance(one, str)}
    findings = [
        _finding(rail, rate, loads.get(rail.place, PortLoad()).speed, max(rates.values()))
        for rail, rate in rates.items()
    ]
    gaps = [
        NotChecked(f"rail {rail.name}: {said}", *rail.place, needed=True)
        for rail, said in found.items()
        if isinstance(said, str)
    ]
    gaps += [
        NotChecked(
            f"rail {rail.name}: whether the port was busy: the driver has no counter of bytes", *rail.place
        )
        for rail in found
        if (load := loads.get(rail.place, PortLoad())).speed is None or load.rate is None
    ]
    for rail in busy:
        load = loads[rail.place]
        used = share((load.rate or 0.0) / (load.speed or 1.0))
        gaps.append(
            NotChecked(
                f"rail {rail.name}: the port is busy, it carries {used} of its speed; measure it without a job",
                *rail.place,
                needed=True,
            )
        )
    return Report(tuple(findings), tuple(gaps))


def _finding(rail: Rail, rate: float, speed: float | None, best: float) -> Finding:
    wanted = SLOW * (speed or best)
    is_slow = rate < wanted
    of_speed = f" of {_gigabits(speed)}" if speed else ""
    return Finding(
        Topic.FABRIC,
        "rail_bandwidth",
        f"Rail {rail.name} is slow to the peer" if is_slow else f"Rail {rail.name} carries enough",
        Status.DEGRADED if is_slow else Status.OK,
        *rail.place,
        expected=f"at least {_gigabits(wanted)}",
        found=_gigabits(rate),
        why="PCIe, a cap, a cable or a path: a third host shows which end it is" if is_slow else "",
        evidence=(f"{PROGRAM} to {rail.peer}: {_gigabits(rate)}{of_speed}",),
    )


def _gigabits(rate: float) -> str:
    return f"{8e-9 * rate:.3g} Gbit/s"
