"""Faults on a real kernel, whose truth is in this file, and what `check health` says of them.

A fault happens between the two samples of one diagnosis, so no time decides. Soft-RoCE and netdevsim are the kernel's own; rocelab's cards
report what a driver would.
"""

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import nic
import pytest
import traffic
from daemon import COMMAND, wait_until
from nic import run
from test_devlink import MODULES, break_health
from test_devlink import exporter as netdevsim  # noqa: F401 - a fixture

from roce_exporter.assemble import Clock
from roce_exporter.checks.finding import Report
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.cli.check_host import HostCourse, sampled
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.parts import open_kernel

CARD, OTHER = "mlx5_0", "bnxt_re0"


class Truth(NamedTuple):
    """One fault of a card: what happens, and what is true of it."""

    happens: Callable[[nic.Nic], None]
    side: str
    causes: frozenset[str]
    mends: Callable[[nic.Nic], None] = lambda _: None
    lasting: bool = False
    """Whether it is there at the first sample. A source that fails once may be one of a device that was just reset."""


def diagnosed(happens: Callable[[], None]) -> Report:
    """What is said of this host, if this happens between the two samples."""

    async def reach(_: object, step: float) -> None:
        if step:
            await asyncio.to_thread(happens)

    options = parse_options(["check", "--collect.timeout=3", "--source.disable=owners"])
    course = HostCourse(Clock(), (0.0, 1.0), reach, lambda _: time.time())
    return diagnose(asyncio.run(sampled(options, open_kernel(options), course)).history)


def raised(table: str, **amounts: int) -> Callable[[nic.Nic], None]:
    """These counters of a card are raised."""

    def happens(card: nic.Nic) -> None:
        place = card.leg(table.removeprefix("leg0/")) if table.startswith("leg0/") else card.table(table)
        before = place.values()
        place.set({name: before[name] + amount for name, amount in amounts.items()})

    return happens


def link(*states: int) -> Callable[[nic.Nic], None]:
    """The link of a card goes through these states."""

    def happens(card: nic.Nic) -> None:
        for up in states:
            card.leg("link").set({"up": up})
            wait_until(lambda up=up: carrier(card) == up)

    return happens


def carrier(card: nic.Nic) -> int:
    """Whether the network device has a link."""
    (row,) = nic.ask_json("ip", "-j", "link", "show", "dev", card.netdevs[0])
    return int("LOWER_UP" in row["flags"])


def said(text: str) -> Callable[[nic.Nic], None]:
    """The driver of a card writes this to the kernel log."""
    return lambda card: card.log("err", text)


def broken(table: str, fault: str) -> Callable[[nic.Nic], None]:
    """Requests to a card's network device fail so: `access` every one, `ethtool` those for counters."""
    return lambda card: card.leg(table).break_with(fault)


CARD_FAULTS = {
    "flapping": Truth(link(0, 1, 0, 1, 0, 1), "link", frozenset({"link_flapping"})),
    "down": Truth(link(0), "link", frozenset({"link_down"}), link(1)),
    "storming": Truth(
        raised("leg0/ethtool", rx_prio3_pause_duration=6_000_000, rx_prio3_pause=4000),
        "fabric",
        frozenset({"pause_storm_received"}),
    ),
    "damaging": Truth(
        raised("leg0/ethtool", rx_crc_errors_phy=500), "link", frozenset({"crc_errors", "link_errors"})
    ),
    "deserted": Truth(
        raised("rdma", req_transport_retries_exceeded=2, local_ack_timeout_err=14),
        "peer",
        frozenset({"retries_exceeded"}),
    ),
    "overheating": Truth(
        said("Port module event[error]: module 0, Cable error, High Temperature"),
        "host",
        frozenset({"too_hot"}),
    ),
    "silent-firmware": Truth(
        said("wait_func:1186:(pid 44): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource"),
        "host",
        frozenset({"driver_not_responding"}),
    ),
    "sick-firmware": Truth(
        said("poll_health:801:(pid 0): device's health compromised - reached miss count"),
        "host",
        frozenset({"device_error"}),
    ),
    "unplugged": Truth(
        said("Port module event: module 0, Cable unplugged"), "link", frozenset({"module_fault"})
    ),
    "failing": Truth(
        broken("access", "EIO"), "host", frozenset({"source_broken"}), broken("access", "none"), lasting=True
    ),
    "hanging": Truth(
        broken("ethtool", "hang"),
        "host",
        frozenset({"source_broken", "driver_not_responding"}),
        broken("ethtool", "none"),
    ),
}


@pytest.fixture(scope="module")
def pair() -> Iterator[dict[str, nic.Nic]]:
    nic.load("mlx5,bnxt")
    cards = nic.nics()
    # Ports without an address are a finding of their own, which explains many others.
    for card, address in ((CARD, "198.51.100.1/24"), (OTHER, "203.0.113.1/24")):
        run("ip", "address", "add", address, "dev", cards[card].netdevs[0])
    yield cards
    nic.unload()


