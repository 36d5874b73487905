"""The IP side of two rails in one subnet: faults made with `ip`, what the audit finds, and that real packets show the same.

Two Soft-RoCE devices are on two veth cables to a bridge in another network namespace, where the peer is.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemon import COMMAND, NOBODY, wait_until
from nic import run
from test_diagnosis import diagnosed

from roce_exporter.checks.health.settings_rules import IP_CHECKS
from roce_exporter.cli import main

RAILS = ("rail1", "rail2")
OWN = ("10.5.0.1", "10.5.0.2")
PEER, GATEWAY, NOWHERE = "10.5.0.9", "10.5.0.254", "10.5.0.77"
MAC = "02:00:00:05:00:{:02x}"
CHECKS = {
    "ip_address",
    "duplicate_address",
    "neighbour",
    "path_mtu",
    "ip_rule",
    "ip_route",
    "rp_filter",
    "arp_ignore",
    "arp_announce",
}

CAUSES = set(IP_CHECKS.values())


def sysctl(netdev: str, **values: int) -> None:
    """Set these values of a network device."""
    for name, value in values.items():
        Path(f"/proc/sys/net/ipv4/conf/{netdev}/{name}").write_text(str(value))


def in_peer(*command: str) -> str:
    """The output of a command in the peer's network namespace."""
    return run("ip", "netns", "exec", "peer", *command)


def ping(*arguments: str, through: tuple[str, ...] = ()) -> bool:
    """Whether a reply came."""
    command = (*through, "busybox", "ping", "-c", "1", "-W", "1", *arguments)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def build() -> None:
    """Cables, addresses, and a route, rule and table per rail: everything right."""
    run("ip", "netns", "add", "peer")
    in_peer("ip", "link", "add", "br0", "type", "bridge")
    for number, rail in enumerate(RAILS, 1):
        run("ip", "link", "add", rail, "type", "veth", "peer", "name", f"port{number}", "netns", "peer")
        run("ip", "link", "set", rail, "address", MAC.format(number), "mtu", "4200", "up")
        in_peer("ip", "link", "set", f"port{number}", "mtu", "4200", "master", "br0", "up")
        run("ip", "address", "add", f"{OWN[number - 1]}/24", "dev", rail)
    in_peer("ip", "link", "set", "lo", "up")
    in_peer("ip", "link", "set", "br0", "mtu", "4200", "address", MAC.format(9), "up")
    for address in (PEER, GATEWAY, "2001:db8:5::9"):
        in_peer(
            "ip",
            "address",
            "add",
            f"{address}/{64 if ':' in address else 24}",
            "dev",
            "br0",
            *(["nodad"] if ":" in address else []),
        )
    sysctl("all", rp_filter=0, arp_ignore=0, arp_announce=0)
    for number, rail in enumerate(RAILS, 1):
        repair_rail(number, rail)


def repair_rail(number: int, rail: str) -> None:
    """The right settings of one rail, whatever there was."""
    sysctl(rail, rp_filter=2, arp_ignore=1, arp_announce=2)
    own, table = OWN[number - 1], str(100 + number)
    run("ip", "route", "replace", "10.5.0.0/24", "dev", rail, "src", own, "table", table)
    run("ip", "route", "replace", "default", "via", GATEWAY, "dev", rail, "table", table)
    subprocess.run(("ip", "rule", "del", "pref", table), capture_output=True, check=False)
    run("ip", "rule", "add", "pref", table, "from", own, "lookup", table)
    run("ip", "neigh", "flush", "dev", rail)


@pytest.fixture(scope="module")
def rails() -> Iterator[None]:
    run("modprobe", "-a", "rdma_rxe", "veth", "bridge")
    build()
    for rail in RAILS:
        run("rdma", "link", "add", f"rxe_{rail}", "type", "rxe", "netdev", rail)
    assert ping("-I", RAILS[0], PEER)
    assert ping("-I", RAILS[1], PEER)
    yield
    for rail in RAILS:
        run("rdma", "link", "del", f"rxe_{rail}")
        run("ip", "link", "del", rail)
    for pref in ("101", "102"):
        run("ip", "rule", "del", "pref", pref)
    run("ip", "netns", "del", "peer")


