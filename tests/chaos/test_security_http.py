"""The running daemon among hostile clients: their cost is bounded, and Prometheus is served meanwhile.

unit/test_connection.py covers what one connection may do byte by byte; here are many connections, and access rights.
"""

import contextlib
import functools
import socket
import ssl
import subprocess
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from chaos_daemon import Daemon, Namespace, exporter, namespace
from tools import need
from waiting import HUNG_SECONDS, wait_until

from roce_exporter.web.server import is_loopback

pytestmark = pytest.mark.ci


SIMULATED = ("--host.simulate=quiet", "--sampler.mode=off")
CONNECTIONS = 256
"""The largest number of simultaneous connections."""

CROWD = 3000
BODY = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
MEMORY = CONNECTIONS * 256 * 1024
"""Bytes of memory that any number of clients may cost, besides one reply for each connection."""

STRANGE = "192.0.2.1"
"""An address of this host outside its loopback (TEST-NET-1 of RFC 5737)."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Daemon]:
    with exporter(tmp_path_factory.mktemp("daemon"), *SIMULATED) as running:
        running.scrape()
        yield running


def connect(daemon: Daemon, text: bytes = b"") -> socket.socket:
    """A client that sends this and then nothing."""
    host, _, port = daemon.address.rpartition(":")
    client = socket.create_connection((host, int(port)), timeout=HUNG_SECONDS)
    with contextlib.suppress(ConnectionError):
        client.sendall(text)
    return client


CROWDS = {
    "that say nothing": b"",
    "that begin a request": b"GET /metrics HTTP/1.1\r\nHost: ",
    "that never read the reply": BODY,
    "that send many requests at once": BODY * 50,
    "that send a body": b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 8000\r\n\r\n" + b"x" * 4000,
    "that send a huge head": b"GET / HTTP/1.1\r\nX: " + b"x" * 20000,
    "that speak something else": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
}


@pytest.mark.parametrize("name", CROWDS)
def test_3000_clients_cost_a_bounded_amount_and_keep_no_scrape_out(daemon, name) -> None:
    threads, memory = daemon.seen.num_threads(), daemon.seen.memory_info().rss
    clients: deque[socket.socket] = deque()
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [client.close() for client in clients])
        for number in range(CROWD):
            with contextlib.suppress(ConnectionError):
                clients.append(connect(daemon, CROWDS[name]))
            if len(clients) > CONNECTIONS * 2:  # the number of descriptors of this process is limited too
                clients.popleft().close()
            if number % 1000 == 999:
                # A scrape is refused only while all connections are being answered, which takes long on a busy machine.
                wait_until(daemon.scrape)
        assert daemon.seen.num_fds() <= CONNECTIONS + 32
        # Reads that are slow because this machine is busy get more workers, which end with the next quick pass.
        wait_until(lambda: daemon.scrape() and daemon.seen.num_threads() <= threads + 1)
        # On a slow machine all connections can hold a reply at the same moment, each of another collection.
        assert daemon.seen.memory_info().rss - memory < MEMORY + CONNECTIONS * len(daemon.get())
    wait_until(lambda: daemon.seen.num_fds() < 64)
    assert daemon.scrape()


def curl(inside: Namespace, url: str, *flags: str) -> str:
    """The status code of a request from within a namespace, with the path unchanged."""
    command = [*inside.enter, need("curl"), "-s", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code}"]
    done = subprocess.run([*command, *flags, url], capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture(scope="module")
def inside() -> Iterator[Namespace]:
    """A new network, where this host has an address in addition to its loopback."""
    with namespace("net") as made:
        made.run(need("ip"), "link", "set", "lo", "up")
        made.run("ip", "address", "add", f"{STRANGE}/32", "dev", "lo")
        yield made


PRIVATE_PATHS = (
    "/debug/snapshot",
    "/debug/events",
    "/debug/owners",
    "/debug/snapshot?x=1",
    "/debug/snapshot#x",
)
TRICKS = (
    "//debug//snapshot",
    "/./debug/snapshot",
    "/metrics/../debug/snapshot",
    "/../../debug/events",
    "/%64ebug/snapshot",
    "/debug%2Fsnapshot",
    "/%2e%2e/debug/events",
    "/metrics%2f..%2fdebug%2fsnapshot",
    "/metrics/",
    "/metrics;x",
)


@contextlib.contextmanager
def listening(folder: Path, inside: Namespace, *flags: str, address: str) -> Iterator[Daemon]:
    """The daemon in that network."""
    log = folder / "exporter.log"
    with exporter(
        folder,
        *SIMULATED,
        *flags,
        prefix=inside.enter,
        address=address,
        ready=lambda _: "ready: " in log.read_text(),
    ) as running:
        yield running


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory, inside) -> Iterator[Daemon]:
    """The default settings: all addresses, no users."""
    with listening(tmp_path_factory.mktemp("everywhere"), inside, address=":10123") as running:
        yield running


@pytest.mark.parametrize("path", TRICKS)
def test_a_page_has_one_spelling(everywhere, inside, path) -> None:
    """A proxy that lets only `/metrics` through must see which page a client requests; also from the host itself."""
    for host in (STRANGE, "127.0.0.1"):
        assert curl(inside, f"http://{host}:10123{path}", "--path-as-is") == "404"


@pytest.mark.parametrize("path", PRIVATE_PATHS)
def test_debug_is_refused_to_remote_clients(everywhere, inside, path) -> None:
    assert curl(inside, f"http://{STRANGE}:10123{path}") == "403"
    assert curl(inside, f"http://{STRANGE}:10123{path}", "--head") == "403"
    assert curl(inside, f"http://127.0.0.1:10123{path}") == "200"
    assert not socket.has_dualstack_ipv6() or curl(inside, f"http://[::1]:10123{path}") == "200"


@pytest.mark.parametrize(
    "header",
    [
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "X-Real-IP: 127.0.0.1",
        "Host: 127.0.0.1:10123",
        "Authorization: Basic eDp5",
    ],
)
def test_no_header_makes_a_remote_client_local(everywhere, inside, header) -> None:
    url = f"http://{STRANGE}:10123/debug/snapshot"
    assert curl(inside, url, "--header", header) == "403"


@pytest.mark.parametrize("path", ["/metrics", "/", "/-/healthy", "/-/ready"])
def test_remote_clients_may_see_what_prometheus_sees(everywhere, inside, path) -> None:
    assert curl(inside, f"http://{STRANGE}:10123{path}") == "200"


def test_remote_users_may_see_debug(tmp_path, inside) -> None:
    """A client with a valid password counts as trusted."""
    hashed = "$2b$04$MIY.HrUcJTtaYfdaFx.8r.NfOuEt4C15I4o8N1W.af8w66EbXUBjW"
    (tmp_path / "web.yml").write_text(f"basic_auth_users:\n  reader: {hashed}\n")
    flags = (f"--web.config.file={tmp_path}/web.yml",)
    with listening(tmp_path, inside, *flags, address=f"{STRANGE}:10124"):
        url = f"http://{STRANGE}:10124/debug/snapshot"
        assert curl(inside, url) == "401"
        assert curl(inside, url, "--user", "reader:sesame") == "200"


@pytest.fixture
def certified(tmp_path) -> Path:
    """A folder with an authority, and a certificate for a server and for a client."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name in ("server", "client"):
        authority.issue_cert(STRANGE).private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
    return tmp_path