def faults(diagnosis: Report, device: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Side, cause and evidence of the findings of a device, the worst first. The settings of the cards follow no profile."""
    return [
        (one.side.value, one.check, one.evidence)
        for one in diagnosis.findings
        if one.device == device and one.check != "misconfigured"
    ]


def check(diagnosis: Report, device: str, side: str, causes: frozenset[str]) -> None:
    """The worst finding of the device has this side and one of these causes."""
    found = faults(diagnosis, device)
    assert found, diagnosis
    assert (found[0][0], found[0][1] in causes) == (side, True), found


@pytest.mark.parametrize("name", CARD_FAULTS)
def test_a_fault_of_a_card(pair, name) -> None:
    truth, card = CARD_FAULTS[name], pair[CARD]
    try:
        if truth.lasting:
            truth.happens(card)
        diagnosis = diagnosed(lambda: truth.happens(card))
    finally:
        truth.mends(card)
    check(diagnosis, CARD, truth.side, truth.causes)
    if name != "hanging":  # it holds the lock of all network configuration
        assert faults(diagnosis, OTHER) == []


def test_nothing_is_wrong_with_cards_without_a_fault(pair) -> None:
    diagnosis = diagnosed(lambda: None)
    assert faults(diagnosis, CARD) + faults(diagnosis, OTHER) == []


def test_the_command_says_so(pair) -> None:
    command = (COMMAND, "check", "health", "--format=json", "--interval=1s", "--source.disable=owners")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        output, _ = process.communicate()
    findings = json.loads(output)["findings"]
    assert {one["check"] for one in findings} <= {"misconfigured"}
    assert process.returncode == (
        1 if findings else 3 if any(one["needed"] for one in json.loads(output)["not_checked"]) else 0
    )


@pytest.fixture(scope="module")
def wire() -> Iterator[None]:
    """Two Soft-RoCE devices."""
    traffic.bring_up()
    yield
    traffic.take_down()


def spoilt_traffic(end: int, *how: str) -> Callable[[], None]:
    """Traffic from rxe0 to rxe1 over a wire that is spoilt at this end."""

    def happens() -> None:
        with traffic.spoilt(end, *how):
            traffic.exchange("ib_write_bw", "-n", "300", "-s", "4096")

    return happens


@pytest.mark.parametrize(
    "how",
    [("loss", "5%"), ("corrupt", "5%"), ("delay", "2ms", "reorder", "25%", "50%")],
    ids=["loss", "corruption", "reordering"],
)
def test_a_bad_path(wire, how) -> None:
    """Soft-RoCE counts neither wrong checksums nor reordering: what is lost, corrupted or late was not in order at the receiver."""
    check(diagnosed(spoilt_traffic(0, *how)), "rxe1", "fabric", frozenset({"packet_loss"}))


def has_retried(before: int) -> bool:
    """Whether rxe0 has retransmitted often."""
    return traffic.printed("rxe0")["completer_retry_err"] > before + 3


@pytest.mark.parametrize("how", ["silence", "killed"])
def test_a_peer_that_is_gone(wire, how) -> None:
    """The path drops everything, or the peer's process was killed.

    perftest allows seven retries, which Soft-RoCE never uses up (rxe_completer), and Soft-RoCE counts no timeouts: this fault cannot be
    told here. It must not be taken for one of this host or its link.
    """

    def happens() -> None:
        before = traffic.printed("rxe0")["completer_retry_err"]
        with (
            traffic.spoilt(0),
            traffic.spoilt(1),
            traffic.started("ib_write_bw", "-s", "4096", "-D", "60", "-u", "10") as ends,
        ):
            if how == "killed":
                ends.server.kill()
            else:
                for end in (0, 1):
                    traffic.lose(end, "100%")
            wait_until(lambda: has_retried(before))

    assert {side for side, _, _ in faults(diagnosed(happens), "rxe0")} <= {"peer", "fabric", "unknown"}


def test_a_wire_that_is_cut(wire) -> None:
    def happens() -> None:
        run("ip", "link", "set", traffic.NETDEVS[1], "down")
        wait_until(lambda: "DOWN" in run("rdma", "link", "show", "rxe0/1"))

    try:
        diagnosis = diagnosed(happens)
    finally:
        run("ip", "link", "set", traffic.NETDEVS[1], "up")
        traffic.route()
    check(diagnosis, "rxe0", "link", frozenset({"link_down"}))


@pytest.mark.skipif(
    not (MODULES / "netdevsim.ko").exists(), reason="run.sh builds netdevsim for test_devlink.py"
)
@pytest.mark.usefixtures("netdevsim")
def test_a_reporter_in_error() -> None:
    diagnosis = diagnosed(lambda: break_health("a fault that stays"))
    check(diagnosis, "rxe_dl", "host", frozenset({"device_error"}))
