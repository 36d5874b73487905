"""`roce-exporter wire` from flags to output."""

import asyncio
import json
import signal
import struct
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from wire_frames import ACK, CNP, WRITE, A, B, aeth, bth, capture, frames_of, pcap, roce

from roce_exporter.cli import main
from roce_exporter.cli.serve import wire_section
from roce_exporter.web import Request
from roce_exporter.web.application import Application
from roce_exporter.wire.frames import Frames
from roce_exporter.wire.tally.pair_counts import LosslessMarks
from roce_exporter.wire.wire_session import WireSession

FRAMES = [roce(bth(WRITE, psn=psn), bytes(16)) for psn in range(30)] + [
    roce(bth(CNP), bytes(16), source=B, destination=A)
]


@pytest.fixture
def file(tmp_path) -> str:
    (tmp_path / "wire.pcap").write_bytes(pcap(FRAMES))
    return str(tmp_path / "wire.pcap")


def test_a_file_as_json(file, capsys, monkeypatch) -> None:
    """Where no table is shown meanwhile, a terminal has a sign of life."""
    shown: list[str] = []
    monkeypatch.setattr("roce_exporter.cli.wire.progress", lambda text: shown.append(text) or nullcontext())
    assert main(["wire", file, "--format=json", "--queue-pairs"]) == 0
    assert shown == ["reading packets"]
    document = json.loads(capsys.readouterr().out)
    assert document["packets"] == 31
    assert document["dropped"] is None
    assert document["pairs"][0]["queue_pairs"]["7"]["packets"] == 30


def test_a_file_as_a_table(file, capsys) -> None:
    assert main(["wire", "--top=1", file]) == 0
    assert "10.0.0.1 congests 10.0.0.2: 1 CNP" in capsys.readouterr().out


def test_every_packet_with_every_header(tmp_path, capsys) -> None:
    nak = roce(bth(ACK, psn=3), aeth(0x62), source=B, destination=A, tags=[3 << 13 | 100])
    write = roce(bth(WRITE, psn=4), struct.pack(">QII", 1, 2, 8) + bytes(8))
    (tmp_path / "a.pcap").write_bytes(pcap([nak, bytes(60), write]))
    assert main(["wire", str(tmp_path / "a.pcap"), "--format=packets"]) == 0
    refused, wrote = map(json.loads, capsys.readouterr().out.splitlines())
    assert refused["aeth"] == {"kind": 3, "value": 2, "msn": 1, "nak": "remote_access_error"}
    assert (refused["vlan"], refused["vlan_priority"], refused["icrc_valid"]) == ([100], [3], True)
    assert wrote["reth"] == {"address": 1, "key": 2, "length": 8}
    assert (wrote["operation"], wrote["transport"], wrote["bth"]["psn"]) == ("write only", "RC", 4)
    assert refused["time"] == 1.8e9


