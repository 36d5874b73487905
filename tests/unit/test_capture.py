"""A captured host replays to the same series, except for scrubbed labels; nothing that identifies it remains."""

import asyncio
import errno
import ipaddress
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from clock import Clock
from hypothesis import given
from hypothesis import strategies as st
from kernel import Faults, host
from kernel_log_lines import lines
from observed import exposition, observe
from recorded import HOSTS, files, recording
from waiting import HUNG_SECONDS, Gate

from roce_exporter.checks.finding import Status
from roce_exporter.checks.settings import Profile, audit
from roce_exporter.collect.workers import call_in_worker
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.kmsg import LogHiddenError, LogPart
from roce_exporter.host.recorded.capture import CaptureError, capture
from roce_exporter.host.recorded.log_text import MOST_KEPT, PART, RecordedLog, kernel_log, numbered, scrub_log
from roce_exporter.host.recorded.recorded import RecordedKernel, load_recording
from roce_exporter.host.recorded.scrub import Scrubber, SubnetScrubber, scrub_process, scrub_user
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.model.owner import ObjectKind, ProcessFacts
from roce_exporter.owners.identify import parse_cgroups

SOON = (
    "mlx5-lag",
    "mlx5-7.3",
    "mlx5-vf",
    "bnxt",
    "ionic",
    "irdma",
    "mlx4-iwarp",
    "gpu16",
    "audit-rails-right",
)
"""One host of each kind; the others in CI."""

SCRUBBED = re.compile(
    r'(node_guid|address|mac|hostname|user|owner|pod_uid|container_id|slurm_job|peer)="[^"]*"'
)


def of_each_host(hosts: tuple[str, ...] = SOON) -> pytest.MarkDecorator:
    names = [
        name if name in hosts else pytest.param(name, marks=pytest.mark.ci)
        for name in HOSTS
        if name != "sick"
    ]
    return pytest.mark.parametrize("name", names)


def recorded(name: str) -> RecordedKernel:
    return load_recording(recording(name))


def series(kernel: RecordedKernel) -> list[str]:
    """Every series, of owners as well, with `x` in place of what is scrubbed."""
    text = asyncio.run(exposition(kernel)).decode()
    return sorted(SCRUBBED.sub(r'\1="x"', line) for line in text.splitlines())


def captured(kernel: RecordedKernel, output: Path, moments: int = 1) -> Path:
    asyncio.run(capture(kernel, str(output), moments, 0.001))
    return output


@pytest.fixture(scope="module")
def capture_of(tmp_path_factory) -> Callable[[str], Path]:
    """The capture of a recorded host, made once."""
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = captured(recorded(name), tmp_path_factory.mktemp("captures") / name)
        return made[name]

    return of


def text_of(folder: Path) -> str:
    return "".join(place.read_text() for place in folder.rglob("*") if place.is_file())


@of_each_host()
def test_a_captured_host_replays_to_the_same_series(capture_of, name) -> None:
    assert series(load_recording(str(capture_of(name)))) == series(recorded(name))


def test_moments_are_captured_in_turn_and_an_archive_is_the_same(tmp_path) -> None:
    folder = captured(recorded("moving"), tmp_path / "c", 3)
    assert sorted(place.name for place in folder.iterdir()) == ["0", "1", "2"]
    archives = [captured(recorded("moving"), tmp_path / f"c{suffix}", 3) for suffix in (".tar.gz", ".txt")]
    kernels = [load_recording(str(place)) for place in (folder, *archives, recording("moving"))]
    for _ in range(3):
        first, *others = map(series, kernels)
        assert others == [first] * 3


def test_names_addresses_and_owners_are_replaced_and_commands_kept(capture_of) -> None:
    """The addresses of a LAG's members stay different, and the domain of the host's name goes, too."""
    pods, slurm, storage = map(capture_of, ("mlx5-lag", "mlx5-7.3", "ionic"))
    assert [(pods / f"ethtool/ens2f{n}np{n}.permaddr").read_text() for n in range(2)] == [
        "Permanent address: 02:00:00:00:00:00\n",
        "Permanent address: 02:00:00:00:00:01\n",
    ]
    assert (pods / "proc/sys/kernel/hostname").read_text() == "host-001\n"
    assert (pods / "proc/20481/cgroup").read_text() == (
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod00000000_0000_4000_8000_000000000001.slice"
        f"/cri-containerd-000000000001{'0' * 52}.scope\n"
    )
    assert (pods / "proc/20481/comm").read_text() == "python3\n"
    assert (slurm / "proc/7712/cgroup").read_text() == (
        "0::/system.slice/slurmstepd.scope/job_1/step_0/user/task_0\n"
    )
    assert "user1:x:60001:60001:" in (slurm / "etc/passwd").read_text()
    assert '"dst-addr": "2001:db8:' in (storage / "rdma/resource-cm_id.json").read_text()
    secrets = (
        "gpu-042",
        "02:00:5e",
        "3b0f6d1e",
        "9f2c41d07be6",
        "98431",
        "hpc17",
        "2001:db8:44",
        "198.51.100.",
    )
    text = text_of(pods) + text_of(slurm) + text_of(storage)
    assert not [name for name in secrets if name in text]


