"""A gNMI server of a switch for tests: it replays replies over TLS of its own authority, and can misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from waiting import HUNG_SECONDS

from roce_exporter.net import gnmi_messages
from roce_exporter.net.gnmi_messages import Path as GnmiPath
from roce_exporter.net.gnmi_messages import path_of, path_text
from roce_exporter.net.grpc import grpc, message_classes
from roce_exporter.net.login import Credentials, Login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.readings import ProbeRequest
from roce_exporter.switches.targets import Route, SwitchTarget

NAME = "leaf2.example.com"
REPLIES = message_classes(
    "gnmi_replies",
    gnmi_messages.MESSAGES
    | {
        "ScalarArray": "repeated TypedValue element 1",
        "TypedValue": gnmi_messages.MESSAGES["TypedValue"].replace("bytes leaflist", "ScalarArray leaflist"),
        "Update": "Path path 1, TypedValue val 3",
        "Notification": "Path prefix 2, repeated Update update 4, repeated Path delete 5",
        "GetResponse": "repeated Notification notification 1",
        "SubscribeResponse": "Notification update 1, bool sync_response 3",
    },
)
"""The messages that a switch sends: the exporter reads these field by field."""
LOGIN = Login("reader", "hunter2-very-secret")


class RefusedError(Exception):
    """The server ends the request with this status."""

    def __init__(self, code: grpc.StatusCode, details: str = "") -> None:
        super().__init__(details)
        self.code = code
        self.details = details


@dataclass(frozen=True)
class GnmiQuestion:
    """One request that the server got."""

    method: str
    target: str
    paths: tuple[str, ...]
    metadata: dict[str, str]
    samples: dict[str, float] = field(default_factory=dict)
    """Of a stream: by path the seconds between two samples, 0 with each change."""


@dataclass
class GnmiSwitch:
    port: int
    ca_file: Path
    asked: list[GnmiQuestion] = field(default_factory=list)

    def visit(
        self, module: str = "sonic_gnmi", *, seconds: float = HUNG_SECONDS, **options: Any
    ) -> ProbeRequest:
        """A visit to this switch; options: scheme, login, tls, record, server_name, address, priorities, ports."""
        target = SwitchTarget(
            name="leaf2",
            module=module,
            scheme=options.get("scheme", "grpc"),
            host=NAME,
            ports={"grpc": self.port, "grpc+insecure": self.port, "https": 1, **options.get("ports", {})},
            basic_auth=Credentials("reader", Path("password")),
            tls=options.get("tls", TlsFiles(ca_file=self.ca_file)),
            priorities=options.get("priorities", "pfc"),
        )
        return ProbeRequest(
            target=target,
            route=Route(options.get("address", "127.0.0.1"), options.get("server_name", NAME)),
            login=options.get("login", LOGIN),
            deadline=asyncio.get_running_loop().time() + seconds,
            record=options.get("record", False),
        )


def ietf(document: Any) -> dict[str, Any]:
    """A value as SONiC sends it."""
    return {"json_ietf_val": json.dumps(document).encode()}


def notification(updates: Iterable[tuple[GnmiPath, dict[str, Any]]]) -> Any:
    """A Notification with these updates: a path and the field of its TypedValue."""
    message = REPLIES["Notification"]()
    for path, value in updates:
        update = message.update.add()
        update.path.elem.extend(gnmi_messages._encoded(path))
        update.val.MergeFrom(REPLIES["TypedValue"](**value))
    return message


def get_response(*updates: tuple[GnmiPath, dict[str, Any]]) -> bytes:
    message = REPLIES["GetResponse"]()
    message.notification.append(notification(updates))
    return bytes(message.SerializeToString())


def subscribe_response(*updates: tuple[GnmiPath, dict[str, Any]]) -> bytes:
    message = REPLIES["SubscribeResponse"]()
    message.update.CopyFrom(notification(updates))
    return bytes(message.SerializeToString())


def sync_response() -> bytes:
    return bytes(REPLIES["SubscribeResponse"](sync_response=True).SerializeToString())


def leaf_updates(leaves: dict[str, int | str]) -> list[tuple[GnmiPath, dict[str, Any]]]:
    """Leaves by path as text, in the scalar values that EOS sends."""
    return [
        (path_of(path), {"uint_val": value} if isinstance(value, int) else {"string_val": value})
        for path, value in leaves.items()
    ]


def _asked(method: str, data: bytes, context: Any) -> GnmiQuestion:
    metadata = dict(context.invocation_metadata() or ())
    if method == "Get":
        request = gnmi_messages.CLASSES["GetRequest"].FromString(data)
        return GnmiQuestion(method, request.prefix.target, _texts(request.path), metadata)
    request = gnmi_messages.CLASSES["SubscribeRequest"].FromString(data).subscribe
    paths = _texts(one.path for one in request.subscription)
    samples = {}
    if request.mode != gnmi_messages.ONCE:
        method = "Stream"
        for path, one in zip(paths, request.subscription, strict=True):
            assert (one.mode == gnmi_messages.SAMPLE) == bool(one.sample_interval)
            samples[path] = one.sample_interval / 1e9
    return GnmiQuestion(method, request.prefix.target, paths, metadata, samples)


def _texts(paths: Iterable[Any]) -> tuple[str, ...]:
    elements = gnmi_messages._Elements()
    return tuple(path_text(tuple(map(elements.__getitem__, path.elem))) for path in paths)


@asynccontextmanager
async def gnmi_switch(
    answer: Callable[[GnmiQuestion], Any],
    folder: Path,
    *,
    login: Login | None = LOGIN,
    plain: bool = False,
    names: tuple[str, ...] = (NAME,),
    **certificate: Any,
) -> AsyncIterator[GnmiSwitch]:
    """Serve until the block is left. `answer` returns bytes for Get, a list of messages for Subscribe, or raises `RefusedError`.

    An awaitable is awaited first. With an asynchronous iterator, its messages are sent.
    """
    switch = GnmiSwitch(0, folder / "ca.pem")

    async def reply(method: str, data: bytes, context: Any) -> Any:
        question = _asked(method, data, context)
        switch.asked.append(question)
        shown = Login(question.metadata.get("username", ""), question.metadata.get("password", ""))
        if login is not None and shown != login:
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED, f"no such user: {shown.username} {shown.password}"
            )
        try:
            found = answer(question)
            return await found if asyncio.iscoroutine(found) else found
        except RefusedError as refused:
            await context.abort(refused.code, refused.details)

    async def get(data: bytes, context: Any) -> bytes:
        return await reply("Get", data, context)

    async def subscribe(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        found = await reply("Subscribe", await anext(requests), context)
        if isinstance(found, list):
            for message in found:
                yield message
        else:
            async for message in found:
                yield message

    methods = {
        "Get": grpc.unary_unary_rpc_method_handler(get),
        "Subscribe": grpc.stream_stream_rpc_method_handler(subscribe),
    }
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0), ("grpc.max_send_message_length", -1)))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("gnmi.gNMI", methods),))
    if plain:
        switch.port = server.add_insecure_port("127.0.0.1:0")
    else:
        switch.port = server.add_secure_port(
            "127.0.0.1:0", server_credentials(switch.ca_file, names, **certificate)
        )
    await server.start()
    try:
        yield switch
    finally:
        await server.stop(None)


def server_credentials(ca_file: Path, names: tuple[str, ...], **certificate: Any) -> Any:
    """Credentials of a server; the authority that signed its certificate is written to a file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca_file))
    issued = authority.issue_cert(*names, **certificate)
    chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
    return grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
