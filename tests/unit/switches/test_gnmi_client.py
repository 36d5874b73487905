"""The gNMI client against a real gRPC server on loopback that behaves, and misbehaves, like the one of a switch."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clock import pass_time
from gnmi_switch import (
    LOGIN,
    NAME,
    GnmiQuestion,
    RefusedError,
    get_response,
    gnmi_switch,
    ietf,
    leaf_updates,
    subscribe_response,
    sync_response,
)
from waiting import HUNG_SECONDS

from roce_exporter.net import NetError, gnmi_messages
from roce_exporter.net.gnmi_messages import Leaf, path_of
from roce_exporter.net.grpc import grpc
from roce_exporter.net.login import Login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches import gnmi
from roce_exporter.switches.gnmi import AbsentError, GnmiClient, gnmi_fault
from roce_exporter.switches.readings import ProbeRequest
from roce_exporter.switches.systems.openconfig import requests as openconfig

QUEUES = "COUNTERS/Ethernet*/Queues"
PFC = "interfaces/interface[name=*]/ethernet/pfc"
LEAF = "interfaces/interface[name=Ethernet1/1]/ethernet/pfc/priorities/priority[index=3]/state/in-frames"
NOW = dt.datetime.now(dt.UTC)
PAST = {"not_before": NOW - dt.timedelta(days=9), "not_after": NOW - dt.timedelta(days=1)}


def answers(asked: GnmiQuestion) -> Any:
    if asked.method == "Get":
        return get_response(
            (path_of(asked.paths[0]), ietf({"Ethernet68:3": {"SAI_QUEUE_STAT_PACKETS": "7"}}))
        )
    return [subscribe_response(*leaf_updates({LEAF: 4711})), sync_response()]


async def hang(asked: GnmiQuestion) -> Any:
    await asyncio.Event().wait()


async def get(visit: ProbeRequest) -> tuple[Leaf, ...]:
    async with GnmiClient(visit) as client:
        return await client.get("queues", "COUNTERS_DB", (QUEUES,))


async def once(visit: ProbeRequest) -> tuple[Leaf, ...]:
    async with GnmiClient(visit) as client:
        return await client.once("pfc", (PFC,))


async def fault(request: Any, visit: ProbeRequest) -> str:
    with pytest.raises(NetError, match=r"^[^\n]+$") as caught:
        await request(visit)
    assert LOGIN.password not in str(caught.value)
    return str(caught.value)


def at_port(visit: ProbeRequest, port: int) -> ProbeRequest:
    ports = {"grpc": port, "grpc+insecure": port}
    return replace(visit, target=replace(visit.target, ports=ports))


async def test_get_over_tls_with_credentials_in_the_metadata(tmp_path: Path) -> None:
    async with gnmi_switch(answers, tmp_path) as switch:
        leaves = await get(switch.visit())
    assert leaves == (Leaf(path_of(QUEUES), {"Ethernet68:3": {"SAI_QUEUE_STAT_PACKETS": "7"}}),)
    assert [(asked.method, asked.target, asked.paths) for asked in switch.asked] == [
        ("Get", "COUNTERS_DB", (QUEUES,))
    ]
    assert switch.asked[0].metadata["password"] == LOGIN.password
    assert switch.asked[0].metadata["user-agent"].startswith("roce-exporter/")


def test_the_client_has_three_methods_and_no_other_path_of_a_service() -> None:
    source = inspect.getsource(gnmi)
    assert {"Get", "Subscribe"} == {part.split('"')[0] for part in source.split("/gnmi.gNMI/")[1:]}
    public = {name for name in vars(GnmiClient) if not name.startswith("_")}
    assert public == {"get", "once", "stream"}
    assert source.count("channel.unary_stream(GET)") == source.count("channel.stream_stream(SUBSCRIBE)") == 1
    assert source.count("_unary(") + source.count("_stream(") == 2


async def test_without_tls_nothing_secret_is_sent(tmp_path: Path) -> None:
    async with gnmi_switch(answers, tmp_path, login=None, plain=True) as switch:
        line = await fault(get, switch.visit(scheme="grpc+insecure"))
        assert line == "basic_auth is not sent without TLS: use grpc:// instead of grpc+insecure://"
        assert not switch.asked
        assert await get(switch.visit(scheme="grpc+insecure", login=Login()))
    assert "password" not in switch.asked[0].metadata


async def test_a_proxy_in_the_environment_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with gnmi_switch(answers, tmp_path) as switch:
        assert await get(switch.visit())


async def test_the_resolved_address_is_used_and_the_name_verified(tmp_path: Path) -> None:
    """The name is of a domain that does not exist; it is only compared with the certificate."""
    async with gnmi_switch(answers, tmp_path) as switch:
        other = switch.visit(server_name="other.invalid")
        line = await fault(get, other)
        assert line.endswith(
            "the switch's certificate has another name: set tls: server_name to a name in the certificate"
        )
        named = TlsFiles(ca_file=switch.ca_file, server_name=NAME)
        assert await get(switch.visit(server_name="other.invalid", tls=named))


@pytest.mark.parametrize("names", [(NAME,), ("*.example.com",), ("127.0.0.1",)])
async def test_skipping_verification_accepts_any_authority_and_name(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    skip = TlsFiles(insecure_skip_verify=True)
    async with gnmi_switch(answers, tmp_path, names=names) as switch:
        assert await get(switch.visit(server_name="other.invalid", tls=skip))


async def test_an_expired_certificate_is_refused_even_without_verification(tmp_path: Path) -> None:
    async with gnmi_switch(answers, tmp_path, **PAST) as switch:
        line = await fault(get, switch.visit())
        ended = f"renew it, or correct the clock; it was valid until {PAST['not_after']:%Y-%m-%d}"
        assert line.endswith(f"the switch's certificate has expired: {ended}")
        line = await fault(get, switch.visit(tls=TlsFiles(insecure_skip_verify=True)))
        assert line.endswith(f"certificate has expired; {ended}")


async def test_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    async with gnmi_switch(answers, tmp_path) as switch:
        line = await fault(get, switch.visit(tls=TlsFiles()))
    assert line.endswith("is refused: set tls: ca_file to the authority that signed it")
    assert not switch.asked


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (
            {"ca_file": Path("/nonexistent")},
            "tls: ca_file /nonexistent cannot be read: No such file or directory",
        ),
        ({"ca_file": Path(__file__)}, f"tls: ca_file {__file__} is not a PEM file of certificates"),
    ],
)
async def test_files_that_cannot_be_used(tmp_path: Path, files: dict[str, Path], line: str) -> None:
    async with gnmi_switch(answers, tmp_path) as switch:
        assert await fault(get, switch.visit(tls=TlsFiles(**files))) == line


async def test_a_wrong_password_is_sent_once_per_visit_and_never_shown(tmp_path: Path) -> None:
    """The server repeats the password in its refusal."""
    wrong = Login("reader", "wrong-but-secret")
    async with gnmi_switch(answers, tmp_path) as switch, GnmiClient(switch.visit(login=wrong)) as client:
        requests = (
            client.get("queues", "COUNTERS_DB", (QUEUES,)),
            client.once("pfc", (PFC,)),
            client.once("x", (PFC,)),
        )
        found = await asyncio.gather(*requests, return_exceptions=True)
    assert len(switch.asked) == 1
    assert all(isinstance(one, NetError) for one in found)
    assert all(
        "UNAUTHENTICATED: the switch refuses the user or the password: check basic_auth" in str(one)
        for one in found
    )
    assert not any(wrong.password in str(one) for one in found)


@pytest.mark.parametrize("login", [Login("us\ner", "x"), Login("user", "pass\u00e9")])
async def test_credentials_that_http_cannot_carry(tmp_path: Path, login: Login) -> None:
    async with gnmi_switch(answers, tmp_path) as switch:
        line = await fault(get, switch.visit(login=login))
    assert line == "basic_auth: gNMI can carry only printable ASCII characters in user and password"


async def test_a_switch_that_never_answers_ends_with_the_visit(tmp_path: Path) -> None:
    async with gnmi_switch(hang, tmp_path) as switch:
        for request in (get, once):
            line = await fault(request, switch.visit(seconds=0.3))
            assert line.endswith(
                ": no answer by the deadline: raise the timeout of the target, or query it less often"
            )


async def test_one_request_that_hangs_does_not_cost_the_others(tmp_path: Path) -> None:
    """The first one hangs, which the others wait for only a part of their time."""

    async def answer(asked: GnmiQuestion) -> Any:
        if asked.method != "Get":
            return answers(asked)
        pass_time(15.0)
        return await hang(asked)

    async def works(client: GnmiClient) -> tuple[Leaf, ...]:
        leaves = await client.once("pfc", (PFC,))
        pass_time(60.0)
        return leaves

    async with gnmi_switch(answer, tmp_path) as switch, GnmiClient(switch.visit(seconds=60)) as client:
        stuck, found = await asyncio.gather(
            client.get("queues", "COUNTERS_DB", (QUEUES,)), works(client), return_exceptions=True
        )
    assert "no answer by the deadline" in str(stuck)
    assert found == (Leaf(path_of(LEAF), 4711),)


@pytest.mark.parametrize("scheme", ["grpc", "grpc+insecure"])
@pytest.mark.parametrize("skip", [False, True])
async def test_a_port_that_accepts_and_is_silent(tmp_path: Path, scheme: str, skip: bool) -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        pass_time(HUNG_SECONDS)

    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with gnmi_switch(answers, tmp_path) as switch:
        tls = TlsFiles(ca_file=switch.ca_file, insecure_skip_verify=skip)
        line = await fault(get, at_port(switch.visit(scheme=scheme, login=Login(), tls=tls), port))
    assert "no answer by the deadline" in line
    server.close()
    for writer in writers:
        writer.close()


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield subscribe_response(*leaf_updates({LEAF: 1, f"{LEAF}-x": 2}))


@pytest.mark.parametrize(
    ("where", "name", "limit", "words"),
    [
        (gnmi_messages, "MOST_VALUES", 1000, "the reply has more than 1,000 values"),
        (gnmi, "REPLY_BYTES", 100_000, "the replies of the round are larger than "),
    ],
)
async def test_a_reply_that_never_ends_is_cut(  # noqa: PLR0917 - a row of the table
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str, limit: int, words: str
) -> None:
    monkeypatch.setattr(where, name, limit)
    async with gnmi_switch(lambda asked: endless(), tmp_path) as switch:
        assert (await fault(once, switch.visit())).startswith(words)


async def test_a_message_that_is_too_large_is_a_fault(tmp_path: Path) -> None:
    large = get_response((path_of("x"), {"json_ietf_val": b" " * (9 << 20)}))
    async with gnmi_switch(lambda asked: large, tmp_path) as switch:
        assert (await fault(get, switch.visit())).endswith(": the reply is larger than 6 MiB")


async def test_messages_are_received_in_turn_and_a_switch_that_has_not_begun_to_reply_keeps_none_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message that is received takes memory: they must not pile up until they are decoded."""
    decode = GnmiClient._decode

    async def decoded(client: GnmiClient, *reply: Any) -> bool:
        assert client._receiving.locked()
        return await decode(client, *reply)

    monkeypatch.setattr(gnmi, "RECEIVED_AT_ONCE", 1)
    monkeypatch.setattr(GnmiClient, "_decode", decoded)

    def answer(asked: GnmiQuestion) -> Any:
        return hang(asked) if asked.paths == ("hangs",) else answers(asked)

    async with gnmi_switch(answer, tmp_path) as switch:
        visit = switch.visit()
        visit.gate.is_accepted = True  # otherwise the first request goes alone
        async with GnmiClient(visit) as client:
            stuck = [asyncio.create_task(client.get("x", "", ("hangs",))) for _ in range(2)]
            asked = [client.get("queues", "COUNTERS_DB", (QUEUES,)) for _ in range(2)]
            asked += [client.once("pfc", (PFC,)) for _ in range(2)]
            found = await asyncio.gather(*asked)
            assert not any(task.done() for task in stuck)
            for task in stuck:
                task.cancel()
            await asyncio.wait(stuck)
    assert all(found)


