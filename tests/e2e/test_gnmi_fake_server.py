"""EOS's module against a gNMI server that is not ours: `fake_server` of openconfig/gnmi, in Go, over TLS with client certificates.

It answers a subscription ONCE with the messages of its configuration file, whatever the path, so each source gets all leaves.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
import trustme
from ports import free_port
from recorded import files

from roce_exporter.switches.doors.gnmi_paths import path_of
from roce_exporter.switches.module import Visit
from roce_exporter.switches.modules.eos import COMMANDS, MODULE, PATHS
from roce_exporter.switches.targets import Login, Route, SwitchTarget, TlsFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAKE_SERVER = shutil.which("fake_server")
NAME = "leaf2.example.com"

pytestmark = pytest.mark.skipif(
    FAKE_SERVER is None,
    reason="fake_server is missing: go install github.com/openconfig/gnmi/testing/fake/gnmi/cmd/fake_server@v0.14.1",
)


def quoted(text: str) -> str:
    return json.dumps(text)


def update_text(path: str, value: object) -> str:
    """An update in the text format of protobuf."""
    elements = []
    for name, keys in path_of(path):
        pairs = "".join(f" key: <key: {quoted(key)} value: {quoted(text)}>" for key, text in keys)
        elements.append(f"elem: <name: {quoted(name)}{pairs}>")
    kind = "bool_val" if isinstance(value, bool) else "uint_val" if isinstance(value, int) else "string_val"
    shown = quoted(value) if isinstance(value, str) else str(value).lower()
    return f"update: <path: <{' '.join(elements)}> val: <{kind}: {shown}>>"


def configuration() -> str:
    """All recorded leaves as one message each source, and the end of the subscription."""
    messages = []
    for source in PATHS:
        document = json.loads(files("switch-eos")[f"{source}.json"])
        updates = "\n".join(update_text(path, value) for path, value in document.items())
        messages.append(f"responses: <update: <timestamp: 1 {updates}>>")
    return f'target: "leaf2"\nclient_type: GRPC_GNMI\nfixed: <{" ".join(messages)} responses: <sync_response: true>>\n'


@pytest.fixture
def fake_server(tmp_path: Path) -> Iterator[tuple[int, TlsFiles]]:
    """The port of a fake_server that requires a client certificate, and the files to reach it."""
    authority, port = trustme.CA(), free_port()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    for name, issued in (
        ("server", authority.issue_cert(NAME)),
        ("client", authority.issue_cert("exporter.example.com")),
    ):
        issued.private_key_pem.write_to_path(str(tmp_path / f"{name}.key"))
        issued.cert_chain_pems[0].write_to_path(str(tmp_path / f"{name}.pem"))
    (tmp_path / "fake.textproto").write_text(configuration())
    flags = {
        "config": "fake.textproto",
        "port": port,
        "ca_crt": "ca.pem",
        "server_crt": "server.pem",
        "server_key": "server.key",
    }
    command = [
        str(FAKE_SERVER),
        "-text",
        "-logtostderr",
        *(f"-{flag}={value}" for flag, value in flags.items()),
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        for line in server.stderr:
            if "Starting RPC server" in line:
                break
        else:
            pytest.fail("fake_server did not start")
        yield port, TlsFiles(tmp_path / "ca.pem", tmp_path / "client.pem", tmp_path / "client.key")
        server.terminate()


def visit(port: int, tls: TlsFiles) -> Visit:
    with socket.socket() as nothing:
        nothing.bind(("127.0.0.1", 0))
        refused = nothing.getsockname()[1]
    target = SwitchTarget("leaf2", "eos", "grpc", NAME, {"grpc": port, "https": refused}, tls=tls)
    deadline = asyncio.get_running_loop().time() + 20
    return Visit(target, Route("127.0.0.1", NAME), Login(), deadline)


async def test_eos_over_a_gnmi_server_in_go(fake_server: tuple[int, TlsFiles]) -> None:
    at = visit(*fake_server)
    replies = await MODULE.query(at)
    assert set(replies.faults) == set(COMMANDS), "eAPI is away, and the paths of gNMI answer"
    assert set(replies.replies) == set(PATHS)
    readings = MODULE.read(replies, at.target)
    values = {
        (reading.labels, name): value
        for reading in readings.readings
        for name, value in reading.values.items()
    }
    first = ("port", "Ethernet1/1")
    assert values[(first, ("priority", "3")), "pfc-on-total-rx-time"] == 1_500_000_000
    assert values[(first, ("queue", "3")), "stuck-count"] == 2
    assert values[(first, ("queue", "3")), "enable-ecn"] == 1
    assert values[(("port", "Ethernet3/1"), ("queue", "4")), "stuck-count"] == 0
    assert readings.name == "leaf2"
    assert len([fact for fact in readings.facts if "neighbor" in fact.labels]) == 2


async def test_without_a_client_certificate_the_server_refuses(fake_server: tuple[int, TlsFiles]) -> None:
    port, files = fake_server
    replies = await MODULE.query(visit(port, TlsFiles(files.ca_file)))
    assert not replies.replies
    assert all("set tls: cert_file and key_file" in replies.faults[source] for source in PATHS), (
        replies.faults
    )
