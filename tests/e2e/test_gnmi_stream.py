"""Streams against a gNMI server that is not ours: openconfig's `fake_server`, with TLS, in a process of its own."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from servers import exporter
from tools import need
from waiting import wait_until

pytestmark = pytest.mark.nightly

SECOND = 10**9
PORT = "et-0/0/0"
STATE = ("interfaces", "interface", "state")


def update(leaf: str, value: str, at: int) -> str:
    """A response of the server, `at` nanoseconds after the first one, in the text form of protobuf."""
    steps = "".join(
        f'elem {{ name: "{name}" '
        + (f'key {{ key: "name" value: "{PORT}" }}' if name == "interface" else "")
        + " } "
        for name in (*STATE, *leaf.split("/"))
    )
    return f"responses {{ update {{ timestamp: {SECOND + at} update {{ path {{ {steps} }} val {{ {value} }} }} }} }}"


def config(*responses: str) -> str:
    return f"""target: "leaf1" client_type: GRPC_GNMI disable_sync: true disable_eof: true enable_delay: true
fixed {{ {" ".join(responses)} }}"""


SYNC = "responses { sync_response: true }"
ALL = (
    update("type", 'string_val: "ethernetCsmacd"', 0),
    update("oper-status", 'string_val: "UP"', 0),
    update("counters/in-octets", "uint_val: 7", 0),
)
ETHERNET = update("mtu", "uint_val: 9000", 0).replace(
    'elem { name: "state"', 'elem { name: "ethernet" } elem { name: "state"'
)
"""Makes it an Ethernet port."""


@contextmanager
def fake_server(folder: Path, *responses: str) -> Iterator[str]:
    """The address of a server that answers each subscription, whatever its paths and mode, with the same responses."""
    program, authority = need("fake_server"), trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "leaf1.example.com")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    (folder / "config").write_text(config(*responses))
    files = (f"--server_crt={folder}/server.pem", f"--server_key={folder}/server.pem")
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            (
                program,
                "--text",
                f"--config={folder}/config",
                "--port=0",
                *files,
                "--allow_no_client_auth",
                "--logtostderr",
            ),
            stderr=log,
        ) as server,
    ):
        try:
            started = re.compile(r"address: \S*?:(\d+)$", re.MULTILINE)
            wait_until(lambda: started.search((folder / "log").read_text()) or server.poll() is not None)
            found = started.search((folder / "log").read_text())
            assert found, (folder / "log").read_text()
            yield f"grpc://127.0.0.1:{found[1]}"
        finally:
            server.kill()


def test_a_probe_shows_what_the_server_sends_by_itself(tmp_path: Path) -> None:
    # Each subscription has the port going down two seconds after everything was sent: a round ends before it, a stream gets it.
    later = (
        update("mtu", "uint_val: 9001", 2 * SECOND),
        update("oper-status", 'string_val: "DOWN"', 2 * SECOND),
    )
    with fake_server(tmp_path, *ALL, ETHERNET, SYNC, *later) as address:
        (tmp_path / "switches.yml").write_text(
            f"targets: {{leaf1: {{module: openconfig, address: '{address}', tls: {{ca_file: ca.pem, server_name: leaf1.example.com}}, "
            "stream: true}}\nlimits: {cache: 0s}\n"
        )
        with exporter(tmp_path, "--no-host", f"--switches.config={tmp_path}/switches.yml") as command:

            def page() -> str:
                return command.get("/probe?target=leaf1").decode()

            assert f'link_up{{device="leaf1",port="{PORT}"}} 1' in page()
            held = wait_until(
                lambda: (f'link_up{{device="leaf1",port="{PORT}"}} 0' in (found := page())) and found
            )
            assert f'link_mtu_bytes{{device="leaf1",port="{PORT}"}} 9001' in held
            assert 'roce_switch_source_up{device="leaf1",source="stream"} 1' in held
            assert f'phy_receive_bytes_total{{device="leaf1",port="{PORT}"}} 7' in held
