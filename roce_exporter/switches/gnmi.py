"""gNMI to a switch: Get, and Subscribe with the modes ONCE and STREAM, over one gRPC channel that ends with the probe or the stream.

The path of a request is one of two constants, and there is no message to set a value, so nothing can be set on a switch. The channel
connects to the address that was resolved before, through no proxy. Credentials are metadata of each request, as switches
expect them, and are sent over TLS only.

    async with GnmiClient(probe) as client:
        leaves = await client.once("pfc", ("interfaces/interface[name=*]/ethernet/pfc",))

gRPC keeps threads of its own: with a channel open about ten, and one that polls for asyncio. They end when the last
channel was closed and its objects are gone, some milliseconds later; `close` waits for neither. Nothing of gRPC survives a fork.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

from roce_exporter import __version__
from roce_exporter.net import NetError, ReplyBudget, meaning_of, meanings
from roce_exporter.net import gnmi_messages as m
from roce_exporter.net.gnmi_messages import Leaf
from roce_exporter.net.grpc import CHANNEL_OPTIONS, grpc, grpc_credentials, start_grpc
from roce_exporter.net.http import place_text
from roce_exporter.net.json_reply import MOST_VALUES, decode_aside
from roce_exporter.net.login import hide
from roce_exporter.net.tls import expiry_text
from roce_exporter.switches.json_client import EXCHANGE_CHARACTERS
from roce_exporter.switches.readings import LoggedRequest, ProbeRequest, StreamPlan, label_text

Send = Callable[[grpc.aio.Channel, asyncio.Timeout], Awaitable[tuple[Leaf, ...]]]

NOT_GRPC = re.compile(r"HTTP status|content-type|http status|Stream removed|RST_STREAM")
"""What gRPC reports of a server of HTTP/2 that is no gRPC server."""
TOO_LARGE = re.compile(r"Received message larger than max|larger than max")
GET = "/gnmi.gNMI/Get"
SUBSCRIBE = "/gnmi.gNMI/Subscribe"
MESSAGE_BYTES = 6 << 20
REPLY_BYTES = 32 << 20
"""Most of one round: each leaf has its whole path."""
ROUND_VALUES = 2 * MOST_VALUES
REQUESTS_AT_ONCE = 6
"""Of one round: a request that hangs keeps its place."""
RECEIVED_AT_ONCE = 2
"""Replies of which one round receives a message at once: gRPC has all its bytes twice, and then they wait until they are decoded."""
QUERY_CHARACTERS = 4096
SILENT_SECONDS = 30.0
SILENT = f"the stream is silent for {SILENT_SECONDS:g} s, though it has samples every ten"
LATE = "no answer by the deadline: raise the timeout of the target, or query it less often"
INCOMPLETE = "the switch ended the subscription before it had sent everything"
OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.http2.bdp_probe", 0),  # it lets a fast switch send megabytes that are not read yet
    ("grpc.primary_user_agent", f"roce-exporter/{__version__}"),
)


class AbsentError(NetError):
    """The switch does not have what was requested."""


NOT_FOUND = (grpc.StatusCode.NOT_FOUND,)
UNKNOWN_MODEL = (*NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)
"""How a switch answers that does not have a path, or does not know the model of another vendor."""


def gnmi_fault(code: str, details: str) -> str:
    """One line for the status of a request that failed.

    `details` come from gRPC or from the switch. Unknown ones are part of the line, as far as they are short and printable.
    """
    said = label_text(details)
    if code == "RESOURCE_EXHAUSTED" and TOO_LARGE.search(said):
        return f"the reply is larger than {MESSAGE_BYTES >> 20} MiB"
    if code == "UNAVAILABLE":
        return meaning_of("grpc connection", said, f"UNAVAILABLE: {said}")
    if code in ("UNKNOWN", "INTERNAL", "CANCELLED") and NOT_GRPC.search(said):
        return f"the port does not answer in gRPC: correct the port ({said})"
    meaning = meanings("grpc").get(code)
    return f"{code}: {meaning} ({said})" if meaning and said else f"{code}: {meaning or said}"


class GnmiClient:
    """The requests of one round to one switch. Use it with `async with`: leaving closes the channel."""

    def __init__(self, probe: ProbeRequest) -> None:
        """Nothing is opened before the first request."""
        self.logged: list[LoggedRequest] = []
        self._probe = probe
        self._channel: grpc.aio.Channel | None = None
        self._metadata: tuple[tuple[str, str], ...] = ()
        """What each request carries: the credentials in the form that switches expect, two entries."""
        self._turn = asyncio.Lock()
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._receiving = asyncio.Semaphore(RECEIVED_AT_ONCE)
        self._budget = ReplyBudget(REPLY_BYTES, ROUND_VALUES)
        self._port = probe.target.ports["grpc" if probe.target.scheme != "grpc+insecure" else "grpc+insecure"]
        self._place = place_text(probe.route.address, self._port)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the channel and end its requests, also when the round is cancelled."""
        if self._channel:
            await self._channel.close()

    async def get(self, source: str, target: str, paths: Sequence[str]) -> tuple[Leaf, ...]:
        """The values at some paths, in any order; `target` names the database on SONiC.

        Raises:
            AbsentError: the switch does not have one of the paths.
            NetError: no usable reply by the round's deadline.
        """
        request = m.get_request(target, map(m.path_of, paths))

        async def send(channel: grpc.aio.Channel, _: object) -> tuple[Leaf, ...]:
            # As a stream of one message: only what is read is received beyond the window of HTTP/2.
            method: Any = channel.unary_stream(GET)
            call, reader = method(request, metadata=self._metadata), m.LeafReader()
            try:
                await self._received(call, reader, "the switch ended the request without a reply")
                return tuple(reader.leaves)
            finally:
                call.cancel()

        return await self._limited(source, f"Get {target} {' '.join(paths)}", send)

    async def once(
        self,
        source: str,
        paths: Sequence[str],
        origin: str = "",
        absent: Collection[grpc.StatusCode] = NOT_FOUND,
    ) -> tuple[Leaf, ...]:
        """All values below some paths of the models of this origin.

        Raises:
            AbsentError: the switch does not have the paths.
            NetError: no usable reply by the round's deadline.
        """
        request = m.once_request(map(m.path_of, paths), origin)

        async def send(channel: grpc.aio.Channel, _: object) -> tuple[Leaf, ...]:
            async with self._subscription(channel, request) as call:
                reader = m.LeafReader()
                while not await self._received(call, reader, INCOMPLETE):
                    pass
                return tuple(reader.leaves)

        return await self._limited(source, f"Subscribe ONCE {' '.join(paths)}", send, absent)

    async def _received(self, call: Any, reader: m.LeafReader, ended: str) -> bool:
        """Receive one message; True if it ends a subscription. `ended` is the error if the switch sends none."""
        await call.initial_metadata()  # for which a switch may let the request wait
        async with self._receiving:
            if (data := await call.read()) is grpc.aio.EOF:
                raise await _ended(call, ended)
            return await self._decode(reader, data)

    async def _decode(self, reader: m.LeafReader, data: bytes) -> bool:
        before = reader.values
        self._budget.take(len(data))
        is_last = await decode_aside(len(data), partial(reader.add, data))
        self._budget.take(reader.size - len(data), reader.values - before)
        return is_last

    async def stream(self, plan: StreamPlan, take: Callable[[m.LeafReader, bool], Awaitable[None]]) -> None:
        """Hold a subscription until it ends, which is a fault. `take` gets each message, and whether the switch has sent all once.

        Raises:
            NetError: the switch refused it, ended it, or has sent nothing for SILENT_SECONDS.
        """
        parts: dict[str, list[tuple[m.Path, float]]] = {}
        for source, paths in plan.paths.items():
            known = parts.setdefault(plan.databases.get(source, ""), [])
            known += [(m.path_of(path), seconds) for path, seconds in paths]
        unsynced = set(parts)

        async def hold(database: str) -> None:
            paths, reader = parts[database], m.LeafReader()
            has_samples = any(seconds for _, seconds in paths)

            async def send(channel: grpc.aio.Channel, limit: asyncio.Timeout) -> tuple[Leaf, ...]:
                request = m.stream_request(paths, plan.origin, database)
                async with self._subscription(channel, request) as call:
                    while (data := await call.read()) is not grpc.aio.EOF:
                        is_synced = await decode_aside(len(data), partial(reader.add, data))
                        del data  # nothing of a message is kept while the next one is awaited
                        if is_synced:
                            unsynced.discard(database)
                        await take(reader, is_synced and not unsynced)
                        reader.next_message()
                        now = asyncio.get_running_loop().time()
                        may_be_silent = not has_samples and database not in unsynced
                        limit.reschedule(None if may_be_silent else now + SILENT_SECONDS)
                    raise await _ended(call, "the switch ended the stream")

            await self._limited("stream", "", send)

        try:
            async with asyncio.TaskGroup() as group:
                for database in parts:
                    group.create_task(hold(database))
        except ExceptionGroup as both:
            raise both.exceptions[0] from None

    @asynccontextmanager
    async def _subscription(self, channel: grpc.aio.Channel, request: bytes) -> AsyncIterator[Any]:
        method: Any = channel.stream_stream(SUBSCRIBE)
        call = method(metadata=self._metadata)
        try:
            # The stream stays open for writing: some servers take its end for the end of the subscription.
            await call.write(request)
            yield call
        except asyncio.InvalidStateError:  # from write, when the call has ended: its status says why
            raise await _ended(call) from None
        finally:
            call.cancel()

    async def _limited(
        self, source: str, query: str, send: Send, absent: Collection[grpc.StatusCode] = NOT_FOUND
    ) -> tuple[Leaf, ...]:
        probe = self._probe
        limit = asyncio.timeout_at(probe.deadline)
        try:
            async with limit, self._slots:
                async with probe.gate.attempt(probe.deadline):
                    async with self._turn:
                        if self._channel is None:
                            start_grpc()
                            self._channel = await self._opened()
                    leaves = await send(self._channel, limit)
                probe.gate.is_accepted = True
        except TimeoutError:
            raise NetError(f"{self._place}: {LATE if limit.when() == probe.deadline else SILENT}") from None
        except grpc.aio.AioRpcError as error:
            line = f"{self._place}: {gnmi_fault(error.code().name, hide(error.details() or '', probe.login))}"
            if "certificate has expired" in line:
                line += await expiry_text(probe.route.address, self._port, probe.server_name)
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                probe.gate.refusal = line
            kind = AbsentError if error.code() in absent else NetError
            raise kind(line) from None
        if probe.record:
            text = hide(leaves_text(leaves), probe.login)
            self.logged.append(LoggedRequest(source, query[:QUERY_CHARACTERS], text))
        return leaves

    async def _opened(self) -> grpc.aio.Channel:
        """The channel.

        Raises:
            NetError: HTTP/2 cannot carry the credentials, or they would go over it without TLS.
        """
        target, route, login = self._probe.target, self._probe.route, self._probe.login
        name = self._probe.server_name
        # The form that gRPC does not resolve.
        address = f"ipv{ipaddress.ip_address(route.address).version}:{self._place}"
        options = (*OPTIONS, ("grpc.default_authority", name))
        if target.scheme == "grpc+insecure":
            if login.username:
                raise NetError("basic_auth is not sent without TLS: use grpc:// instead of grpc+insecure://")
            return grpc.aio.insecure_channel(address, options=options)
        if not all(" " <= letter <= "~" for letter in login.username + login.password):
            raise NetError("basic_auth: gNMI can carry only printable ASCII characters in user and password")
        credentials, verified = await grpc_credentials(target.tls, route.address, self._port, name)
        if login.username:
            self._metadata = (("username", login.username), ("password", login.password))
        verify = (*options, ("grpc.ssl_target_name_override", verified))
        return grpc.aio.secure_channel(address, credentials, options=verify)


async def _ended(call: Any, line: str = INCOMPLETE) -> Exception:
    """Why a subscription ended; `line` if its status does not say so."""
    code, details = await call.code(), await call.details()
    if code == grpc.StatusCode.OK:
        return NetError(line)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


def leaves_text(leaves: Sequence[Leaf]) -> str:
    """A reply as text, one line per leaf, cut at the limit of the debug page: what is beyond is not made into text."""
    lines, size = [], 0
    for path, value in leaves:
        lines.append(f"{m.path_text(path)}: {value}")
        size += len(lines[-1]) + 1
        if size > EXCHANGE_CHARACTERS:
            break
    return "\n".join(lines)[:EXCHANGE_CHARACTERS]
