"""HTTPS to a switch: JSON in, JSON out, over a few keep-alive connections that end with the probe.

Only reading requests can be sent: GET, and POST to the paths that a module lists, with documents that the module's rule for
the path accepts. Redirects are not followed. Credentials are sent over TLS, and without it only where the address of the target
begins with `http://`, which logs a warning once. No error and no exchange holds a password, a cookie or a line of the reply's head.

    async with JsonClient(probe, posts={"/command-api": only_show}) as client:
        reply = await client.post("queues", "/command-api", {...})
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Self

from roce_exporter.net import NetError, ReplyBudget, meanings
from roce_exporter.net.http import BODY_BYTES, OK, HttpClient, HttpReply, HttpServer
from roce_exporter.net.json_reply import count_values, read_json
from roce_exporter.net.login import HIDDEN, Login, LoginRefusedError, authorization, hide
from roce_exporter.switches.readings import LoggedRequest, ProbeReply, ProbeRequest

LOG = logging.getLogger(__name__)

CONNECT_SECONDS = 3.0
CONNECTIONS = 3
"""Most connections to one switch at a time. Web servers of switches have few workers, which others use too."""
MOST_VALUES = 300_000
"""Of all replies of a round; a switch of 1,024 ports has 200,000 in one."""
ROUND_BYTES = 2 * BODY_BYTES
"""Most of all replies of a round: a text can take four times its bytes."""
EXCHANGE_CHARACTERS = 256 * 1024
"""Most characters of one reply on the debug page."""
COOKIE = re.compile(r'"?[!#-+\--:<-\[\]-~]{1,4096}"?', re.ASCII)
"""The value of a cookie (RFC 6265, section 4.1.1)."""
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
MOST_REST = 3600
"""Seconds; a switch cannot ask to be left alone for longer."""
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class StatusError(NetError):
    """A reply with another status than 200: one line, with nothing of the reply in it."""

    def __init__(self, status: int, body: bytes = b"") -> None:
        """`body` is the beginning of the reply. NX-API says there what is wrong with a command."""
        self.status = status
        self.body = body
        if 300 <= status < 400:  # noqa: PLR2004 - the class of redirects, RFC 9110
            line = "redirects are not followed, give the address that the switch itself serves"
            super().__init__(f"status {status}: {line}")
            return
        phrase = next((member.phrase for member in HTTPStatus if member == status), "")
        meaning = meanings("http").get(str(status))
        named = f"status {status} {phrase}".strip()
        super().__init__(f"{named}: {meaning}" if meaning else f"{named} instead of 200")


@dataclass(frozen=True, slots=True)
class SessionCookie:
    """A cookie by which a switch recognises a session, so that it does not authenticate every request again."""

    name: str
    login_path: str = ""
    """Where a POST of the credentials returns the cookie; empty: any request with basic authentication does."""
    login_document: Callable[[Login], Any] | None = None
    """The document to post there. It is never recorded."""


NO_COOKIE = SessionCookie("")
NO_POSTS: Mapping[str, Callable[[Any], bool]] = MappingProxyType({})


@dataclass(slots=True)
class CookieJar:
    """The value of one session's cookie, for the login and address that it was given to."""

    owner: tuple[str, int, Login]
    value: str = field(default="", repr=False)


MOST_TARGETS = 4096
"""Targets that are remembered: service discovery can name any number of addresses."""

JARS: dict[tuple[str, str], CookieJar] = {}
"""By target and name of the cookie, between visits. In memory only."""


