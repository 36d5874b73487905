"""The HTTP server over real sockets: requests, addresses, TLS, users, limits."""

import _thread
import asyncio
import base64
import contextlib
import logging
import queue
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import bcrypt
import pytest
import trustme
from test_web_config import issue, web_yml
from waiting import HUNG_SECONDS
from worker_threads import die

from roce_exporter.collect import workers
from roce_exporter.web import ClientLimits, ListenError, Request, Response, Server
from roce_exporter.web.passwords import WAITING, NewestFirst, TooManyChecksError
from roce_exporter.web.web_config_file import WebConfigFile

LIMITS = ClientLimits()
TEXT = "text/plain; charset=utf-8"


async def echo(request: Request) -> Response:
    body = f"{request.method} {request.path}\n"
    return Response(200, body.encode(), TEXT, (("X-Agent", request.headers.get("user-agent", "")),))


@contextlib.asynccontextmanager
async def serving(
    application=echo, config: WebConfigFile | None = None, limits: ClientLimits = LIMITS
) -> AsyncIterator[int]:
    """A running server's port."""
    server = Server(application, config, limits)
    (address,) = await server.start(["127.0.0.1:0"])
    try:
        yield int(address.rpartition(":")[2])
    finally:
        await server.close()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


async def read_answer(reader: asyncio.StreamReader, *, head_only: bool = False) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    length = 0 if head_only else int(headers["content-length"])
    return Answer(int(status.split()[1]), headers, await reader.readexactly(length))