def test_the_lossless_priorities_are_flags(file, capsys) -> None:
    assert main(["wire", file, "--format=json", "--lossless.dscp=0-3, 46"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["outside_lossless"] == 30


def test_a_damaged_file_is_shown_up_to_the_damage(tmp_path, capsys) -> None:
    (tmp_path / "cut.pcap").write_bytes(pcap(FRAMES)[:-5])
    assert main(["wire", str(tmp_path / "cut.pcap"), "--format=json"]) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["packets"] == 30
    assert output.err.count("\n") == 1
    assert "cut.pcap: ends within a record" in output.err


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ([], "wire needs one input: a FILE, - for standard input, or --wire.interface=DEV"),
        (["a.pcap", "--wire.interface=eth0"], "a.pcap: neither an address nor a queue pair such as qp=0x12"),
        (["a.pcap", "--format=packets", "--duration=3"], "--format=packets prints the packets of a file"),
        (["a.pcap", "--top=0"], "'0' is not a whole number from 1 to 1000"),
        (["a.pcap", "--duration=0"], "'0' is not a number of seconds"),
        (["a.pcap", "--lossless.dscp=24-99"], "'24-99' is not a list of numbers and ranges from 0 to 63"),
        (["a.pcap", "--lossless.priority=9"], "'9' is not a list of numbers and ranges from 0 to 7"),
        (["a.pcap", "--path.sysfs=/sys"], "--path.sysfs"),
    ],
)
def test_flags_that_cannot_be(flags, line, capsys) -> None:
    assert main(["wire", *flags]) == 2
    assert line in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch, file, capsys) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    for name in [
        one for one in sys.modules if one.startswith(("roce_exporter.wire", "roce_exporter.cli.wire"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["wire", file]) == 2
    assert "wire needs the package numpy; install the extra wire" in capsys.readouterr().err


def test_standard_input_and_a_signal() -> None:
    """A stream that does not end: SIGTERM prints what was counted up to then."""
    command = (sys.executable, "-m", "roce_exporter", "wire", "-", "--format=json")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(pcap(FRAMES) + b"\1")
        process.stdin.flush()
        wait_until_signals_are_handled(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stderr is not None
        packets = json.loads(process.stdout.read())["packets"]
        assert packets in (0, 31)  # before the first batch or after it
        assert process.stderr.read() == b""
        assert process.wait() == (0 if packets else 1)


def wait_until_signals_are_handled(pid: int) -> None:
    """Until the process catches SIGTERM."""
    mask = 1 << signal.SIGTERM - 1
    while True:
        status = Path(f"/proc/{pid}/status").read_text()
        if int(status.partition("SigCgt:")[2].split()[0], 16) & mask:
            return


def read_to_the_end(session: WireSession) -> None:
    done = threading.Event()
    session.read(done.set)
    assert done.is_set()


def session_of(content: bytes) -> WireSession:
    session = WireSession(capture(content), LosslessMarks(), 5)
    read_to_the_end(session)
    return session


async def get(session: WireSession, path: str, accept: str = "") -> tuple[int, str]:
    application = Application((wire_section(session),))
    application.ready = True
    response = await application(Request("GET", path, {"accept": accept}, ""))
    return response.status, response.body.decode()


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text;version=1.0.0"])
async def test_metrics_are_a_complete_exposition(accept) -> None:
    status, text = await get(session_of(pcap(FRAMES)), "/metrics", accept)
    assert status == 200
    parse = parse_openmetrics if accept else parse_text
    found = {sample.name: sample.value for family in parse(text) for sample in family.samples}
    assert found["roce_wire_capture_frames_total"] == 31
    assert "roce_wire_capture_dropped_frames_total" not in found  # a file drops nothing, which is not 0 drops
    assert "roce_exporter_build_info" in found


async def test_the_other_paths() -> None:
    session = session_of(pcap(FRAMES))
    status, text = await get(session, "/debug/wire")
    assert (status, json.loads(text)["roce_packets"]) == (200, 31)
    for path in ("/", "/-/healthy", "/-/ready"):
        assert (await get(session, path))[0] == 200
    assert (await get(session, "/nope"))[0] == 404


class LateBlock:
    """A live input whose last block is handed over late."""

    def __init__(self, waits: int) -> None:
        self._waits = waits
        self._ended = False

    def read(self, seconds: float) -> Frames | None:
        assert self._ended
        self._waits -= 1
        return frames_of(FRAMES) if self._waits < 0 else None

    def drops(self) -> tuple[int, int]:
        return len(FRAMES), 0

    def end(self) -> None:
        self._ended = True

    def left(self) -> int:
        return 0 if self._waits < 0 else len(FRAMES)


@pytest.mark.parametrize(("waits", "frames"), [(0, 31), (2, 31), (1_000_000, 0)])
def test_frames_that_the_kernel_holds_at_the_end_are_waited_for(waits, frames) -> None:
    """As long as the kernel says that there are some; but not permanently."""
    session = WireSession(LateBlock(waits), LosslessMarks(), 5)
    session.finish()
    read_to_the_end(session)
    session.check()
    assert session.summary().frames == frames


class Broken:
    """An input with a fault of ours."""

    def read(self, seconds: float) -> None:
        raise ZeroDivisionError

    def drops(self) -> tuple[int, int]:
        return 0, 0

    def end(self) -> None:
        """Nothing to end."""

    def left(self) -> int:
        return 0


def test_a_fault_of_ours_is_raised_in_the_main_thread() -> None:
    session = WireSession(Broken(), LosslessMarks(), 5)
    read_to_the_end(session)
    with pytest.raises(ZeroDivisionError):
        session.check()


def test_a_stopped_session_counts_no_more() -> None:
    session = WireSession(capture(pcap(FRAMES)), LosslessMarks(), 5)
    session.stop()
    read_to_the_end(session)
    assert session.summary().frames == 0


async def test_serve_answers_while_a_stream_is_read_and_ends_with_it() -> None:
    """The end of a stream is an error: a supervisor starts the sniffer and us again."""
    command = (
        sys.executable,
        "-m",
        "roce_exporter",
        "serve",
        "--no-host",
        "--wire.file=-",
        "--web.listen-address=127.0.0.1:0",
    )
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdin
    assert process.stderr
    process.stdin.write(pcap(FRAMES))
    await process.stdin.drain()
    while "listens on" not in (line := (await process.stderr.readline()).decode()):
        assert line
    address = line.partition("listens on ")[2].split()[0].strip('"')
    host, port = address.rsplit(":", 1)
    text = await fetch_until(host, int(port), "roce_wire_capture_frames_total 31")
    assert 'roce_wire_cnps_total{source="10.0.0.2",destination="10.0.0.1"} 1' in text
    process.stdin.close()
    rest = (await process.stderr.read()).decode()
    assert await process.wait() == 1
    assert rest.endswith("roce-exporter: the input has ended\n")


async def fetch_until(host: str, port: int, wanted: str) -> str:
    while True:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        if wanted in text:
            return text