class JsonClient:
    """The requests of one round to one switch. Use it with `async with`: leaving closes all connections."""

    def __init__(
        self,
        probe: ProbeRequest,
        posts: Mapping[str, Callable[[Any], bool]] = NO_POSTS,
        cookie: SessionCookie = NO_COOKIE,
        connections: int = CONNECTIONS,
        budget: ReplyBudget | None = None,
    ) -> None:
        """`posts` has the paths to which documents may be posted, each with a rule that accepts reading documents only.

        `budget` is that of another client of the same round.
        """
        target = probe.target
        self.logged: list[LoggedRequest] = []
        self._probe = probe
        self._posts = posts
        self._cookie = cookie
        self._scheme = "http" if target.scheme == "http" else "https"
        address, port = probe.route.address, target.ports[self._scheme]
        server = HttpServer(self._scheme == "https", probe.server_name, port)
        self._client = HttpClient(server, target.tls, address, CONNECT_SECONDS)
        self._jar = kept_jar(target.name, cookie.name, (address, port, probe.login))
        self._slots = asyncio.Semaphore(connections)
        self._login_turn = asyncio.Lock()
        self._no_login: StatusError | None = None
        """How the switch has answered the login of this round, if it has no such login, or none now."""
        self.budget = budget or ReplyBudget(ROUND_BYTES, MOST_VALUES)
        self._started = asyncio.get_running_loop().time()

    async def __aenter__(self) -> Self:
        """Nothing is sent before the first request."""
        if self._scheme == "http" and self._probe.login.username:
            warn_once(self._probe.target.name)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections, also when the round is cancelled."""
        await self._client.__aexit__()

    async def get(self, source: str, path: str) -> Any:
        """The JSON document at this path; the query is part of the path, and names in it are quoted by the caller.

        Raises:
            NetError: no usable reply by the round's deadline; StatusError for another status than 200.
        """
        return await self._document(source, "GET", path, b"")

    async def post(self, source: str, path: str, document: Any) -> Any:
        """The reply to a reading document.

        Raises:
            NetError: as for `get`.
            ValueError: the module's rules do not allow the document: a defect.
        """
        rule = self._posts.get(path)
        if rule is None or not rule(document):
            raise ValueError(f"the module does not allow this document at {path}")
        return await self._document(source, "POST", path, json.dumps(document).encode())

    async def _document(self, source: str, method: str, path: str, body: bytes) -> Any:
        # A connection's place is kept until its reply is decoded: replies that wait for that must not pile up.
        async with self._slots:
            reply = await self._reply(source, method, path, body)
            try:
                self.budget.take(values=count_values(reply.body))
                return await read_json(reply.body, reply.header("content-type"))
            except NetError as error:
                raise NetError(f"{method} {path}: {error}") from None

    async def _reply(self, source: str, method: str, path: str, body: bytes) -> HttpReply:
        try:
            async with asyncio.timeout_at(self._probe.deadline):
                reply = await self._authorised(method, path, body)
            self.budget.take(len(reply.body))
        except TimeoutError:
            seconds = self._probe.deadline - self._started
            line = f"{method} {path}: no complete reply within {seconds:.1f} s"
            self._record(source, method, path, body, line)
            raise NetError(line) from None
        except NetError as error:
            self._record(source, method, path, body, str(error))
            error.args = (f"{method} {path}: {error}",)
            raise
        text = reply.body.decode("utf-8", errors="replace") if self._probe.record else ""
        self._record(source, method, path, body, text)
        return reply

    async def _authorised(self, method: str, path: str, body: bytes) -> HttpReply:
        """The reply to a request with the session's cookie, and without it if the switch no longer accepts the cookie."""
        if cookie := self._jar.value:
            try:
                return await self._accepted(method, path, body, self._session(cookie))
            except StatusError as error:
                if error.status not in REFUSED:
                    raise
                if self._jar.value == cookie:  # another request may already have a new one
                    self._jar.value = ""
        gate = self._probe.gate
        try:
            if self._cookie.login_path:
                await self._log_in()
                return await self._accepted(method, path, body, self._session(self._jar.value))
            async with gate.attempt(self._probe.deadline):
                try:
                    reply = await self._accepted(method, path, body, *authorization(self._probe.login))
                except StatusError as error:
                    gate.is_accepted = error.status != HTTPStatus.UNAUTHORIZED
                    gate.refusal = "" if gate.is_accepted else str(error)
                    raise
                gate.is_accepted = True
                return reply
        except LoginRefusedError:  # one that was refused in this round is not sent again
            raise StatusError(HTTPStatus.UNAUTHORIZED) from None

    def _session(self, cookie: str) -> tuple[str, str]:
        return "Cookie", f"{self._cookie.name}={cookie}"

    async def _log_in(self) -> None:
        """Get a cookie for the credentials. Requests that wait for the same login share it."""
        async with self._login_turn:
            if self._jar.value:
                return
            if self._no_login:
                raise StatusError(self._no_login.status, self._no_login.body)
            gate = self._probe.gate
            make_document = self._cookie.login_document
            document = make_document(self._probe.login) if make_document else {}
            async with gate.attempt(self._probe.deadline):
                try:
                    await self._accepted("POST", self._cookie.login_path, json.dumps(document).encode())
                except StatusError as error:
                    self._no_login = error
                    if error.status in REFUSED:
                        gate.refusal = str(error)
                    raise
                gate.is_accepted = bool(self._jar.value)
            if not self._jar.value:
                raise NetError(
                    f"the login at {self._cookie.login_path} returned no cookie {self._cookie.name}"
                )

    async def _accepted(self, method: str, path: str, body: bytes, *authority: tuple[str, str]) -> HttpReply:
        """The reply, of status 200."""
        headers, gate = (("Accept", "application/json"), *authority), self._probe.gate
        if gate.rest:
            raise NetError("not sent, because the switch asks to be left alone (Retry-After)")
        reply = await self._client.request(method, path, headers, body)
        if reply.status in BUSY:
            gate.rest = max(gate.rest, seconds_to_rest(reply.header("retry-after")))
        if reply.status != OK:
            raise StatusError(reply.status, reply.body)
        for header in reply.all_headers("set-cookie"):
            name, _, value = header.partition(";")[0].strip().partition("=")
            if self._cookie.name and name == self._cookie.name and COOKIE.fullmatch(value):
                self._jar.value = value
        return reply

    def _record(self, source: str, method: str, path: str, body: bytes, text: str) -> None:
        if self._probe.record:
            query = " ".join(filter(None, (method, path, body.decode())))
            text = hide(text[:EXCHANGE_CHARACTERS], self._probe.login)
            cookie = self._jar.value
            self.logged.append(LoggedRequest(source, query, text.replace(cookie, HIDDEN) if cookie else text))


