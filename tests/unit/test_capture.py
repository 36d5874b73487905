"""A captured host replays to the same series, except for scrubbed labels; nothing that identifies it remains."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.recording.capture import CaptureError, capture
from roce_exporter.recording.recorded import RecordedKernel, load_recording
from roce_exporter.recording.scrub import Scrubber

RECORDINGS = sorted(
    place
    for place in (Path(__file__).parents[1] / "recordings").iterdir()
    if place.is_dir() and place.name != "sick" and not place.name.startswith("switch-")
)

SCRUBBED = re.compile(r'(node_guid|address|mac|hostname)="[^"]*"')


def series(kernel: RecordedKernel) -> list[str]:
    async def observe() -> str:
        exporter = Exporter(Collector(kernel, Settings(), lambda: 0.0))
        return exporter.render(await exporter.observe(20.0), Format.TEXT).decode()

    return [SCRUBBED.sub(r'\1="x"', line) for line in asyncio.run(observe()).splitlines()]


@pytest.mark.parametrize("suffix", ["", ".tar.gz"])
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda place: place.name)
def test_a_captured_host_replays_to_the_same_series(tmp_path: Path, recording: Path, suffix: str) -> None:
    output = tmp_path / f"captured{suffix}"
    asyncio.run(capture(load_recording(str(recording)), str(output), 1, 1.0))
    assert series(load_recording(str(output))) == series(load_recording(str(recording)))


def test_moments_are_captured_in_turn(tmp_path: Path) -> None:
    source = load_recording(str(RECORDINGS[0].parent / "moving"))
    asyncio.run(capture(source, str(tmp_path / "c"), 3, 0.001))
    assert sorted(place.name for place in (tmp_path / "c").iterdir()) == ["0", "1", "2"]
    first, again = load_recording(str(tmp_path / "c")), load_recording(str(RECORDINGS[0].parent / "moving"))
    for _ in range(3):
        assert series(first) == series(again)


def test_no_address_and_no_guid_of_the_host_is_left(tmp_path: Path) -> None:
    source = RECORDINGS[0].parent / "mlx5-pair"
    secrets = {
        word
        for place in source.rglob("*")
        if place.is_file() and place.name in {"node_guid", "sys_image_guid"} | {str(n) for n in range(256)}
        for word in re.findall(r"[0-9a-f:]{19,}", place.read_text())
        if set(word) != {"0", ":"}
    }
    assert secrets
    output = tmp_path / "c.tar.gz"
    asyncio.run(capture(load_recording(str(source)), str(output), 1, 1.0))
    with tarfile.open(output) as archive:
        text = "".join(archive.extractfile(member).read().decode() for member in archive if member.isreg())
    assert not [word for word in secrets if word in text]


def test_mac_addresses_and_the_host_name_are_replaced(tmp_path: Path) -> None:
    """The addresses of a LAG's members stay different, and the domain goes, too."""
    output = tmp_path / "c"
    asyncio.run(capture(load_recording(str(RECORDINGS[0].parent / "mlx5-lag")), str(output), 1, 1.0))
    assert [(output / f"ethtool/ens2f{n}np{n}.permaddr").read_text() for n in range(2)] == [
        "Permanent address: 02:00:00:00:00:00\n",
        "Permanent address: 02:00:00:00:00:01\n",
    ]
    assert (output / "proc/sys/kernel/hostname").read_text() == "host-001\n"
    text = "".join(place.read_text() for place in output.rglob("*") if place.is_file())
    assert "gpu-042" not in text
    assert "02:00:5e" not in text


def test_an_existing_output_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="exists already; choose another"):
        asyncio.run(capture(load_recording(str(RECORDINGS[0])), str(tmp_path), 1, 1.0))


def test_an_output_that_cannot_be_written_is_named() -> None:
    with pytest.raises(CaptureError, match=r"/no/such/place\.tar\.gz: No such file or directory"):
        asyncio.run(capture(load_recording(str(RECORDINGS[0])), "/no/such/place.tar.gz", 1, 1.0))


def test_a_device_that_hangs_is_left_out_and_the_rest_is_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(RecordedKernel):
        def link(self, path: str) -> str:
            if "mlx5_0" in path:
                time.sleep(60)
            return super().link(path)

    monkeypatch.setattr("roce_exporter.recording.capture.PATIENCE", 0.2)
    whole = load_recording(str(RECORDINGS[0].parent / "gpu16"))
    asyncio.run(capture(Hanging(whole._moments), str(tmp_path / "c"), 1, 1.0))
    assert "mlx5_0 is left out: no answer" in caplog.text
    captured = load_recording(str(tmp_path / "c")).entries("class/infiniband")
    assert "mlx5_0" not in captured
    assert len(captured) == len(whole.entries("class/infiniband")) - 1


def test_stand_ins_are_stable_and_unassigned() -> None:
    scrub = Scrubber()
    first = scrub.text("9803:9b03:0012:3456")
    assert first == scrub.text("9803:9b03:0012:3456") != scrub.text("9803:9b03:0012:3457")
    assert scrub.text("0000:0000:0000:0000") == "0000:0000:0000:0000"
    assert scrub.text("mac 98:03:9b:12:34:56 end") == "mac 02:00:00:00:00:00 end"
    assert [scrub.hostname(name) for name in ("a", "b.example.com", "a")] == [
        "host-001",
        "host-002",
        "host-001",
    ]
    assert scrub.gid("10.1.2.3") == "0000:0000:0000:0000:0000:ffff:c612:0001"
    assert scrub.gid("fe80::a00:27ff:fe00:1").startswith("fe80:0000:0000:0000:0200:00ff:fe00:")
    assert scrub.gid("2a00:1450::1").startswith("2001:0db8:")
    assert Scrubber().gid("10.9.9.9") == Scrubber().gid("10.1.2.3")


def test_a_full_disk_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("roce_exporter.recording.capture.aiofiles.open", full)
    for output in (tmp_path / "c", tmp_path / "c.tgz"):
        with pytest.raises(CaptureError, match="No space left on device; choose another place with --output"):
            asyncio.run(capture(load_recording(str(RECORDINGS[0])), str(output), 1, 1.0))


def test_only_capture_and_the_web_config_file_load_aiofiles() -> None:
    """It serves nothing on the scrape path, so the daemon without a web config file does not load it."""
    code = "import sys, roce_exporter.cli.entry, roce_exporter.cli.serve; sys.exit('aiofiles' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