def tls_config(folder: Path, text: str) -> str:
    (folder / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: server.pem\n  key_file: server.pem\n{text}"
    )
    return f"--web.config.file={folder}/web.yml"


def test_remote_clients_need_a_certificate_for_debug_and_tls_alone_is_not_enough(certified, inside) -> None:
    flag = tls_config(certified, "  client_ca_file: ca.pem\n  client_auth_type: VerifyClientCertIfGiven\n")
    with listening(certified, inside, flag, address=f"{STRANGE}:10125"):
        url, trust = f"https://{STRANGE}:10125/debug/snapshot", ("--cacert", str(certified / "ca.pem"))
        assert curl(inside, url, *trust) == "403"
        assert curl(inside, url, *trust, "--cert", str(certified / "client.pem")) == "200"


def test_2000_tls_clients_cost_a_bounded_amount_and_keep_no_scrape_out(certified) -> None:
    """With the handshake complete and no request sent, and with half a handshake."""
    log = certified / "exporter.log"
    flag = tls_config(certified, "")
    with exporter(certified, *SIMULATED, flag, ready=lambda _: "ready: " in log.read_text()) as daemon:
        context = ssl.create_default_context(cafile=certified / "ca.pem")
        scrape = functools.partial(scraped_over_tls, daemon, context)
        assert scrape()
        memory, clients = daemon.seen.memory_info().rss, []
        for number in range(2000):
            client = connect(daemon, b"\x16\x03\x01" if number % 10 else b"")
            clients.append(client if number % 10 else tls_client(client, context))
            if len(clients) > CONNECTIONS * 2:
                clients.pop(0).close()
            if number % 500 == 499:
                assert scrape(), f"after {number}"
        assert daemon.seen.num_fds() <= CONNECTIONS + 32
        assert daemon.seen.memory_info().rss - memory < 2 * MEMORY
        for client in clients:
            client.close()
        wait_until(lambda: daemon.seen.num_fds() < 64)
        assert daemon.stop() == 0


def tls_client(client: socket.socket, context: ssl.SSLContext) -> socket.socket:
    """The client after the handshake, which must succeed."""
    try:
        return context.wrap_socket(client, server_hostname=STRANGE)
    except OSError:
        client.close()
        raise


def scraped_over_tls(daemon: Daemon, context: ssl.SSLContext) -> bool:
    with tls_client(connect(daemon), context) as client:
        client.sendall(BODY)
        return client.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("192.0.2.1", False),
        ("0.0.0.0", False),  # noqa: S104 - without a listener there
        ("::", False),
        ("fe80::1%eth0", False),
        ("", False),
        ("/run/socket", False),
    ],
)
def test_only_loopback_is_this_host(address, local) -> None:
    assert is_loopback(address) is local
