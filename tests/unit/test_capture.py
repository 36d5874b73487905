"""A captured host replays to the same series, except for scrubbed labels; nothing that identifies it remains."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import posixpath
import re
import subprocess
import sys
import tarfile
import time
from typing import TYPE_CHECKING

import pytest
from observed import exposition
from recorded import HOSTS, files, recording

from roce_exporter.owner_model import ObjectKind
from roce_exporter.recording.capture import CaptureError, capture
from roce_exporter.recording.recorded import RecordedKernel, load_recording
from roce_exporter.recording.scrub import Scrubber

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.model import RdmaDevice
    from roce_exporter.recording.recorded_objects import HeldObjects

SMALL = recording("audit-bnxt")

SCRUBBED = re.compile(
    r'(node_guid|address|mac|hostname|user|owner|pod_uid|container_id|slurm_job|peer)="[^"]*"'
)


def series(kernel: RecordedKernel) -> list[str]:
    """Every series, of owners as well, with `x` in place of what is scrubbed."""
    text = asyncio.run(exposition(kernel)).decode()
    return sorted(SCRUBBED.sub(r'\1="x"', line) for line in text.splitlines())


@pytest.mark.parametrize("suffix", ["", ".tar.gz", ".txt"])
@pytest.mark.parametrize("host", [host for host in HOSTS if host != "sick"])
def test_a_captured_host_replays_to_the_same_series(tmp_path: Path, host: str, suffix: str) -> None:
    output = tmp_path / f"captured{suffix}"
    asyncio.run(capture(load_recording(recording(host)), str(output), 1, 1.0))
    assert series(load_recording(str(output))) == series(load_recording(recording(host)))


def test_moments_are_captured_in_turn(tmp_path: Path) -> None:
    source = load_recording(recording("moving"))
    asyncio.run(capture(source, str(tmp_path / "c"), 3, 0.001))
    assert sorted(place.name for place in (tmp_path / "c").iterdir()) == ["0", "1", "2"]
    first, again = load_recording(str(tmp_path / "c")), load_recording(recording("moving"))
    for _ in range(3):
        assert series(first) == series(again)


def test_no_address_and_no_guid_of_the_host_is_left(tmp_path: Path) -> None:
    secrets = {
        word
        for path, text in files("mlx5-pair").items()
        if posixpath.basename(path) in {"node_guid", "sys_image_guid"} | {str(n) for n in range(256)}
        for word in re.findall(r"[0-9a-f:]{19,}", text)
        if set(word) != {"0", ":"}
    }
    assert secrets
    output = tmp_path / "c.tar.gz"
    asyncio.run(capture(load_recording(recording("mlx5-pair")), str(output), 1, 1.0))
    with tarfile.open(output) as archive:
        text = "".join(archive.extractfile(member).read().decode() for member in archive if member.isreg())
    assert not [word for word in secrets if word in text]


def test_mac_addresses_and_the_host_name_are_replaced(tmp_path: Path) -> None:
    """The addresses of a LAG's members stay different, and the domain goes, too."""
    output = tmp_path / "c"
    asyncio.run(capture(load_recording(recording("mlx5-lag")), str(output), 1, 1.0))
    assert [(output / f"ethtool/ens2f{n}np{n}.permaddr").read_text() for n in range(2)] == [
        "Permanent address: 02:00:00:00:00:00\n",
        "Permanent address: 02:00:00:00:00:01\n",
    ]
    assert (output / "proc/sys/kernel/hostname").read_text() == "host-001\n"
    text = "".join(place.read_text() for place in output.rglob("*") if place.is_file())
    assert "gpu-042" not in text
    assert "02:00:5e" not in text


def captured(tmp_path: Path, host: str) -> Path:
    output = tmp_path / host
    asyncio.run(capture(load_recording(recording(host)), str(output), 1, 1.0))
    return output