def test_keys_of_memory_regions_are_never_written(tmp_path) -> None:
    """A root user's `rdma` prints them."""
    region = {"ifname": "rxe0", "mrlen": 4096, "pid": 7}
    keys = {"rkey": "0x1d8c", "lkey": "0x1d8d", "iova": "0x7f00", "comm": "a"}
    device = {"ifindex": 0, "ifname": "rxe0"}
    source = host({"rdma/dev.json": [device], "rdma/resource-mr.json": [region | keys]})
    found = json.loads((captured(source, tmp_path / "c") / "rdma/resource-mr.json").read_text())
    assert found == [device | region]


def test_a_list_of_objects_that_fails_is_left_out_and_the_rest_is_captured(tmp_path) -> None:
    whole = recorded("mlx5-lag")
    listed = whole.open_objects

    def fail(device: object, kind: ObjectKind) -> object:
        if kind is ObjectKind.QUEUE_PAIR:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return listed(device, kind)

    Faults(whole, open_objects=fail)
    found = {place.name for place in (captured(whole, tmp_path / "c") / "rdma").iterdir()}
    assert "resource-qp.json" not in found
    assert {"resource-mr.json", "resource-cq.json", "resource-ctx.json", "statistic-qp.json"} <= found


def test_a_device_that_hangs_is_left_out_and_the_rest_is_captured(tmp_path, monkeypatch, caplog) -> None:
    def call(in_flight, what, work, _):
        return call_in_worker(in_flight, what, work, 0.2 if "mlx5_0" in what else HUNG_SECONDS)

    monkeypatch.setattr("roce_exporter.host.recorded.capture.call_in_worker", call)
    two = {f"sys/class/infiniband/mlx5_{n}/ports/1/state": "4: ACTIVE\n" for n in range(2)}
    whole, gate = host(two), Gate()
    Faults(whole)["class/infiniband/mlx5_0/device"] = gate
    written = asyncio.run(capture(whole, str(tmp_path / "c"), 1, 0.001))
    gate.release()
    assert "mlx5_0 is left out: no answer" in caplog.text
    assert written.missing == ["mlx5_0"]
    assert load_recording(written.file).entries("class/infiniband") == ("mlx5_1",)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("", "exists already; choose another"),
        ("missing/c.tar.gz", r"/missing/c\.tar\.gz: .*/missing is no folder to write to"),
    ],
)
def test_an_output_that_cannot_be_written_is_named(tmp_path, output, text) -> None:
    with pytest.raises(CaptureError, match=text):
        captured(recorded("bnxt"), tmp_path / output)


def test_a_name_that_leads_out_of_the_output_is_refused(tmp_path) -> None:
    """A recording of strangers is captured again, to scrub it."""
    name = "../../../../dev/link"  # below sys/class/infiniband
    row = {"ifindex": 0, "ifname": name, "node_guid": "", "protocol": "roce", "fw": "1"}
    for output in (tmp_path / "c", tmp_path / "c.tar.gz", tmp_path / "c.txt"):
        with pytest.raises(CaptureError, match="leads out of the recording"):
            captured(host({"rdma/dev.json": [row], "dev/link/fw_ver": "1\n"}), output)
        assert not [*tmp_path.iterdir()]


def test_nothing_is_written_into_a_folder_that_appeared_meanwhile(tmp_path) -> None:
    """A capture of many moments takes long; what is then there may be a link of somebody else."""
    output, elsewhere = tmp_path / "c", tmp_path / "elsewhere"
    elsewhere.mkdir()
    kernel = recorded("bnxt")
    begin = kernel.begin

    def exchanged() -> None:
        begin()
        output.symlink_to(elsewhere)

    kernel.begin = exchanged  # type: ignore[method-assign]
    with pytest.raises(CaptureError, match="File exists"):
        captured(kernel, output)
    assert not [*elsewhere.iterdir()]