@pytest.fixture
def wrong(rails, capsys) -> Callable[[], dict[str, set[str]]]:
    """What the audit finds wrong, by network device; everything is readable, and `check health` finds the same."""

    def read() -> dict[str, set[str]]:
        main(["check", "settings", "--format=json"])
        found = findings(capsys.readouterr().out)
        assert blamed() == {rail: {IP_CHECKS[check] for check in found[rail]} for rail in RAILS}
        return found

    return read


def blamed() -> dict[str, set[str]]:
    """What `check health` finds wrong with the IP side of each rail, by cause."""
    found = diagnosed(lambda: None).findings
    return {
        rail: {one.check for one in found if one.device == f"rxe_{rail}" and one.check in CAUSES}
        for rail in RAILS
    }


def findings(text: str) -> dict[str, set[str]]:
    """The failed checks of the IP side, by network device."""
    checks = [
        one for one in json.loads(text)["findings"] if one["check"] in CHECKS and one["netdev"] in RAILS
    ]
    assert {one["netdev"] for one in checks} == set(RAILS), text
    assert not [one for one in checks if one["status"] == "unknown"], text
    return {
        rail: {one["check"] for one in checks if one["netdev"] == rail and one["status"] == "degraded"}
        for rail in RAILS
    }


RIGHT: dict[str, set[str]] = {rail: set() for rail in RAILS}


@contextmanager
def repaired() -> Iterator[None]:
    """At the end, everything is as it was built."""
    try:
        yield
    finally:
        for number, rail in enumerate(RAILS, 1):
            repair_rail(number, rail)


def sent(rail: str) -> int:
    """Packets that a rail has sent."""
    return int(Path(f"/sys/class/net/{rail}/statistics/tx_packets").read_text())


def leaves_by(source: str) -> str:
    """The rail by which ten packets from an address really leave."""
    before = {rail: sent(rail) for rail in RAILS}
    command = ("busybox", "ping", "-c", "10", "-i", "0.05", "-W", "1", "-I", source, PEER)
    subprocess.run(command, capture_output=True, check=False)
    return max(RAILS, key=lambda rail: sent(rail) - before[rail])


def test_a_right_host_passes_also_without_privileges(wrong) -> None:
    assert wrong() == RIGHT
    command = [*NOBODY, COMMAND, "check", "settings", "--format=json"]
    assert findings(subprocess.run(command, capture_output=True, text=True, check=False).stdout) == RIGHT


def test_without_rules_packets_leave_by_the_wrong_rail(wrong) -> None:
    assert leaves_by(OWN[1]) == RAILS[1]
    with repaired():
        run("ip", "rule", "del", "pref", "102")
        assert leaves_by(OWN[1]) == RAILS[0], "the fault is real"
        assert wrong() == {RAILS[0]: set(), RAILS[1]: {"ip_rule"}}
    assert leaves_by(OWN[1]) == RAILS[1]


def test_arp_flux(wrong) -> None:
    """With the kernel's defaults, both rails reply for both addresses."""

    def replies() -> set[str]:
        text = in_peer("busybox", "arping", "-c", "3", "-I", "br0", OWN[0])
        return set(re.findall(r"\[([0-9a-f:]{17})\]", text))

    assert replies() == {MAC.format(1)}
    with repaired():
        for rail in RAILS:
            sysctl(rail, arp_ignore=0, arp_announce=0)
        assert replies() == {MAC.format(1), MAC.format(2)}, "the fault is real"
        assert wrong() == {rail: {"arp_ignore", "arp_announce"} for rail in RAILS}
    assert replies() == {MAC.format(1)}