def kept_jar(target: str, cookie: str, owner: tuple[str, int, Login]) -> CookieJar:
    """The jar of this target's session; a new one where the address or the login has changed."""
    jar = JARS.get((target, cookie))
    if jar is None or jar.owner != owner:
        if len(JARS) >= MOST_TARGETS:
            del JARS[next(iter(JARS))]
        jar = JARS[target, cookie] = CookieJar(owner)
    return jar


@lru_cache(maxsize=MOST_TARGETS)
def warn_once(target: str) -> None:
    """Log that the credentials of this target are sent in clear text."""
    LOG.warning(
        "target %s: credentials are sent without encryption, because its address begins with http://", target
    )


def seconds_to_rest(header: str) -> float:
    """What Retry-After says (RFC 9110, section 10.2.3): seconds or a date; 0 if it says nothing usable."""
    if header.isascii() and header.isdigit():
        return float(min(int(header[:9]), MOST_REST))
    try:
        date = parsedate_to_datetime(header)
        return min(max((date - dt.datetime.now(dt.UTC)).total_seconds(), 0.0), MOST_REST)
    except (TypeError, ValueError):  # no date, or one without a zone
        return 0.0


async def query_sources(
    sources: Mapping[str, Callable[[], Awaitable[Any]]],
    *clients: JsonClient,
    held: Mapping[str, Any] = MappingProxyType({}),
) -> ProbeReply:
    """Query all sources but those that are `held` at the same time, as far as their clients have connections; the first ones have precedence.

    A reply of None: the switch does not have the source. A NetError becomes the fault of its source. Any other exception is a defect, and ends the other queries.
    """
    replies: dict[str, Any] = dict(held)
    faults: dict[str, str] = {}

    async def query(source: str, request: Callable[[], Awaitable[Any]]) -> None:
        try:
            replies[source] = await request()
        except NetError as error:
            faults[source] = str(error)

    async with asyncio.TaskGroup() as group:
        for source, request in sources.items():
            if source not in held:
                group.create_task(query(source, request))
    absent = frozenset(source for source, reply in replies.items() if reply is None)
    logged = tuple(exchange for client in clients for exchange in client.logged)
    return ProbeReply({one: replies[one] for one in replies if one not in absent}, faults, logged, absent)