def test_a_full_disk_is_one_line(monkeypatch, tmp_path) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("roce_exporter.host.recorded.archive.aiofiles.open", full)
    for output in (tmp_path / "c", tmp_path / "c.tgz"):
        with pytest.raises(CaptureError, match="No space left on device; choose another place with --output"):
            captured(recorded("bnxt"), output)


# The kernel log

TAGS = " SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
DOWN = f"6,7,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n{TAGS}"
OF_OTHERS = [
    "6,1,1,-;Linux version 7.3 (secret@build-host)\n",
    "14,8,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n",
    "6,9,1,-;sshd[7]: accepted key of alice\n",
    "6,10,1,-;mlx5_core 0000:3b:00.0 eth0: renamed from eth9\n",
]


class Log:
    """The log of a host with these records."""

    def __init__(self, *records: str) -> None:
        self.left = [one.encode() for one in records]
        self.closed = 0

    def read(self, most: int) -> LogPart:
        part, self.left = self.left[:most], self.left[most:]
        return LogPart(tuple(part), 0)

    def close(self) -> None:
        self.closed += 1


def log_of(log: Log | OSError) -> dict[str, str]:
    kernel = host({"sys/x": ""})
    Faults(
        kernel, hostname="gpu-17", open_kernel_log=log if isinstance(log, OSError) else lambda *, oldest: log
    )
    scrub = Scrubber()
    scrub.hostname(kernel.hostname())
    return {path: scrub_log(text, scrub) for path, text in kernel_log(kernel).items()}


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([OF_OTHERS[0], DOWN, *OF_OTHERS[1:]], DOWN),
        (
            ["6,7,1,-;mlx5_core 0000:3b:00.0 gpu-17-rail: Link down 0c:42:a1:00:11:22\n"],
            "6,7,1,-;mlx5_core 0000:3b:00.0 host-001-rail: Link down 02:00:00:00:00:00\n",
        ),
    ],
)
def test_only_known_messages_of_the_kernel_are_captured_without_addresses(records, text) -> None:
    log = Log(*records)
    assert [*log_of(log).values()] == [text]
    assert log.closed == 1


def test_the_newest_messages_are_kept() -> None:
    records = [f"6,{number},1,-;mlx5_core 0000:3b:00.0 eth0: Link up\n" for number in range(3 * PART)]
    (text,) = log_of(Log(*records)).values()
    assert [number for number, _ in numbered(text.encode())] == [*range(3 * PART - MOST_KEPT, 3 * PART)]


def test_a_host_without_a_log_has_no_file_and_one_that_may_not_be_read_is_an_error() -> None:
    assert log_of(Absent(errno.ENOENT, "no log")) == {}
    with pytest.raises(LogHiddenError):
        log_of(LogHiddenError(errno.EPERM, "not permitted", "/dev/kmsg"))


def test_what_is_captured_replays() -> None:
    """The lines of a simulated host, as its drivers write them."""
    clock = Clock(0.0)
    kernel = simulate("overheating", clock=clock)
    clock.now = 200.0
    (text,) = (scrub_log(found, Scrubber()) for found in kernel_log(kernel).values())
    replayed = RecordedLog(text.encode, oldest=True).read(100)
    assert replayed.records == kernel.open_kernel_log(oldest=True).read(100).records
    assert len(replayed.records) > 4
    assert replayed.thinned
    content = b"garbage\n tag of garbage\n" + DOWN.encode() + b"\n6,8"
    assert list(numbered(content)) == [(7, DOWN.encode())], "lines that are no record are skipped"


MORE = (
    "mlx5_core 0000:3b:00.0: request timing out",
    "mlx5_core 0000:3b:00.0: hardware lockup",
    "mlx5_core 0000:3b:00.0: failed to reinitialize",
    "mlx5_core 0000:3b:00.0: reinitialisation of the queue failed",
    "mlx5_core 0000:3b:00.0: reinitializing failed",
    "i40e 0000:3b:00.0: ASQ Critical Error detected",
    "efa 0000:3b:00.0: Failed to process command MODIFY_QP (opcode 8) comp_status 6 err -22",
)
"""Other texts of rows that have several."""


def test_every_message_of_the_table_stays_in_a_capture_and_no_name_of_a_person_does() -> None:
    """What a capture replaces in a message must not change its event; the words of a pattern are whole, so `tim` is none of `timed`."""
    texts = [*(text for _, text in lines()), *MORE]
    lost = [text for text in texts if not scrub_log(f"3,1,1,-;{text}\n", Scrubber())]
    assert lost == []
    assert Scrubber().free("tim and ed") == "worda and wordb"