def test_what_the_debug_page_does_not_show_is_not_made_into_text() -> None:
    class Late:
        def __str__(self) -> str:
            raise AssertionError("this takes time on the event loop")

    leaves: Any = [((), "x" * gnmi.EXCHANGE_CHARACTERS), ((), Late())]
    assert len(gnmi.leaves_text(leaves)) == gnmi.EXCHANGE_CHARACTERS


async def test_the_values_of_all_replies_of_a_round_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gnmi, "ROUND_VALUES", 70)
    reply = get_response((path_of("x"), {"json_ietf_val": json.dumps([1] * 20).encode()}))
    async with gnmi_switch(lambda asked: reply, tmp_path) as switch, GnmiClient(switch.visit()) as client:
        found = [client.get("port_counters", "COUNTERS_DB", ("x",)) for _ in range(4)]
        assert [len(await found.pop()) for _ in range(2)] == [1, 1]
        with pytest.raises(NetError, match="of the round have more than 70 values"):
            await asyncio.gather(*found)


async def test_a_subscription_that_ends_early_is_a_fault(tmp_path: Path) -> None:
    early = [subscribe_response(*leaf_updates({LEAF: 1}))]
    async with gnmi_switch(lambda asked: early, tmp_path) as switch:
        line = await fault(once, switch.visit())
    assert line == "the switch ended the subscription before it had sent everything"