def test_the_reverse_path_filter_drops_what_arrives(wrong) -> None:
    in_peer("ip", "neigh", "replace", OWN[1], "lladdr", MAC.format(2), "dev", "br0", "nud", "permanent")
    peer = ("ip", "netns", "exec", "peer")
    assert ping(OWN[1], through=peer)
    with repaired():
        run("ip", "rule", "del", "pref", "102")
        assert ping(OWN[1], through=peer), "loose"
        sysctl(RAILS[1], rp_filter=1)
        assert not ping(OWN[1], through=peer), "the fault is real"
        assert wrong() == {RAILS[0]: set(), RAILS[1]: {"ip_rule", "rp_filter"}}
    sysctl(RAILS[1], rp_filter=1)
    assert ping(OWN[1], through=peer), "strict is right where replies leave here"
    assert wrong() == RIGHT
    sysctl(RAILS[1], rp_filter=2)


def test_a_missing_route(wrong) -> None:
    """The rule leads to an empty table."""
    in_peer("ip", "address", "add", "10.9.0.1/32", "dev", "lo")
    assert ping("-I", OWN[1], "10.9.0.1")
    with repaired():
        run("ip", "route", "flush", "table", "102")
        assert not ping("-I", OWN[1], "10.9.0.1"), "the fault is real"
        assert wrong() == {RAILS[0]: set(), RAILS[1]: {"ip_route"}}
    assert ping("-I", OWN[1], "10.9.0.1")


def test_a_gateway_that_does_not_resolve(wrong) -> None:
    with repaired():
        run("ip", "route", "replace", "default", "via", NOWHERE, "dev", RAILS[1], "table", "102")
        assert not ping("-I", OWN[1], "10.9.0.1"), "the fault is real"
        assert wrong() == {RAILS[0]: set(), RAILS[1]: {"neighbour"}}
    run("ip", "neigh", "flush", "dev", RAILS[1])
    assert wrong() == RIGHT


def test_duplicate_addresses(wrong) -> None:
    """One that both rails have, and one that the peer has, which IPv6 detects."""
    run("ip", "address", "add", "10.6.0.1/32", "dev", RAILS[0])
    run("ip", "address", "add", "10.6.0.1/32", "dev", RAILS[1])
    found = wrong()
    assert all("duplicate_address" in checks for checks in found.values())
    for rail in RAILS:
        run("ip", "address", "del", "10.6.0.1/32", "dev", rail)
    run("ip", "address", "add", "2001:db8:5::9/64", "dev", RAILS[0])
    wait_until(lambda: "dadfailed" in run("ip", "address", "show", "dev", RAILS[0]))
    assert wrong() == {RAILS[0]: {"duplicate_address"}, RAILS[1]: set()}
    run("ip", "address", "del", "2001:db8:5::9/64", "dev", RAILS[0])
    assert wrong() == RIGHT


def test_a_path_with_a_smaller_mtu(wrong) -> None:
    """The peer's link has a small MTU and drops what RoCE would send."""
    full = ("-s", "4000", "-I", OWN[1], PEER)
    assert ping(*full)
    with repaired():
        in_peer("ip", "link", "set", "br0", "mtu", "1500")
        in_peer("ip", "link", "set", "port2", "mtu", "1500")
        assert not ping(*full), "the fault is real"
        run(
            "ip",
            "route",
            "replace",
            "10.5.0.0/24",
            "dev",
            RAILS[1],
            "src",
            OWN[1],
            "table",
            "102",
            "mtu",
            "1500",
        )
        assert wrong() == {RAILS[0]: set(), RAILS[1]: {"path_mtu"}}
    in_peer("ip", "link", "set", "port2", "mtu", "4200")
    in_peer("ip", "link", "set", "br0", "mtu", "4200")
    assert ping(*full)
    assert wrong() == RIGHT