# Stand-ins


def test_stand_ins_are_stable_and_unassigned() -> None:
    scrub = Scrubber()
    first = scrub.text("9803:9b03:0012:3456")
    assert first == scrub.text("9803:9b03:0012:3456") != scrub.text("9803:9b03:0012:3457")
    assert scrub.text("0000:0000:0000:0000") == "0000:0000:0000:0000"
    assert scrub.text("mac 98:03:9b:12:34:56 end") == "mac 02:00:00:00:00:00 end"
    names = [scrub.hostname(name) for name in ("a", "b.example.com", "a")]
    assert names == ["host-001", "host-002", "host-001"]
    assert scrub.gid("10.1.2.3").startswith("0000:0000:0000:0000:0000:ffff:f0")
    assert scrub.gid("fe80::a00:27ff:fe00:1").startswith("fe80:0000:0000:0000:")
    assert scrub.gid("2a00:1450::1").startswith("2001:0db8:")
    assert scrub.ip("::ffff:10.1.2.3") == scrub.ip("10.1.2.3") != scrub.ip("10.1.2.4"), "as in the GID"


UID = "7f1d4e02-5c38-4b6a-9d10-0123456789ab"
STATIC = "0123456789abcdef0123456789abcdef"
ID = "ab" * 32
NEW_UID = "00000000-0000-4000-8000-000000000001"
NEW_ID = "000000000001" + "0" * 52
PATHS = {
    "/": "/",
    f"/kubepods.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope": (
        f"/kubepods.slice/kubepods-burstable-pod{NEW_UID.replace('-', '_')}.slice/cri-containerd-{NEW_ID}.scope"
    ),
    f"/kubepods/besteffort/pod{UID}/{ID}": f"/kubepods/besteffort/pod{NEW_UID}/{NEW_ID}",
    f"/kubepods/pod{STATIC}/crio-{ID}": f"/kubepods/pod{1:032x}/crio-{NEW_ID}",
    f"/system.slice/containerd.service/kubepods-pod{UID.replace('-', '_')}.slice:cri-containerd:{ID}": (
        f"/system.slice/containerd.service/kubepods-pod{NEW_UID.replace('-', '_')}.slice:cri-containerd:{NEW_ID}"
    ),
    f"/docker/{ID}": f"/docker/{NEW_ID}",
    f"/machine.slice/libpod-{ID}.scope/container": f"/machine.slice/libpod-{NEW_ID}.scope/group1",
    "/slurm/uid_1234/job_987/step_0/task_3": "/slurm/uid_60001/job_1/step_0/task_3",
    "/slurm_gpu17/uid_1234/job_987/step_batch": "/slurm_node1/uid_60001/job_1/step_batch",
    "/system.slice/gpu17_slurmstepd.scope/job_987/step_extern/user": (
        "/system.slice/node1_slurmstepd.scope/job_1/step_extern/user"
    ),
    "/system.slice/nvmf.service": "/system.slice/nvmf.service",
    "/system.slice/jupyter-alice.service": "/system.slice/jupyter-user1.service",
    "/system.slice/alicebob.service": "/system.slice/worda.service",
    "/system.slice/db@customer.service": "/system.slice/db@instance1.service",
    "/machine.slice/machine-acme.scope": "/machine.slice/machine-instance1.scope",
    "/user.slice/user-1234.slice/user@1234.service/app.slice/run-u3.scope": (
        "/user.slice/user-60001.slice/user@60001.service/app.slice/run-u3.scope"
    ),
    "/project-x/alice (deleted)": "/group1/group2 (deleted)",
    "/../../other": "/../../group1",
    "/alice\rbob.service": "/user1\rworda.service",
}


@pytest.mark.parametrize(("path", "expected"), PATHS.items())
def test_a_control_group_keeps_its_form(path, expected) -> None:
    """Also in the lines of version 1."""
    text = f"12:cpu,cpuacct:{path}\n0::{path}\n"
    found = scrub_process(Scrubber(), ProcessFacts(7, 1.0, "train.py", "alice", text))
    assert found.cgroups == text.replace(path, expected)
    assert found.command == "train.py"
    before, after = parse_cgroups(f"0::{path}\n"), parse_cgroups(f"0::{expected}\n")
    assert before.kind == after.kind
    assert [bool(field) for field in before] == [bool(field) for field in after]


