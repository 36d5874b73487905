"""A real daemon and real sockets: what each kind of client gets, while an honest scrape comes first although it was sent last.

Nothing here measures time: that the honest client was not held up is seen by what the others have not got when its reply is complete.
"""

import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import NamedTuple

import pytest
import trustme
from chaos_daemon import Daemon, exporter
from waiting import HUNG_SECONDS, wait_until

pytestmark = pytest.mark.ci

SIMULATED = ("--host.simulate=quiet", "--sampler.mode=off")
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTHY = b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /metrics HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MANY = 60
"""Clients of a kind at once."""


class Kind(NamedTuple):
    """What a client sends at once, with or without ending its side then; the statuses that it gets, in turn, before the server closes."""

    text: bytes
    codes: tuple[int, ...]
    is_half_closed: bool = False


KINDS = {
    "a closed side and no request": Kind(b"", (), is_half_closed=True),
    "a closed side in a head": Kind(GET[:-2], (400,), is_half_closed=True),
    "a closed side behind a request": Kind(GET, (200,), is_half_closed=True),
    "a closed side in a body": Kind(GET[:-2] + b"Content-Length: 9\r\n\r\nx", (400,), is_half_closed=True),
    "a closed side in a chunk": Kind(CHUNKED + b"5\r\nab", (411,), is_half_closed=True),
    "nothing": Kind(b"", ()),
    "half a head": Kind(GET[:-2], (408,)),
    "half a body": Kind(GET[:-2] + b"Content-Length: 9\r\n\r\nx", (408,)),
    "half a chunk": Kind(CHUNKED + b"5\r\nab", (411,)),
    "100,000 headers": Kind(GET[:-2] + b"X: y\r\n" * 100_000 + b"\r\n", (431,)),
    "one header of 8 MiB": Kind(GET[:-2] + b"X: " + b"y" * (8 << 20) + b"\r\n\r\n", (431,)),
    "a chunked body": Kind(CHUNKED + b"5\r\nabcde\r\n0\r\n\r\n" + GET, (411,), is_half_closed=True),
    "a chunked body of 8 MiB": Kind(
        CHUNKED + b"8000\r\n" + b"x" * 0x8000 + (b"\r\n8000\r\n" + b"x" * 0x8000) * 255, (411,)
    ),
    "chunks of one byte": Kind(CHUNKED + b"1\r\nx\r\n" * 100_000, (411,)),
    "a chunk of a size with 40 digits": Kind(CHUNKED + b"f" * 40 + b"\r\nx", (411,)),
    "trailers without end": Kind(CHUNKED + b"0\r\n" + b"X: y\r\n" * 100_000, (411,)),
    "200 requests at once": Kind(HEALTHY * 200, (200,) * 200, is_half_closed=True),
    "requests and then no HTTP": Kind(GET * 3 + b"\x16\x03\x01\x02\r\n\r\n", (200, 200, 200, 400)),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Daemon]:
    with exporter(tmp_path_factory.mktemp("daemon"), *SIMULATED) as running:
        running.scrape()
        yield running
        assert "Traceback" not in running.log
        assert running.stop() == 0


@pytest.fixture(autouse=True)
def alone(daemon) -> None:
    """The connections of the test before are closed."""
    wait_until(lambda: daemon.seen.num_fds() < 64)


def connected(daemon: Daemon, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(daemon.where, HUNG_SECONDS))


def received(client: socket.socket) -> bytes:
    """All until the server closes. One that closes before it has read all resets the connection, which can take its reply along."""
    parts = []
    with suppress(ConnectionError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_client_gets_its_answer_and_an_honest_one_is_served_meanwhile(daemon, name) -> None:
    kind = KINDS[name]
    is_large = len(kind.text) > 1 << 16
    with ExitStack() as stack:
        clients = [connected(daemon, stack) for _ in range(MANY)]
        sent = [begin(client, kind) for client in clients]
        assert daemon.scrape()
        for client, size in [*zip(clients, sent, strict=True)][:10]:
            with suppress(OSError):  # refused, and closed, before all is sent
                client.sendall(kind.text[size:])
            text = received(client)
            codes = tuple(map(int, re.findall(rb"^HTTP/1\.1 (\d{3}) ", text, re.MULTILINE)))
            assert codes == kind.codes or (is_large and not codes)
        assert daemon.scrape()


def begin(client: socket.socket, kind: Kind) -> int:
    """Send what the server takes without waiting; returns how many bytes."""
    client.setblocking(False)
    size = 0
    with suppress(OSError):
        while size < len(kind.text):
            size += client.send(kind.text[size:])
        if kind.is_half_closed:
            client.shutdown(socket.SHUT_WR)
    client.settimeout(HUNG_SECONDS)
    return size


def test_clients_that_read_a_byte_at_a_time_hold_nobody_up(daemon) -> None:
    """Each has a page of which it reads a byte between two honest scrapes: these are complete, and it is still at its begin."""
    with ExitStack() as stack:
        clients = []
        for _ in range(MANY):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.settimeout(HUNG_SECONDS)
            client.connect(daemon.where)
            client.sendall(GET * 20)
            clients.append(client)
        page = b""
        for _ in range(20):
            page += clients[0].recv(1)
            assert daemon.scrape()
        assert page == b"HTTP/1.1 200 OK\r\n" + page[17:]
        assert len(page) == 20


def test_a_client_that_sends_a_byte_at_a_time_is_answered_if_it_ends_in_time_and_else_refused(daemon) -> None:
    """The limit is of the whole request, so that no pace keeps a place for longer."""
    with ExitStack() as stack:
        slow = connected(daemon, stack)
        codes = b""
        for number in range(len(GET) * 100):
            try:
                slow.sendall((GET[:-4] + b"X" * 100_000)[number : number + 1])
                slow.settimeout(0.02)
                codes += slow.recv(12)
                break
            except TimeoutError:
                pass
            except ConnectionError:
                break
        assert codes in (b"HTTP/1.1 408", b"")
        assert daemon.scrape()


def test_handshakes_that_stall_keep_no_honest_client_out(tmp_path) -> None:
    """Real ones: the server has sent its certificate, and waits for the client's side. It ends them by itself."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    (tmp_path / "web.yml").write_text("tls_server_config:\n  cert_file: server.pem\n  key_file: server.pem\n")
    log = tmp_path / "exporter.log"
    flag = f"--web.config.file={tmp_path}/web.yml"
    with (
        exporter(tmp_path, *SIMULATED, flag, ready=lambda _: "ready: " in log.read_text()) as daemon,
        ExitStack() as stack,
    ):
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        stalled = [
            stack.enter_context(socket.create_connection(daemon.where, HUNG_SECONDS)) for _ in range(MANY)
        ]
        for client in stalled:
            client.sendall(hello(context))
            assert client.recv(5)[:1] == b"\x16", "its certificate"
        assert honest(daemon, context)
        assert all(b"\x15" not in client.recv(1 << 16)[:1] for client in stalled)
        for client in stalled:
            received(client)
        assert honest(daemon, context)
        assert "Traceback" not in daemon.log
        assert daemon.stop() == 0


def hello(context: ssl.SSLContext) -> bytes:
    """The first message of a client."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(back, there, server_hostname="127.0.0.1").do_handshake()
    return there.read()


def honest(daemon: Daemon, context: ssl.SSLContext) -> bool:
    plain = socket.create_connection(daemon.where, HUNG_SECONDS)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
        client.sendall(GET)
        return client.recv(12) == b"HTTP/1.1 200"
