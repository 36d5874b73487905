"""Two Soft-RoCE devices over one wire, real RDMA traffic between them, and ways to degrade the wire."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from daemon import wait_until
from nic import ask_json, run

NETDEVS = ("veth0", "veth1")
DEVICES = ("rxe0", "rxe1")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
TABLES = ("100", "101")

UNDER_WAY = 2000
"""Packets after which traffic is past the handshake."""


def bring_up() -> None:
    """Set up rxe0 on veth0 and rxe1 on veth1, in one network namespace.

    rxe up to 6.12 receives only in the first namespace, so both ends are there. Rules force the packets from one to the
    other over the wire, where the kernel would deliver them directly.
    """
    run("modprobe", "rdma_rxe")
    run("ip", "link", "add", NETDEVS[0], "type", "veth", "peer", "name", NETDEVS[1])
    for end, netdev in enumerate(NETDEVS):
        run("ip", "address", "add", f"{ADDRESSES[end]}/24", "dev", netdev)
        run("ip", "link", "set", netdev, "mtu", "4200", "up")
        for name, value in (("accept_local", 1), ("rp_filter", 0), ("arp_ignore", 1), ("arp_announce", 2)):
            run("sysctl", "-qw", f"net.ipv4.conf.{netdev}.{name}={value}")
        other = ADDRESSES[1 - end]
        rule = ("pref", str(10 + end), "iif", "lo", "from", ADDRESSES[end], "to", other)
        run("ip", "rule", "add", *rule, "lookup", TABLES[end])
    route()
    run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
    run("ip", "rule", "add", "pref", "100", "lookup", "local")
    run("ip", "rule", "del", "pref", "0")
    for device, netdev in zip(DEVICES, NETDEVS, strict=True):
        run("rdma", "link", "add", device, "type", "rxe", "netdev", netdev)


def route() -> None:
    """Set the routes over the wire; they are lost when a link goes down."""
    for end, netdev in enumerate(NETDEVS):
        other = ADDRESSES[1 - end]
        run("ip", "route", "replace", other, "dev", netdev, "src", ADDRESSES[end], "table", TABLES[end])


def take_down() -> None:
    """Restore the previous state."""
    run("ip", "rule", "add", "pref", "0", "lookup", "local")
    for pref in ("100", "10", "11"):
        run("ip", "rule", "del", "pref", pref)
    for device in DEVICES:
        run("rdma", "link", "del", device)
    run("ip", "link", "del", NETDEVS[0])


@contextmanager
def spoilt(end: int, *how: str) -> Iterator[None]:
    """Netem degrades the packets of this end: `loss 5%`, `duplicate 5%`, `corrupt 2%`, ..."""
    run("tc", "qdisc", "add", "dev", NETDEVS[end], "root", "netem", *how)
    try:
        yield
    finally:
        run("tc", "qdisc", "del", "dev", NETDEVS[end], "root")


LISTENS = "0A"
"""TCP_LISTEN in /proc/net/tcp. Connections of earlier tests wait there for a minute, on the same port."""


def is_listening(port: int = 18515) -> bool:
    """Whether the server of perftest waits for its client."""
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(local.endswith(f":{port:04X}") and state == LISTENS for _, local, _, state, *_ in sockets)


def exchange(test: str, *flags: str, seconds: int = 100) -> int:
    """Run a test of perftest from rxe0 to rxe1; returns the client's exit status (perftest returns 0 after some failures too)."""
    common = ("timeout", str(seconds), test, "-F", "-x", "1", *flags)
    with subprocess.Popen(
        (*common, "-d", "rxe1"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        wait_until(is_listening)
        command = (*common, "-d", "rxe0", ADDRESSES[1])
        client = subprocess.run(command, capture_output=True, text=True, check=False)
        if client.returncode:
            server.terminate()
            sys.stderr.write(client.stdout + client.stderr)
    return client.returncode


class Ends(NamedTuple):
    """The processes at both ends of the traffic."""

    server: subprocess.Popen[bytes]
    client: subprocess.Popen[bytes]


@contextmanager
def started(
    test: str, *flags: str, port: int = 18515, through: tuple[tuple[str, ...], ...] = ((), ())
) -> Iterator[Ends]:
    """A test of perftest, well past its start, from rxe0 to rxe1. `through`: commands that run the server and the client."""
    begun = printed("rxe0")["sent_pkts"]
    common = (test, "-F", "-x", "1", "-p", str(port), *flags)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen((*through[0], *common, "-d", "rxe1"), **quiet)
    wait_until(lambda: is_listening(port))
    client = subprocess.Popen((*through[1], *common, "-d", "rxe0", ADDRESSES[1]), **quiet)
    try:
        # perftest's own handshake uses the same wire, and must be over.
        wait_until(lambda: printed("rxe0")["sent_pkts"] > begun + UNDER_WAY)
        yield Ends(server, client)
    finally:
        for process in (client, server):
            process.kill()
            process.wait()


@contextmanager
def flowing(test: str, *flags: str) -> Iterator[None]:
    """A test of perftest that runs until the block ends, well past its start."""
    # netem is in place from the start: while it is being added packets cannot be sent, and rxe then ends a connection.
    with spoilt(0), spoilt(1), started(test, *flags):
        yield


def lose(end: int, share: str) -> None:
    """Drop this share of the packets that this end of the running traffic sends."""
    run("tc", "qdisc", "change", "dev", NETDEVS[end], "root", "netem", "loss", share)


def printed(device: str) -> dict[str, int]:
    """The output of `rdma statistic` for a device."""
    (found,) = ask_json("rdma", "-j", "statistic", "show", "link", f"{device}/1")
    return {name: value for name, value in found.items() if isinstance(value, int)}