def test_one_value_has_one_replacement_and_two_have_two() -> None:
    scrub = Scrubber()
    first, again, second = (
        scrub_process(scrub, ProcessFacts(7, 1.0, "a", user, f"0::/docker/{one * 32}\n"))
        for user, one in (("alice", "ab"), ("alice", "ab"), ("bob", "ac"))
    )
    assert first == again
    assert (first.user, second.user) == ("user1", "user2")
    assert parse_cgroups(first.cgroups).name != parse_cgroups(second.cgroups).name
    assert [scrub_user(scrub, user) for user in ("root", "", "1000")] == ["root", "", "user3"]


# Stand-ins that keep subnets

IP_ONLY = Profile("IP side", addresses=True, multi_rail=True)
FOUR = (
    st.integers(0x0B000000, 0xDFFFFFFF)
    .map(ipaddress.IPv4Address)
    .filter(lambda one: not (one.is_link_local or one.is_loopback))
)
SIX = st.integers(0x2 << 124, (0x4 << 124) - 1).map(ipaddress.IPv6Address)


@given(FOUR, FOUR)
def test_ipv4_addresses_share_as_many_bits_as_before(one, other) -> None:
    """Below the first octet; different first octets stay different."""
    scrub = SubnetScrubber(b"key")
    first, second = (ipaddress.IPv4Address(scrub.address(str(each))) for each in (one, other))
    assert first >= ipaddress.IPv4Address("240.0.0.0")
    before, after = (32 - (int(a) ^ int(b)).bit_length() for a, b in ((one, other), (first, second)))
    assert before == after or (before < 8 and after < 8)


@given(st.one_of(st.tuples(FOUR, st.integers(8, 32)), st.tuples(SIX, st.integers(32, 128))))
def test_addresses_stay_in_their_prefix(given) -> None:
    address, length = given
    scrub = SubnetScrubber(b"key")
    prefix = str(ipaddress.ip_network(f"{address}/{length}", strict=False))
    stand_in = ipaddress.ip_address(scrub.address(str(address)))
    assert stand_in in ipaddress.ip_network(scrub.prefix(prefix))
    assert stand_in.version == 4 or stand_in in ipaddress.ip_network("2001:db8::/32")


def test_addresses_without_an_owner_are_kept_and_link_local_ones_stay_so() -> None:
    scrub = SubnetScrubber(b"key")
    kept = ["0.0.0.0", "127.0.0.1", "::", "::1", "224.0.0.1", "ff02::1", "169.254.0.7", "203.0.113.1"]  # noqa: S104 - no socket
    assert [scrub.address(text) for text in kept] == kept
    assert [scrub.prefix(text) for text in ("0.0.0.0/0", "::/0", "")] == ["0.0.0.0/0", "::/0", ""]
    stand_in = scrub.address("fe80::a288:c2ff:fe12:3456")
    assert ipaddress.ip_address(stand_in) in ipaddress.ip_network("fe80::/64")
    assert not stand_in.endswith("3456")


def test_another_capture_has_other_stand_ins_and_gids_and_peers_the_same() -> None:
    found = set()
    for _ in range(4):
        scrub = Scrubber()
        found.add(scrub.ip("10.1.2.3"))
    assert len(found) > 1
    for address in ("10.1.2.3", "2001:db8:7::9"):
        gid = ipaddress.IPv6Address(scrub.gid(address))
        assert str(gid.ipv4_mapped or gid) == scrub.ip(address)


@pytest.mark.parametrize(
    "name",
    [
        name if name in SOON else pytest.param(name, marks=pytest.mark.ci)
        for name in HOSTS
        if "ip/address.json" in files(name)
    ],
)
def test_a_capture_has_the_same_findings_and_none_of_the_addresses(capture_of, name) -> None:
    output = capture_of(name)
    assert results(load_recording(str(output))) == results(recorded(name))
    text = text_of(output / "ip")
    rows = json.loads(files(name)["ip/address.json"])
    owned = {one["local"] for row in rows for one in row["addr_info"]}
    assert not [one for one in owned if re.search(rf"(?<![0-9a-f:.]){re.escape(one)}(?![0-9a-f:.])", text)]


def results(kernel: RecordedKernel) -> list[tuple[str, str, Status]]:
    _, (observation,) = asyncio.run(observe(kernel))
    found = audit(observation.snapshot.devices, IP_ONLY)
    return [(one.netdev, one.check, one.status) for one in found]


def test_a_host_without_an_ip_side_has_no_files_of_it(capture_of) -> None:
    assert not (capture_of("bnxt") / "ip").exists()
