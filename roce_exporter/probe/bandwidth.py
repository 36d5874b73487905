"""What a rail carries between two hosts, measured by `ib_write_bw` of perftest: for the prolog of a job, never on a schedule.

A small packet passes a slow link as quickly as a good one, so only traffic shows it. All hosts of the job run the same command with the
same names, and each computes from the list of targets who is measured with whom, and when. Of a pair the host that is first in the list
sends to the other, which sends back at the same time, for one second in all. A rail whose port carries more than a tenth of its speed is
neither served nor sent on. docs/probing.md has the slots of time in which a pair measures a rail.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.finding import Finding, NotChecked, Report, Status, Topic
from roce_exporter.errors import UserError
from roce_exporter.probe.plan import Address, ProbeTarget, ring_order
from roce_exporter.probe.service import own_addresses
from roce_exporter.view.host_view import History, PortView, View
from roce_exporter.words import share

if TYPE_CHECKING:
    from roce_exporter.model import Device

PROGRAM = "ib_write_bw"
FLAGS = ("-F", "--report_gbits", "-b", "--report-both", "-s", "65536", "-D", "1", "-f", "0")
"""Messages of 64 KiB both ways at once, counted for one second without a margin; no warning about the frequency of processors."""
FIRST_PORT = 18515
"""TCP port of the first rail, on which perftest exchanges queue pairs; each rail has its own."""
WAIT, STEP = 15.0, 10.0
"""Seconds that hosts may begin one after the other, and that one measurement may take with what is around it."""
SLOT = 3.0  # seconds: one of traffic, and the start of perftest at both ends
DIRECTIONS = ("roce_port_receive_bytes_total", "roce_port_transmit_bytes_total")
BUSY = 0.1  # a port that carries more of its speed in either direction is busy
SLOW = 0.5
"""A rail that carries less of the speed of its port, or of the best rail where that is not known, is slow."""
RESULT = re.compile(r"^[ \t]*\d+[ \t]+\d+[ \t]+[\d.]+[ \t]+(\d+(?:\.\d+)?)[ \t]+[\d.]+[ \t]*$", re.MULTILINE)
"""Bytes, iterations, peak, average in Gb/s, messages: of both directions together, of what this end sent, and of what the other sent."""
RESULTS = 3
REFUSED = "Couldn't connect"


class Rail(NamedTuple):
    """One port of this host, and the port of the peer that it is measured with."""

    name: str
    device: str
    port: str
    gid: int
    """Index of the own address in the GID table."""
    peer: Address
    number: int
    """The same on all hosts of the job, from 0 on."""

    @property
    def place(self) -> tuple[str, str]:
        """Device and port, as labels have them."""
        return self.device, self.port


class Rates(NamedTuple):
    """Bytes per second that a rail carried, both ways at the same time."""

    there: float
    back: float


class PortLoad(NamedTuple):
    """What a port can carry, and what it carries now, in bytes per second; None: not known."""

    speed: float | None
    rate: float | None


def port_loads(rails: Iterable[Rail], history: History) -> dict[Rail, PortLoad]:
    """The load of the port of each rail, in the direction that carries more."""
    found = {}
    for rail in rails:
        port = PortView(View(history), rail.device, rail.port)
        rates = [one.rate for name in DIRECTIONS if (one := port.rise(name, math.inf))]
        found[rail] = PortLoad(port.highest("roce_port_speed_bytes_per_second"), max(rates, default=None))
    return found


def busy_rails(loads: Mapping[Rail, PortLoad]) -> dict[Rail, str]:
    """The rails whose port has traffic that a measurement would disturb, with what is said of them."""
    found = {}
    for rail, (speed, rate) in loads.items():
        if speed and rate and rate > BUSY * speed:
            used = share(rate / speed)
            found[rail] = f"the port is busy, it carries {used} of its speed; measure it without a job"
    return found


class Pairing(NamedTuple):
    """The rails of this host and its peer, and when each is measured."""

    peer: str
    """Empty: the number of hosts is odd, and this one is the last."""
    rails: tuple[Rail, ...]
    begins: bool
    """Whether this host sends, and the peer serves."""
    number: int = 0
    """Of the pair."""
    slots: int = 1

    def pause(self, rail: Rail, now: float) -> float:
        """Seconds until the next slot of this rail begins; `now` in Unix seconds."""
        return ((self.number + rail.number) * SLOT - now) % (self.slots * SLOT)


def pair_rails(devices: Iterable[Device], targets: Sequence[ProbeTarget], names: str) -> Pairing:
    """How this host is paired. `names`: the hosts of the job, by name or an address, with commas; this one need not be there.

    Raises:
        UserError: the list has not all of them, or no rail that both hosts of the pair have.
    """
    places = own_addresses(devices)
    hosts: dict[str, list[ProbeTarget]] = {}
    for one in sorted(targets, key=ring_order):
        hosts.setdefault(one.name, []).append(one)
    own = next((one.name for ports in hosts.values() for one in ports if one.address in places), None)
    if own is None:
        raise UserError(
            "--probe.targets: has no address of this host; list it as `cat /sys/class/infiniband/*/ports/*/gids/*` has it"
        )
    by_address = {str(one.address): one.name for one in targets}
    named = {by_address.get(text, text) for text in names.split(",")}
    if unknown := named - hosts.keys():
        raise UserError(
            f"--bandwidth: {min(unknown)} is not a host of the list; use hosts or addresses of --probe.targets"
        )
    job = [one for one in hosts if one in named | {own}]
    at = job.index(own)
    peer = dict(enumerate(job)).get(at ^ 1, "")
    lanes = {one: _lanes(hosts[one]) for one in job}
    every = sorted({lane for found in lanes.values() for lane in found})
    rails = tuple(
        Rail(here.rail or here.name, *places[here.address], there.address, number)
        for number, lane in enumerate(every)
        if (there := lanes.get(peer, {}).get(lane))
        and (here := lanes[own].get(lane))
        and here.address in places
    )
    if peer and not rails:
        raise UserError(f"--bandwidth: {peer} has no rail of this host in the list; compare the label `rail`")
    return Pairing(peer, rails, at % 2 == 0, at // 2, max(len(job) // 2, len(every)))


def _lanes(ports: Iterable[ProbeTarget]) -> dict[tuple[str, int, int], ProbeTarget]:
    """The ports of a host by rail, version of the address, and a number where the list gives a rail several of them."""
    seen: Counter[tuple[str, int]] = Counter()
    found: dict[tuple[str, int, int], ProbeTarget] = {}
    for one in ports:
        rail = one.rail, one.address.version
        found[*rail, seen[rail]] = one
        seen[rail] += 1
    return found


async def measure(pairing: Pairing, busy: Mapping[Rail, str]) -> dict[Rail, Rates | str]:
    """What each rail carried, or why it was not measured, as it is for busy ones."""
    rails = [one for one in pairing.rails if one not in busy]
    limit = WAIT + pairing.slots * SLOT
    if not pairing.begins:
        said = await asyncio.gather(*(_run(one, limit=limit + STEP) for one in rails))
        return {**busy, **dict(zip(rails, map(_read, said), strict=True))}
    end = time.monotonic() + limit
    found: dict[Rail, Rates | str] = dict(busy)
    while len(found) < len(pairing.rails):
        now = time.time()
        pause, rail = min(
            ((pairing.pause(one, now), one) for one in rails if one not in found), key=lambda one: one[0]
        )
        await asyncio.sleep(pause)
        output = await _run(rail, str(rail.peer), limit=STEP)
        if REFUSED not in output:
            found[rail] = _read(output)
            end = 0.0  # the peer is there, and serves all that it will serve
        elif time.monotonic() > end:
            found[rail] = "the peer does not serve it: the command does not run there, or its port is busy"
    return found


def _read(output: str) -> Rates | str:
    """The rates in the output of either end, or its last line."""
    if len(found := RESULT.findall(output)) == RESULTS:
        _, there, back = found
        return Rates(float(there) * 1e9 / 8, float(back) * 1e9 / 8)
    return f"{PROGRAM} says: {(output.strip().splitlines() or ['nothing'])[-1].strip()}"


async def _run(rail: Rail, *to: str, limit: float) -> str:
    """The output of one end; without `to` it serves."""
    port = str(FIRST_PORT + rail.number)
    flags = ("-d", rail.device, "-i", rail.port, "-x", str(rail.gid), "-p", port)
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *FLAGS, *flags, *to, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        return (await asyncio.wait_for(process.communicate(), limit))[0].decode(errors="replace")
    except TimeoutError:
        return f"no result in {limit:g} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def bandwidth_report(found: Mapping[Rail, Rates | str], loads: Mapping[Rail, PortLoad]) -> Report:
    """A finding for each rail that was measured. Speeds are in bytes per second."""
    rates = {rail: one for rail, one in found.items() if not isinstance(one, str)}
    findings = [
        _finding(rail, one, loads[rail].speed, max(map(max, rates.values()))) for rail, one in rates.items()
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
        if None in loads[rail]
    ]
    return Report(tuple(findings), tuple(gaps))


def _finding(rail: Rail, rates: Rates, speed: float | None, best: float) -> Finding:
    wanted = SLOW * (speed or best)
    is_slow = min(rates) < wanted
    of_speed = f" of {_gigabits(speed)}" if speed else ""
    return Finding(
        Topic.FABRIC,
        "rail_bandwidth",
        f"Rail {rail.name} is slow to the peer" if is_slow else f"Rail {rail.name} carries enough",
        Status.DEGRADED if is_slow else Status.OK,
        *rail.place,
        expected=f"at least {_gigabits(wanted)}",
        found=_gigabits(min(rates)),
        why="PCIe, a cap, a cable or a path: a third host shows which end it is" if is_slow else "",
        evidence=(
            f"{PROGRAM} with {rail.peer}: {_gigabits(rates.there)} there, {_gigabits(rates.back)} back at the same time{of_speed}",
        ),
    )


def _gigabits(rate: float) -> str:
    return f"{8e-9 * rate:.3g} Gbit/s"
