"""Which addresses of switches are connected to."""

import _thread
import asyncio
import ipaddress
import socket
import time
from dataclasses import replace

import pytest
from worker_threads import refuse

from roce_exporter.collect.workers import InFlight
from roce_exporter.net import NetError
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.addresses import dial, find_routes, is_allowed
from roce_exporter.switches.targets import Route, SwitchTarget


def target(host: str, scheme: str = "https", server_name: str = "") -> SwitchTarget:
    return SwitchTarget("t", "nxos", scheme, host, {}, tls=TlsFiles(server_name=server_name))


def lookups() -> InFlight[str]:
    return InFlight(time.monotonic)


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name have these addresses; returns the names that were resolved."""
    resolved = []

    def getaddrinfo(host: str, port: object, **_: object) -> list[object]:
        resolved.append(host)
        return [(0, 0, 0, "", (address, 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return resolved


@pytest.mark.parametrize(
    ("address", "host", "allowed", "expected"),
    [
        ("192.0.2.1", "leaf1", None, True),
        ("127.0.0.1", "127.0.0.1", None, True),
        ("127.0.0.1", "localhost", None, True),
        ("127.0.0.1", "leaf1", None, False),
        ("0.0.0.0", "leaf1", None, False),  # noqa: S104 - an address that a name could have  # noqa: S104 - an address that a name could have
        ("169.254.169.254", "metadata", None, False),
        ("169.254.169.254", "169.254.169.254", None, True),
        ("::1", "leaf1", None, False),
        ("::ffff:127.0.0.1", "leaf1", None, False),
        ("fe80::1", "leaf1", None, False),
        ("224.0.0.1", "leaf1", None, False),
        ("10.1.2.3", "leaf1", ["10.1.0.0/16"], True),
        ("10.1.2.3", "10.1.2.3", ["10.1.0.0/16"], True),
        ("10.2.2.3", "10.2.2.3", ["10.1.0.0/16"], False),
        ("127.0.0.1", "127.0.0.1", ["0.0.0.0/0"], False),
        ("169.254.1.1", "169.254.1.1", ["0.0.0.0/0"], False),
        ("127.0.0.1", "127.0.0.1", ["127.0.0.0/8"], True),
        ("fe80::1", "fe80::1", ["::/0"], False),
        ("2001:db8::1", "leaf1", ["10.0.0.0/8"], False),
    ],
)
def test_special_addresses_must_be_named(address, host, allowed, expected) -> None:
    networks = None if allowed is None else [ipaddress.ip_network(one) for one in allowed]
    assert is_allowed(ipaddress.ip_address(address), host, networks) is expected


async def test_the_allowed_addresses_are_the_routes(monkeypatch) -> None:
    found = ["192.0.2.7", "2001:db8::1%eth0", "192.0.2.7", "192.0.2.8", "192.0.2.9", "192.0.2.10"]
    resolved = resolving(monkeypatch, "127.0.0.1", *found)
    assert await find_routes(target("leaf1"), None, lookups()) == tuple(
        Route(one, "leaf1") for one in ("192.0.2.7", "2001:db8::1", "192.0.2.8", "192.0.2.9")
    )
    assert resolved == ["leaf1"]


async def test_the_name_in_the_certificate_can_differ(monkeypatch) -> None:
    resolving(monkeypatch, "192.0.2.7")
    assert await find_routes(target("leaf1", server_name="switch"), None, lookups()) == (
        Route("192.0.2.7", "switch"),
    )


async def test_a_literal_address_is_not_resolved(monkeypatch) -> None:
    resolved = resolving(monkeypatch, "192.0.2.7")
    assert await find_routes(target("2001:db8::1"), None, lookups()) == (Route("2001:db8::1", "2001:db8::1"),)
    assert not resolved


async def test_the_path_of_a_socket_is_the_route() -> None:
    assert await find_routes(target("/run/redis.sock", "unix"), None, lookups()) == (
        Route("/run/redis.sock"),
    )


async def test_a_refused_address_is_one_line(monkeypatch) -> None:
    resolving(monkeypatch, "127.0.0.1")
    for allowed, remedy in (
        (None, "write the address itself into the target"),
        ([ipaddress.ip_network("10.0.0.0/8")], "see discovery.allow"),
    ):
        with pytest.raises(NetError) as refusal:
            await find_routes(target("leaf1"), allowed, lookups())
        assert str(refusal.value) == f"leaf1: 127.0.0.1 is not an allowed address; {remedy}"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (UnicodeError("label too long"), "it is not a valid host name"),
    ],
)
async def test_an_unknown_name_is_one_line(monkeypatch, fault, reason) -> None:
    def getaddrinfo(*asked: object, **more: object) -> list[object]:
        assert (asked, more) == (("leaf1", None), {"type": socket.SOCK_STREAM})
        raise fault

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(NetError) as refusal:
        await find_routes(target("leaf1"), None, lookups())
    assert str(refusal.value) == f"leaf1: cannot be resolved: {reason}"


async def test_a_name_that_no_thread_can_resolve_is_one_line(monkeypatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(NetError, match="leaf1: cannot be resolved: can't start new thread"):
        await find_routes(target("leaf1"), None, lookups())


@pytest.mark.dials
async def test_the_first_address_or_protocol_that_accepts_a_connection_is_used() -> None:
    """127.0.0.2 refuses. EOS without gNMI is one that refuses its first port."""
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        both = (Route("127.0.0.2"), Route("127.0.0.1"))
        assert await dial(replace(target("leaf1"), ports={"https": port}), both) == both[1]
        eos = replace(target("leaf1", "grpc"), ports={"grpc": 1, "https": port})
        assert await dial(eos, both) == both[1]
    with pytest.raises(NetError, match=r"127\.0\.0\.2:\d+ refuses .*; 127\.0\.0\.1:\d+ refuses"):
        await dial(replace(target("leaf1"), ports={"https": port}), both)
