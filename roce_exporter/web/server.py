"""The HTTP server: sockets, the limit on connections, access control, and the call of the application.

Hostile or broken clients can use only limited resources (`ClientLimits`): half-sent requests are closed, idle connections make
room for new ones, unread bodies are not copied.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import re
import resource
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from roce_exporter.errors import UserError
from roce_exporter.model.ip import unmapped
from roce_exporter.net import TokenBucket
from roce_exporter.net.http import place_text
from roce_exporter.web.client_stream import ClientStream
from roce_exporter.web.connection import (
    RUNBOOKS,
    ClientLimits,
    Connection,
    ConnectionState,
    RateLimit,
    Request,
    Response,
    WebConfig,
    plain,
)
from roce_exporter.web.passwords import Passwords, TooManyChecksError

if TYPE_CHECKING:
    from roce_exporter.web.web_config_file import WebConfigFile

LOG = logging.getLogger(__name__)

Application: TypeAlias = Callable[[Request], Awaitable[Response]]

ADDRESS = re.compile(r"(?:\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")
REMEDY = "choose another with --web.listen-address"
BACKLOG = 512
LARGEST_PORT = 65535
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
ACCEPT_PAUSE = 0.1
SILENCE = 60.0  # seconds between two log lines about a shortage that goes on
SCRATCH_BYTES = 16 * 1024


OPEN = WebConfig()


class ListenError(UserError):
    """An address that cannot be bound: one line that names it and the remedy."""


class Server:
    """Serves an application over HTTP/1.1, with or without TLS."""

    def __init__(
        self,
        application: Application,
        config: WebConfigFile | None,
        limits: ClientLimits = ClientLimits(),  # noqa: B008 - frozen
        private: Collection[str] = (),
    ) -> None:
        """`application` is called on the event loop, once per accepted request.

        The paths in `private` are for clients on this host and for authenticated clients.
        """
        self._application = application
        self._private = private
        self._config = config
        self._limits = limits
        self._most = min(limits.connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        """Connections at once: they leave most of the process's descriptors to the files of the devices."""
        self._listeners: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._passwords = Passwords()
        self._limit: RateLimit | None = None
        self._bucket = TokenBucket(0.0, 0.0, 0.0)

    async def start(self, addresses: Sequence[str]) -> tuple[str, ...]:
        """Start to serve on these addresses (`HOST:PORT`, `:PORT`, `[IPv6]:PORT`); wait with `accept`.

        Returns:
            The bound addresses, in the same order, with a free port in place of port 0.

        Raises:
            ListenError: an address is in use or invalid; nothing is bound.
        """
        try:
            for address in addresses:
                self._listeners.append(listening_socket(address))
        except ListenError:
            self._stop_listening()
            raise
        self._accepting = [asyncio.create_task(self._accept(listener)) for listener in self._listeners]
        for task in self._accepting:
            task.add_done_callback(_log_fault)
        return tuple([place_text(*listener.getsockname()[:2]) for listener in self._listeners])

    async def accept(self) -> None:
        """Wait while connections are accepted. Raises Exception: the error that ended it."""
        await asyncio.gather(*self._accepting)

    async def close(self) -> None:
        """Stop listening, give requests in progress a moment to finish, and close every connection."""
        await _end(self._accepting)
        self._stop_listening()
        busy = {
            task
            for connection, task in self._connections.items()
            if connection.state >= ConnectionState.WRITING
        }
        await _end(set(self._connections.values()) - busy)
        if busy:
            await asyncio.wait(busy, timeout=self._limits.closing_seconds)
        await _end(busy)
        self._passwords.close()

    def _stop_listening(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def _accept(self, listener: socket.socket) -> None:
        loop, logged = asyncio.get_running_loop(), -SILENCE
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
                if closing := self._admit(client):
                    # until its descriptor is free for the next client
                    await asyncio.wait((closing,), timeout=ACCEPT_PAUSE)
            except (OSError, MemoryError) as error:
                # The shortage may end in a moment, and a server that no longer accepts connections is useless.
                if isinstance(error, MemoryError) or error.errno in EXHAUSTED:
                    self._make_room()
                    if loop.time() - logged > SILENCE:
                        LOG.warning("cannot accept a connection: %s; closing idle ones", error)
                        logged = loop.time()
                    await asyncio.sleep(ACCEPT_PAUSE)

    def _admit(self, client: socket.socket) -> asyncio.Task[None] | None:
        """Serve this client, or close it where no other can be; returns the task of a connection that is closed for it."""
        closing = None
        if len(self._connections) >= self._most:
            closing = self._make_room()
            if closing is None:
                client.close()
                return None
        wire = ClientStream(self._scratch, self._limits.head_bytes)
        connection = Connection(wire, self._limits, self._answer)
        task = asyncio.create_task(self._serve(connection, client))
        self._connections[connection] = task
        task.add_done_callback(lambda ended: self._forget(connection, client, ended))
        return closing

    def _make_room(self) -> asyncio.Task[None] | None:
        """Close the least valuable connection; None when all of them are being answered and may still want the response."""
        spare = [
            connection
            for connection in self._connections
            if connection.state < ConnectionState.ANSWERING or connection.wire.has_ended
        ]
        if not spare:
            return None
        least = min(spare, key=lambda connection: (connection.state, connection.since))
        closing = self._connections.pop(least)
        closing.cancel()
        return closing

    def _forget(self, connection: Connection, client: socket.socket, ended: asyncio.Task[None]) -> None:
        # Also for a task that was cancelled before it began and could not clean up.
        self._connections.pop(connection, None)
        connection.wire.when_lost = (
            None  # it refers to the task, and a cycle with a TLS session costs memory for long
        )
        connection.wire.abort()
        client.close()
        if not ended.cancelled() and (error := ended.exception()):
            LOG.error("a connection failed", exc_info=error)

    async def _serve(self, connection: Connection, client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        tls = (await self._current()).tls
        try:
            await loop.connect_accepted_socket(
                lambda: connection.wire,
                client,
                ssl=tls,
                ssl_handshake_timeout=self._limits.request_seconds if tls else None,
                ssl_shutdown_timeout=self._limits.stalled_seconds if tls else None,
            )
            await connection.serve()
        except OSError as error:
            LOG.debug("a connection ended early: %s", error)

    async def _current(self) -> WebConfig:
        return await self._config.current() if self._config else OPEN

    async def _answer(self, connection: Connection, request: Request) -> Response:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - for the type checker
        connection.wire.when_lost = task.cancel  # nobody wants the response any more
        try:
            config = await self._current()
            response = await self._refusal(config, connection, request)
            if response is None:
                connection.enter(ConnectionState.ANSWERING)
                try:
                    response = await self._application(request)
                except Exception:
                    # For any error the client gets a response, and the log gets the traceback.
                    LOG.exception("%s %s failed", request.method, request.path)
                    response = plain(500, "internal error; the exporter's log has the details")
        finally:
            connection.wire.when_lost = None
        return replace(response, headers=response.headers + config.headers) if config.headers else response

    async def _refusal(self, config: WebConfig, connection: Connection, request: Request) -> Response | None:
        """The response to a client without access; None if it has access."""
        if config.rate_limit and not self._allows(config.rate_limit):
            return plain(429, "too many requests; see rate_limit in the web config file")
        if config.allowed_sans and not config.allowed_sans & _alternative_names(connection):
            return plain(403, "the client's certificate has none of the names in client_allowed_sans")
        needs_login = config.users and not request.path.startswith(RUNBOOKS)
        if needs_login and (refused := await self._check_password(config, connection, request)):
            return refused
        if request.path in self._private and not (config.users or _is_known(connection)):
            return plain(
                403, "restricted to localhost, and to users and client certificates of the web config file"
            )
        return None

    async def _check_password(
        self, config: WebConfig, connection: Connection, request: Request
    ) -> Response | None:
        """The response to a client without a right password; None if it has one."""
        connection.enter(ConnectionState.ANSWERING)
        try:
            matches = await self._passwords.match(config.users, request.headers.get("authorization"))
        except TooManyChecksError as error:
            return plain(429, str(error))
        except (TimeoutError, RuntimeError) as error:
            LOG.error("a password was not checked: %s", error)  # noqa: TRY400 - a thread is missing, which has no traceback
            return plain(503, "the password could not be checked; try again")
        return None if matches else plain(401, "user and password required", ("WWW-Authenticate", "Basic"))

    def _allows(self, limit: RateLimit) -> bool:
        now = asyncio.get_running_loop().time()
        if limit != self._limit:
            self._limit, self._bucket = limit, TokenBucket(1 / limit.interval, limit.burst, now)
        return self._bucket.take(now)


def _log_fault(ended: asyncio.Task[None]) -> None:
    if not ended.cancelled() and (error := ended.exception()):
        LOG.critical("no longer accepting connections", exc_info=error)


async def _end(tasks: Iterable[asyncio.Task[None]]) -> None:
    ended = list(tasks)
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)


def _is_known(connection: Connection) -> bool:
    """Whether the client has a verified certificate or is on this host."""
    host, *_ = connection.wire.about("peername") or ("",)
    return bool(connection.wire.about("peercert")) or is_loopback(host)


def is_loopback(address: str) -> bool:
    """Whether an address is a loopback address, including the form `::ffff:127.0.0.1` of dual-stack sockets."""
    try:
        return unmapped(address).is_loopback
    except ValueError:
        return False


def _alternative_names(connection: Connection) -> frozenset[str]:
    """The subject alternative names of the client's certificate; empty if there is no certificate."""
    found = set()
    for kind, value in (connection.wire.about("peercert") or {}).get("subjectAltName", ()):
        if kind in ("DNS", "email", "URI"):
            found.add(value)
        elif kind == "IP Address":  # as Go spells it
            with contextlib.suppress(ValueError):
                found.add(str(ipaddress.ip_address(value.strip())))
    return frozenset(found)


def listening_socket(address: str) -> socket.socket:
    """A socket that listens on `HOST:PORT`, `[IPv6]:PORT`, or `:PORT` for every address of both families.

    Raises:
        ListenError: the address is invalid or cannot be bound.
    """
    parts = ADDRESS.fullmatch(address)
    if parts and int(parts["port"]) > LARGEST_PORT:
        raise ListenError(
            f"cannot listen on {address}: port {parts['port']} is above {LARGEST_PORT}; {REMEDY}"
        )
    if not parts:
        raise ListenError(f"cannot listen on {address}: not HOST:PORT, :PORT or [IPv6]:PORT; {REMEDY}")
    host, port = parts["six"] or parts["host"], int(parts["port"])
    try:
        if host:
            found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            # IPv4 first for a name with both, as in Go's net.Listen.
            family, _, _, _, where = min(found, key=lambda entry: entry[0])
            listener = socket.create_server(where, family=family, backlog=BACKLOG)
        else:
            both = socket.has_dualstack_ipv6()
            family = socket.AF_INET6 if both else socket.AF_INET
            listener = socket.create_server(("", port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except socket.gaierror as error:
        raise ListenError(f"cannot listen on {address}: {error.strerror}; {REMEDY}") from None
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()  # without the addition of the socket module
        raise ListenError(f"cannot listen on {address}: {reason}; {REMEDY}") from None
    listener.setblocking(False)
    return listener