def test_names_of_owners_are_replaced_and_their_commands_kept(tmp_path: Path) -> None:
    pods, slurm, storage = (captured(tmp_path, host) for host in ("mlx5-lag", "mlx5-7.3", "ionic"))
    assert (pods / "proc/20481/cgroup").read_text() == (
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod00000000_0000_4000_8000_000000000001.slice"
        f"/cri-containerd-000000000001{'0' * 52}.scope\n"
    )
    assert (pods / "proc/20481/comm").read_text() == "python3\n"
    assert (slurm / "proc/7712/cgroup").read_text() == (
        "0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n"
    )
    assert "hpc17" not in (slurm / "etc/passwd").read_text()
    assert "user1:x:60001:60001:" in (slurm / "etc/passwd").read_text()
    peers = (storage / "rdma/resource-cm_id.json").read_text()
    assert "198.51.100." not in peers
    assert "198.18.0." in peers
    text = "".join(place.read_text() for place in tmp_path.rglob("*") if place.is_file())
    assert not [
        name for name in ("3b0f6d1e", "9f2c41d07be6", "98431", "hpc17", "2001:db8:44") if name in text
    ]


def test_keys_of_memory_regions_are_never_written(tmp_path: Path) -> None:
    """A root user's `rdma` prints them."""
    source = tmp_path / "source" / "rdma"
    source.mkdir(parents=True)
    (source / "dev.json").write_text('[{"ifindex":0,"ifname":"rxe0"}]')
    (source / "resource-mr.json").write_text(
        '[{"ifname":"rxe0","mrlen":4096,"rkey":"0x1d8c","lkey":"0x1d8d","iova":"0x7f00","pid":7,"comm":"a"}]'
    )
    asyncio.run(capture(load_recording(str(source.parent)), str(tmp_path / "c"), 1, 1.0))
    assert json.loads((tmp_path / "c/rdma/resource-mr.json").read_text()) == [
        {"ifindex": 0, "ifname": "rxe0", "mrlen": 4096, "pid": 7}
    ]


def test_a_list_of_objects_that_fails_is_left_out_and_the_rest_is_captured(tmp_path: Path) -> None:
    class Failing(RecordedKernel):
        def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> HeldObjects:
            if kind is ObjectKind.QUEUE_PAIR:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().open_objects(device, kind)

    whole = load_recording(recording("mlx5-lag"))
    asyncio.run(capture(Failing(whole.moments), str(tmp_path / "c"), 1, 1.0))
    found = {place.name for place in (tmp_path / "c/rdma").iterdir()}
    assert "resource-qp.json" not in found
    assert {"resource-mr.json", "resource-cq.json", "resource-ctx.json", "statistic-qp.json"} <= found


def test_an_existing_output_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="exists already; choose another"):
        asyncio.run(capture(load_recording(SMALL), str(tmp_path), 1, 1.0))


def test_an_output_that_cannot_be_written_is_named() -> None:
    with pytest.raises(CaptureError, match=r"/no/such/place\.tar\.gz: No such file or directory"):
        asyncio.run(capture(load_recording(SMALL), "/no/such/place.tar.gz", 1, 1.0))


def test_a_device_that_hangs_is_left_out_and_the_rest_is_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(RecordedKernel):
        def link(self, path: str) -> str:
            if "mlx5_0" in path:
                time.sleep(60)
            return super().link(path)

    monkeypatch.setattr("roce_exporter.recording.capture.PATIENCE", 0.2)
    whole = load_recording(recording("gpu16"))
    asyncio.run(capture(Hanging(whole.moments), str(tmp_path / "c"), 1, 1.0))
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

    monkeypatch.setattr("roce_exporter.recording.written.aiofiles.open", full)
    for output in (tmp_path / "c", tmp_path / "c.tgz"):
        with pytest.raises(CaptureError, match="No space left on device; choose another place with --output"):
            asyncio.run(capture(load_recording(SMALL), str(output), 1, 1.0))


def test_only_capture_and_the_web_config_file_load_aiofiles() -> None:
    """It serves nothing on the scrape path, so the daemon without a web config file does not load it."""
    code = "import sys, roce_exporter.cli.entry, roce_exporter.cli.serve; sys.exit('aiofiles' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