async def ask(port: int, text: bytes, tls: ssl.SSLContext | None = None) -> Answer:
    """The first reply to these bytes, on a new connection."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls, server_hostname="localhost" if tls else None
    )
    try:
        writer.write(text)
        return await read_answer(reader, head_only=text.startswith(b"HEAD"))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def get(path: str = "/metrics", *headers: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: x", *headers, "", "")).encode()


def login(user: str, password: str) -> str:
    return f"Authorization: Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


async def test_a_failing_application_gives_500_and_one_record(caplog) -> None:
    async def application(_: Request) -> Response:
        raise ValueError("private matter")

    async with serving(application) as port:
        answer = await ask(port, get())
    assert (answer.status, answer.body.count(b"\n")) == (500, 1)
    assert b"private" not in answer.body
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_closing_lets_a_request_under_way_finish_and_drops_the_rest() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def application(_: Request) -> Response:
        entered.set()
        await leave.wait()
        return Response(200, b"done", TEXT)

    server = Server(application, None)
    (address,) = await server.start(["127.0.0.1:0"])
    port = int(address.rpartition(":")[2])
    idle, idle_writer = await asyncio.open_connection("127.0.0.1", port)
    busy = asyncio.create_task(ask(port, get()))
    await entered.wait()
    closing = asyncio.create_task(server.close())
    assert await idle.read() == b"", "an idle connection is dropped first"
    leave.set()
    assert (await busy).body == b"done"
    await closing
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    idle_writer.close()


async def test_closing_does_not_wait_for_a_stuck_application() -> None:
    entered = asyncio.Event()

    async def application(_: Request) -> Response:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    server = Server(application, None)
    (address,) = await server.start(["127.0.0.1:0"])
    asking = asyncio.create_task(ask(int(address.rpartition(":")[2]), get()))
    await entered.wait()
    async with asyncio.timeout(HUNG_SECONDS):  # the application never ends
        await server.close()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await asking


async def test_several_addresses_and_names_are_bound() -> None:
    server = Server(echo, None)
    bound = await server.start(["127.0.0.1:0", "localhost:0", ":0"])
    try:
        assert all(not address.endswith(":0") for address in bound)
        assert bound[0].startswith("127.0.0.1:")
        for address in bound:
            assert (await ask(int(address.rpartition(":")[2]), get())).status == 200
    finally:
        await server.close()


async def test_ipv6_is_bound_and_written_in_brackets() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this host has no IPv6 loopback")
    server = Server(echo, None)
    bound = await server.start(["[::1]:0", ":0"])
    try:
        for address in bound:
            assert address.startswith("[::")
            reader, writer = await asyncio.open_connection("::1", int(address.rpartition(":")[2]))
            writer.write(get())
            assert (await read_answer(reader)).status == 200
            writer.close()
    finally:
        await server.close()


async def test_a_port_in_use_is_named_with_the_remedy_and_nothing_stays_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as reserved:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = f"127.0.0.1:{reserved.getsockname()[1]}"
        reserved.close()
        with pytest.raises(ListenError) as caught:
            await Server(echo, None).start([free, address])
    remedy = "choose another with --web.listen-address"
    assert str(caught.value) == f"cannot listen on {address}: address already in use; {remedy}"
    server = Server(echo, None)
    assert await server.start([free]) == (free,)
    await server.close()


@pytest.mark.parametrize(
    "address",
    ["", "10123", "localhost", "1.2.3.4:x", "::1:80", "[::1]", "a:b:1", "127.0.0.1:65536", "256.0.0.1:0"],
)
async def test_an_invalid_address_is_refused_in_one_line(address) -> None:
    with pytest.raises(ListenError) as caught:
        await Server(echo, None).start([address])
    message = str(caught.value)
    assert message.startswith(f"cannot listen on {address}: ")
    assert message.endswith("; choose another with --web.listen-address")
    assert "\n" not in message


# Users


def hashed(password: str) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def users(folder: Path, **passwords: str) -> WebConfigFile:
    lines = "".join(f"  {user}: {hashed(password)}\n" for user, password in passwords.items())
    return WebConfigFile(web_yml(folder, f"basic_auth_users:\n{lines}"))


async def test_users_and_passwords_are_checked_for_every_request(tmp_path) -> None:
    async with serving(config=users(tmp_path, alice="secret", bob="hidden")) as port:
        for header, status in (
            (login("alice", "secret"), 200),
            (login("alice", "secret"), 200),
            (login("alice", "wrong"), 401),
            (login("alice", "wrong"), 401),
            (login("alice", ""), 401),
            (login("alice", "\0"), 401),
            (login("mallory", "secret"), 401),
            (login("bob", "secret"), 401),
            ("Authorization: Basic ####", 401),
            ("Authorization: Basic YWxpY2U=", 401),
            ("Authorization: Bearer secret", 401),
            ("X: y", 401),
            (login("alice", "secret").replace("Basic", "basic"), 200),
        ):
            answer = await ask(port, get("/metrics", header))
            assert answer.status == status, header
            assert answer.headers.get("www-authenticate") == ("Basic" if status == 401 else None)


async def test_only_the_first_72_bytes_of_a_password_count(tmp_path) -> None:
    async with serving(config=users(tmp_path, alice="x" * 72)) as port:
        assert (await ask(port, get("/", login("alice", "x" * 100)))).status == 200
        assert (await ask(port, get("/", login("alice", "x" * 71)))).status == 401


@pytest.fixture
def slow_bcrypt(monkeypatch):
    """Password checks that block until they are released; the list has those that have begun."""
    begun: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    gate = threading.Event()
    real = bcrypt.checkpw

    def check(password: bytes, hashed_password: bytes) -> bool:
        begun.put(password)
        assert gate.wait(HUNG_SECONDS)
        return real(password, hashed_password)

    monkeypatch.setattr(bcrypt, "checkpw", check)
    yield begun, gate
    gate.set()


async def test_a_flood_of_wrong_passwords_does_not_delay_a_verified_one(tmp_path, slow_bcrypt) -> None:
    begun, gate = slow_bcrypt
    gate.set()
    async with serving(config=users(tmp_path, alice="secret")) as port:
        assert (await ask(port, get("/", login("alice", "secret")))).status == 200
        gate.clear()
        begun.get()
        flood = [asyncio.create_task(ask(port, get("/", login("alice", f"wrong{n}")))) for n in range(100)]
        await asyncio.to_thread(begun.get)
        assert (await ask(port, get("/", login("alice", "secret")))).status == 200
        assert begun.empty(), "one check at a time"
        gate.set()
        statuses = Counter(answer.status for answer in await asyncio.gather(*flood))
        assert statuses == {401: WAITING + 1, 429: 99 - WAITING}


async def test_the_newest_has_the_next_turn_and_the_oldest_gives_up_first() -> None:
    turns, order, gates = NewestFirst(2), list[str](), {name: asyncio.Event() for name in "abcde"}

    async def take(name: str) -> None:
        async with turns.next():
            order.append(name)
            await gates[name].wait()

    tasks = {}
    for name in "abcd":  # a has the turn, b gives up, c and d wait
        tasks[name] = asyncio.create_task(take(name))
        await asyncio.sleep(0)
    with pytest.raises(TooManyChecksError):
        await tasks["b"]
    tasks["d"].cancel()
    tasks["e"] = asyncio.create_task(take("e"))
    await asyncio.sleep(0)
    gates["a"].set()
    await tasks["a"]
    tasks["e"].cancel()  # in the moment in which it gets the turn
    gates["c"].set()
    await tasks["c"]
    assert order in (["a", "c"], ["a", "e", "c"])
    async with turns.next():
        pass


@pytest.mark.parametrize("is_reset", [True, False])
async def test_a_client_that_is_gone_gives_its_place_back(*, is_reset) -> None:
    """With a reset at once; without one as soon as the place is needed."""
    arrived, never = asyncio.Semaphore(0), asyncio.Event()

    async def slow(request: Request) -> Response:
        if request.path == "/slow":
            arrived.release()
            await never.wait()
        return Response(200, b"ok", TEXT)

    server = Server(slow, None, ClientLimits(connections=4))
    (address,) = await server.start(["127.0.0.1:0"])
    port = int(address.rpartition(":")[2])
    for _ in range(4):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/slow"))
        await arrived.acquire()
        if is_reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()
    while True:  # until the server has seen that they are gone
        try:
            assert (await ask(port, get("/"))).status == 200
            break
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0)
    await server.close()


async def test_at_the_cap_of_a_quarter_of_the_descriptors_the_longest_idle_connection_makes_room(
    monkeypatch,
) -> None:
    """The rest is for the files of the devices: an idle client costs no series."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (16, 16))
    async with serving() as port:
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        for reader, writer in (*clients, clients[0]):  # the second is now the one that has been idle longest
            writer.write(get("/"))
            assert (await read_answer(reader)).status == 200
        assert (await ask(port, get("/"))).status == 200
        assert await clients[1][0].read() == b""
        for reader, writer in (clients[0], *clients[2:]):
            writer.write(get("/"))
            assert (await read_answer(reader)).status == 200
        for _, writer in clients:
            writer.close()