async def test_what_is_no_message_is_a_fault(tmp_path: Path) -> None:
    async with gnmi_switch(
        lambda asked: b"<html>" if asked.method == "Get" else [b"<html>"], tmp_path
    ) as switch:
        for request in (get, once):
            assert (
                await fault(request, switch.visit())
                == "the reply is cut off, or is no message of gRPC: check the port"
            )


@pytest.mark.parametrize("request_of", [get, once])
async def test_what_the_switch_does_not_have_is_absent(tmp_path: Path, request_of: Any) -> None:
    def refuse(asked: GnmiQuestion) -> Any:
        raise RefusedError(grpc.StatusCode.NOT_FOUND, "no \x1b[31mtable\n")

    async with gnmi_switch(refuse, tmp_path) as switch:
        with pytest.raises(
            AbsentError, match=r"NOT_FOUND: the switch does not have this path \(no \[31mtable\)$"
        ):
            await request_of(switch.visit())


async def answer_in_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A web server that gets what is no request, and leaves it to the client to disconnect."""
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
    await reader.read()
    writer.close()


async def test_a_web_server_on_the_port(tmp_path: Path) -> None:
    server = await asyncio.start_server(answer_in_http, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with gnmi_switch(answers, tmp_path) as switch:
        plain = switch.visit(scheme="grpc+insecure", login=Login())
        line = await fault(get, at_port(plain, port))
        assert line.endswith(
            "the port does not speak gRPC: correct the port, or write grpc:// if it needs TLS"
        )
        line = await fault(get, at_port(switch.visit(), port))
        assert "the port does not speak TLS: correct the port" in line
    server.close()


async def test_a_switch_with_tls_alone_and_one_that_is_away(tmp_path: Path) -> None:
    async with gnmi_switch(answers, tmp_path) as switch:
        plain = switch.visit(scheme="grpc+insecure", login=Login())
        assert (await fault(get, plain)).endswith(" closed the connection")
        visit = switch.visit()
    assert "refuses connections: check the port" in await fault(get, visit)


@pytest.mark.parametrize(
    ("code", "details", "line"),
    [
        ("RESOURCE_EXHAUSTED", "too many connections", "RESOURCE_EXHAUSTED: too many connections"),
        ("UNAVAILABLE", "something new", "UNAVAILABLE: something new"),
        (
            "INVALID_ARGUMENT",
            "",
            "INVALID_ARGUMENT: the switch does not understand the path or the encoding: check its version",
        ),
        ("UNKNOWN", "Stream removed", "the port does not answer in gRPC: correct the port (Stream removed)"),
        ("INTERNAL", "RST_STREAM", "the port does not answer in gRPC: correct the port (RST_STREAM)"),
        ("CANCELLED", "http status", "the port does not answer in gRPC: correct the port (http status)"),
        ("INTERNAL", "a\nb" + "x" * 999, "INTERNAL: a b" + "x" * 253),
    ],
)
def test_other_failures(code: str, details: str, line: str) -> None:
    assert gnmi_fault(code, details) == line


async def test_the_debug_page_gets_queries_and_replies_without_credentials(tmp_path: Path) -> None:
    def echo(asked: GnmiQuestion) -> bytes:
        return get_response((path_of("x"), ietf({"said": asked.metadata["password"]})))

    async with gnmi_switch(echo, tmp_path) as switch:
        for record in (True, False):
            async with GnmiClient(switch.visit(record=record)) as client:
                await client.get("queues", "COUNTERS_DB", (QUEUES,))
            logged = [(one.source, one.query, one.reply) for one in client.logged]
            assert logged == [("queues", f"Get COUNTERS_DB {QUEUES}", "x: {'said': '***'}")] * record


async def test_a_cancelled_visit_ends_its_requests(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def wait(asked: GnmiQuestion) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    begun = asyncio.Event()
    async with gnmi_switch(wait, tmp_path) as switch:
        task = asyncio.create_task(once(switch.visit()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), HUNG_SECONDS)


async def test_the_channel_is_closed_after_the_visit_and_after_a_fault(tmp_path: Path) -> None:
    async with gnmi_switch(answers, tmp_path) as switch:
        for login in (LOGIN, Login("reader", "wrong-but-secret")):
            async with GnmiClient(switch.visit(login=login)) as client:
                await asyncio.gather(client.get("queues", "COUNTERS_DB", (QUEUES,)), return_exceptions=True)
                channel = client._channel
                assert channel
                assert channel.get_state() is grpc.ChannelConnectivity.READY
            assert channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


@pytest.mark.parametrize(
    ("code", "is_fault"),
    [("NOT_FOUND", False), ("INVALID_ARGUMENT", False), ("UNIMPLEMENTED", False), ("INTERNAL", True)],
)
async def test_a_switch_need_not_know_the_models_of_other_vendors(
    tmp_path: Path, code: str, is_fault: bool
) -> None:
    def answer(asked: GnmiQuestion) -> list[bytes]:
        if any("pfc" in path for path in asked.paths):
            raise RefusedError(grpc.StatusCode[code], "unknown")
        return [subscribe_response(*leaf_updates({LEAF: 1})), sync_response()]

    async with gnmi_switch(answer, tmp_path) as switch:
        reply = await openconfig.query(switch.visit("openconfig"))
        assert set(reply.replies) == {*openconfig.PATHS} - {*openconfig.VENDORS}
        assert set(reply.faults) == ({*openconfig.VENDORS} if is_fault else set())
        assert len(switch.asked) == len(openconfig.PATHS)