async def test_a_request_being_answered_is_not_dropped_for_a_new_one() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def application(_: Request) -> Response:
        entered.set()
        await leave.wait()
        return Response(200, b"done", TEXT)

    async with serving(application, limits=ClientLimits(connections=1)) as port:
        busy = asyncio.create_task(ask(port, get()))
        await entered.wait()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await ask(port, get())  # the only one that can be refused
        leave.set()
        assert (await busy).body == b"done"


async def test_a_password_that_no_thread_can_check_is_503_until_one_can(
    tmp_path, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(workers, "LIFE_CHECK", 0.01)
    async with serving(config=users(tmp_path, alice="secret")) as port:
        assert (await ask(port, get("/"))).status == 401  # the thread that reads the file
        monkeypatch.setattr(_thread, "start_new_thread", die(1))
        assert (await ask(port, get("/", login("alice", "secret")))).status == 503
        assert caplog.messages == [
            "a password was not checked: the thread roce-call has died, out of memory?"
        ]
        assert (await ask(port, get("/", login("alice", "secret")))).status == 200


async def test_wrong_passwords_evict_no_verified_one(tmp_path, slow_bcrypt) -> None:
    begun, gate = slow_bcrypt
    gate.set()
    async with serving(config=users(tmp_path, alice="secret")) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for password in ("secret", *map(str, range(300)), "secret"):
            writer.write(get("/", login("alice", password)))
            await read_answer(reader)
        writer.close()
    assert begun.qsize() == 301, "one check of each password"


async def test_an_unknown_user_costs_a_check_of_the_same_cost(tmp_path, monkeypatch) -> None:
    seen: list[bytes] = []
    real = bcrypt.checkpw
    monkeypatch.setattr(
        bcrypt, "checkpw", lambda password, other: seen.append(other) or real(password, other)
    )
    async with serving(config=users(tmp_path, alice="secret")) as port:
        assert (await ask(port, get("/", login("mallory", "secret")))).status == 401
    assert [len(seen), seen[0][4:6]] == [1, b"04"]
    with contextlib.suppress(ValueError):
        assert real(b"secret", seen[0]) is False
        return
    pytest.fail("bcrypt rejects the decoy without checking it")


async def test_configured_headers_are_sent_with_every_answer(tmp_path) -> None:
    text = (
        "http_server_config: {headers: {X-Frame-Options: deny}}\nbasic_auth_users: {a: " + hashed("b") + "}\n"
    )
    async with serving(config=WebConfigFile(web_yml(tmp_path, text))) as port:
        for header, status in ((login("a", "b"), 200), (login("a", "c"), 401)):
            answer = await ask(port, get("/", header))
            assert (answer.status, answer.headers["x-frame-options"]) == (status, "deny")


async def test_a_rate_limit_refuses_what_exceeds_its_burst(tmp_path) -> None:
    config = WebConfigFile(web_yml(tmp_path, "rate_limit: {interval: 1h, burst: 2}\n"))
    async with serving(config=config) as port:
        assert [(await ask(port, get())).status for _ in range(3)] == [200, 200, 429]
        web_yml(tmp_path, "rate_limit: {interval: 1us, burst: 1}\n")
        assert [(await ask(port, get())).status for _ in range(3)] == [200, 200, 200]


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls_config(folder: Path, authority: trustme.CA, more: str = "") -> WebConfigFile:
    issue(authority, folder)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return WebConfigFile(
        web_yml(folder, f"tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n{more}")
    )


def client_tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    """A client that trusts the authority, with a certificate for these names if there are any."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if names:
        authority.issue_cert(*names).configure_cert(context)
    return context


async def served_certificate(port: int, tls: ssl.SSLContext) -> bytes:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname="localhost")
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return certificate


async def test_tls_is_spoken_and_large_bodies_arrive(tmp_path, authority) -> None:
    async def application(_: Request) -> Response:
        return Response(200, b"x" * 2_000_000, TEXT)

    async with serving(application, tls_config(tmp_path, authority)) as port:
        assert len((await ask(port, get(), client_tls(authority))).body) == 2_000_000
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_tls(authority), server_hostname="localhost"
        )
        writer.write(get("/", "Connection: close"))
        assert len((await read_answer(reader)).body) == 2_000_000
        assert await reader.read() == b""
        writer.close()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await ask(port, get())


async def test_a_rotated_certificate_serves_new_connections_while_old_ones_go_on(tmp_path, authority) -> None:
    tls = client_tls(authority)
    async with serving(config=tls_config(tmp_path, authority)) as port:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname="localhost"
        )
        before = await served_certificate(port, tls)
        issue(authority, tmp_path)
        assert await served_certificate(port, tls) != before
        writer.write(get())
        assert (await read_answer(reader)).status == 200
        writer.close()


CLIENTS = "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"
REFUSED_HANDSHAKE = (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)


@pytest.mark.parametrize("policy", ["RequireAndVerifyClientCert", "VerifyClientCertIfGiven"])
async def test_a_client_certificate_is_required_or_verified_if_given(tmp_path, authority, policy) -> None:
    stranger = client_tls(authority)
    trustme.CA().issue_cert("stranger").configure_cert(stranger)
    settings = CLIENTS.replace("RequireAndVerifyClientCert", policy)
    async with serving(config=tls_config(tmp_path, authority, settings)) as port:
        assert (await ask(port, get(), client_tls(authority, "scraper"))).status == 200
        refused = [stranger]
        if policy == "VerifyClientCertIfGiven":
            assert (await ask(port, get(), client_tls(authority))).status == 200
        else:
            refused.append(client_tls(authority))
        for context in refused:
            with pytest.raises(REFUSED_HANDSHAKE):
                await ask(port, get(), context)


async def test_only_allowed_names_of_client_certificates_pass(tmp_path, authority) -> None:
    policy = CLIENTS + '  client_allowed_sans: [scraper.example, 192.0.2.1, "2001:db8::1", ops@example.org]\n'
    async with serving(config=tls_config(tmp_path, authority, policy)) as port:
        for name, status in (
            ("scraper.example", 200),
            ("192.0.2.1", 200),
            ("2001:db8::1", 200),
            ("ops@example.org", 200),
            ("other.example", 403),
            ("192.0.2.2", 403),
        ):
            assert (await ask(port, get(), client_tls(authority, name))).status == status, name


async def test_one_curve_excludes_the_others(tmp_path, authority) -> None:
    context = client_tls(authority)
    context.set_ecdh_curve("prime256v1")
    async with serving(config=tls_config(tmp_path, authority, "  curve_preferences: [CurveP384]\n")) as port:
        with pytest.raises(REFUSED_HANDSHAKE):
            await ask(port, get(), context)
        context.set_ecdh_curve("secp384r1")
        assert (await ask(port, get(), context)).status == 200


def test_the_limits_are_the_promised_ones() -> None:
    assert LIMITS.head_bytes == 8192
    assert LIMITS.request_seconds <= 5
    assert LIMITS.connections == 256
    assert LIMITS.slice_bytes <= 256 * 1024
    assert LIMITS.stalled_seconds <= 30
    assert LIMITS.closing_seconds < 0.5
    assert LIMITS.idle_seconds > 300, (
        "Prometheus closes its idle connections after five minutes, not the exporter"
    )
