"""The live kernel over plain files, and sockets with replies that the test sets."""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roce_exporter.host.kernel import Absent, live
from roce_exporter.host.kernel.ethtool_ioctl import NAMES_SECONDS, EthtoolIoctl
from roce_exporter.host.kernel.ethtool_netlink import EthtoolNetlink
from roce_exporter.host.kernel.live import LiveFiles, LiveKernel, raise_descriptor_limit
from roce_exporter.model import RdmaDevice

DEVICE = RdmaDevice(3, "mlx5_0", "9803:9b03:0000:0001", "roce", "28.39")


class Reads:
    """os.pread that fails with the errors in `faults`, once each (0: does not fail), and records all descriptors."""

    def __init__(self, *faults: int) -> None:
        self.faults = list(faults)
        self.calls: list[tuple[int, int, int]] = []

    def __call__(self, descriptor: int, size: int, offset: int) -> bytes:
        self.calls.append((descriptor, size, offset))
        if self.faults and (fault := self.faults.pop(0)):
            raise OSError(fault, "as the test wants")
        return os.pread(descriptor, size, offset)

    @property
    def descriptors(self) -> list[int]:
        return [descriptor for descriptor, _, _ in self.calls]


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def errnos(found: list[bytes | OSError | None]) -> list[bytes | int | None]:
    return [one.errno if isinstance(one, OSError) else one for one in found]


@pytest.fixture
def paths(tmp_path) -> list[bytes]:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}{name}{name}\n")
    return [os.fsencode(tmp_path / name) for name in ("a", "b")]


def test_files_are_opened_once_and_read_from_their_beginning(paths) -> None:
    pread = Reads()
    files = LiveFiles(paths, pread, 2)
    assert files.read() == [b"aa", b"bb"]
    assert files.read() == [b"aa", b"bb"]
    first, second, *again = pread.calls
    assert [first, second] == again
    assert first[1:] == (2, 0)
    assert os.get_inheritable(first[0]) is False
    files.close()
    assert not any(map(is_open, pread.descriptors))
    files.close()


def test_a_file_that_is_skipped_is_not_opened_and_the_descriptor_of_an_error_is_kept(paths) -> None:
    pread = Reads()
    files = LiveFiles(paths, pread, 9)
    assert files.read({0}) == [None, b"bbb\n"]
    assert len(pread.calls) == 1
    pread.faults.append(errno.EIO)
    assert errnos(files.read()) == [errno.EIO, b"bbb\n"]
    assert files.read() == [b"aaa\n", b"bbb\n"]
    assert len(set(pread.descriptors)) == 2
    files.close()


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_among_open_files_costs_no_second_read_and_moves_no_value(tmp_path, failing) -> None:
    paths = [os.fsencode(tmp_path / str(number)) for number in range(3)]
    for number in range(3):
        (tmp_path / str(number)).write_text(f"{number}")
    pread = Reads()
    files = LiveFiles(paths, pread, 9)
    assert files.read() == [b"0", b"1", b"2"]
    calls = len(pread.calls)
    pread.faults += [0] * failing + [errno.EIO]
    found = errnos(files.read())
    assert found == [errno.EIO if number == failing else b"%d" % number for number in range(3)]
    assert len(pread.calls) == calls + 3
    assert files.read({1}) == [b"0", None, b"2"]
    assert files.read() == [b"0", b"1", b"2"]
    files.close()
    assert files.read() == [b"0", b"1", b"2"], "closed files are opened again"
    files.close()


def test_a_file_that_is_missing_is_tried_again(paths) -> None:
    files = LiveFiles([*paths, paths[0] + b"-later"], os.pread, 9)
    assert errnos(files.read()) == [b"aaa\n", b"bbb\n", errno.ENOENT]
    with open(paths[0] + b"-later", "w") as later:
        later.write("c")
    assert files.read() == [b"aaa\n", b"bbb\n", b"c"]
    files.close()


def test_a_descriptor_of_a_removed_device_is_closed_and_opened_again(paths) -> None:
    pread = Reads()
    files = LiveFiles(paths[:1], pread, 9)
    files.read()
    (old,) = pread.descriptors
    holder = os.open("/dev/null", os.O_RDONLY)
    pread.faults.append(errno.ENODEV)
    assert files.read() == [b"aaa\n"]
    assert pread.descriptors == [old, old, old], "the number is free again"
    files.close()
    assert not is_open(old)
    os.close(holder)


@pytest.mark.parametrize(
    ("second", "expected"),
    [(errno.EIO, errno.EIO), (errno.ENODEV, errno.ENODEV), (errno.ENOENT, errno.ENODEV)],
)
def test_a_device_that_stays_away_is_reported(paths, second, expected) -> None:
    pread = Reads()
    files = LiveFiles(paths[:1], pread, 9)
    files.read()
    pread.faults += [errno.ENODEV, second]
    assert errnos(files.read()) == [expected]
    files.close()
    assert not any(map(is_open, pread.descriptors))


@pytest.mark.parametrize(("limit", "most"), [(100, 50), (639, 320), (640, 320), (642, 322), (10_000, 9_680)])
def test_files_leave_a_reserve_of_descriptors(monkeypatch, limit, most) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: {resource.RLIMIT_NOFILE: (limit, 1)}[which])
    assert LiveFiles([], os.pread, 9)._most == most


@pytest.mark.parametrize(("more", "kept"), [(0, False), (1, True)])
def test_near_the_limit_no_descriptor_is_kept(monkeypatch, paths, more, kept) -> None:
    free = os.open(paths[0], os.O_RDONLY)
    os.close(free)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2 * (free + more), 0))
    monkeypatch.setattr(
        "roce_exporter.host.kernel.live.RESERVE", 1 << 30
    )  # so that half of the limit remains
    pread = Reads()
    files = LiveFiles(paths[:1], pread, 2)
    assert files.read() == [b"aa"]
    assert files.read() == [b"aa"]
    assert pread.calls == [(free, 2, 0)] * 2
    assert is_open(free) is kept
    pread.faults.append(errno.EIO)
    assert errnos(files.read()) == [errno.EIO]
    assert is_open(free) is kept
    files.close()
    assert not is_open(free)


@pytest.mark.parametrize(("soft", "set_to"), [(1024, [(4096, 4096)]), (4096, [])])
def test_the_soft_limit_is_raised_to_the_hard_one(monkeypatch, soft, set_to) -> None:
    calls: list[tuple[int, int]] = []
    limits = {resource.RLIMIT_NOFILE: (soft, 4096)}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(
        resource, "setrlimit", lambda which, both: calls.append(both) if which in limits else None
    )
    assert raise_descriptor_limit() == 4096
    assert calls == set_to


def test_a_tree_is_listed_read_and_followed(tmp_path) -> None:
    kernel = LiveKernel(str(tmp_path / "x" / ".."))
    folder = tmp_path / "class/net"
    folder.mkdir(parents=True)
    (folder / "b").write_text(" text \n")
    (folder / "a").symlink_to("../../devices/driver")
    assert kernel.entries("class/net") == ("a", "b")
    assert kernel.text("class/net/b") == "text"
    assert kernel.link("class/net/a") == "driver"
    assert kernel.identity("class/net/b") == (folder / "b").stat().st_ino
    files = kernel.open_files(["class/net/b"], 3)
    assert files.read() == [b" te"]
    files.close()
    files = kernel.open_files(["class/net/b"])
    assert files.read() == [b" text \n"]
    files.close()


@pytest.mark.parametrize("ask", ["entries", "text", "link", "identity"])
def test_a_missing_file_is_absent_and_named(tmp_path, ask) -> None:
    with pytest.raises(Absent) as caught:
        getattr(LiveKernel(str(tmp_path)), ask)("class/nothing")
    assert (caught.value.errno, caught.value.strerror) == (errno.ENOENT, os.strerror(errno.ENOENT))
    assert caught.value.filename == "class/nothing"


@pytest.mark.parametrize(
    ("number", "absent"),
    [
        (errno.ENOENT, True),
        (errno.ENOTDIR, True),
        (errno.EINVAL, True),
        (errno.ENXIO, True),
        (errno.EIO, False),
    ],
)
def test_the_answers_that_mean_absent(number, absent) -> None:
    def fail() -> None:
        raise OSError(number, "text")

    with pytest.raises(OSError, match=r".") as caught:
        live._or_absent(fail, "path")
    assert isinstance(caught.value, Absent) is absent


def test_a_text_that_cannot_be_read_leaves_no_descriptor(tmp_path) -> None:
    (tmp_path / "a").write_text("x")
    pread = Reads(errno.EIO)
    with pytest.raises(OSError, match="as the test wants"):
        LiveKernel(str(tmp_path), pread).text("a")
    ((descriptor, size, offset),) = pread.calls
    assert not is_open(descriptor)
    assert (size, offset) == (live.TEXT_BYTES, 0)


class Socket:
    """Returns the name of the query and its arguments. `netdev`: the only argument that is expected."""

    def __init__(self, netdev: str | None = None, **answers: Any) -> None:
        self.netdev = netdev
        self.answers = answers

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*arguments: object) -> Any:
            assert self.netdev is None or arguments == (self.netdev,)
            found = self.answers.get(name, (name, *arguments))
            if isinstance(found, Exception):
                raise found
            return found

        return answer


def asked_of(kernel: LiveKernel, kind: str, **answers: Any) -> LiveKernel:
    """The kernel, whose sockets of one kind return these replies in this thread."""
    setattr(kernel._local, kind, Socket(**answers))
    return kernel


@pytest.mark.parametrize(
    ("ask", "arguments", "kind", "expected"),
    [
        ("rdma_devices", (), "RdmaNetlink", ("devices",)),
        ("rdma_ports", (DEVICE,), "RdmaNetlink", ("ports", DEVICE)),
        ("rdma_statistics", (DEVICE, 1), "RdmaNetlink", ("statistics", DEVICE, 1)),
        ("rdma_optional_counters", (DEVICE, 1), "RdmaNetlink", ("optional_counters", DEVICE, 1)),
        ("rdma_resources", (DEVICE,), "RdmaNetlink", ("resources", DEVICE)),
        ("ethtool_statistics", ("eth0",), "EthtoolIoctl", ("statistics", "eth0")),
        ("ethtool_pause", ("eth0",), "EthtoolNetlink", ("pause", "eth0")),
        ("ethtool_link", ("eth0",), "EthtoolNetlink", ("link", "eth0")),
        ("ethtool_fec", ("eth0",), "EthtoolNetlink", ("fec", "eth0")),
        ("ethtool_standard", ("eth0",), "EthtoolNetlink", ("standard", "eth0")),
        ("dcb", ("eth0",), "DcbNetlink", ("ieee", "eth0")),
    ],
)
def test_each_question_goes_to_its_socket(ask, arguments, kind, expected) -> None:
    assert getattr(asked_of(LiveKernel(), kind), ask)(*arguments) == expected


def test_a_transceiver_is_read_page_by_page_from_its_network_device() -> None:
    pages: list[tuple[str, object]] = []

    class Module(Socket):
        def module_page(self, netdev: str, place: object) -> bytes:
            pages.append((netdev, place))
            raise OSError(errno.EIO, "no page")

    kernel = LiveKernel()
    kernel._local.EthtoolNetlink = Module()
    with pytest.raises(OSError, match="no page"):
        kernel.transceiver("eth0")
    ((netdev, place),) = pages
    assert netdev == "eth0"
    assert place is not None


def test_without_netlink_rdma_is_absent() -> None:
    with pytest.raises(Absent, match=r"\] RDMA netlink is switched off$") as caught:
        LiveKernel(netlink=False).rdma_devices()
    assert caught.value.errno == errno.EPROTONOSUPPORT


QUESTIONS = [
    *(f"ethtool_{one}" for one in ("statistics", "pause", "link", "fec", "standard", "settings")),
    "transceiver",
    "dcb",
]


@pytest.fixture
def twins(tmp_path, monkeypatch) -> tuple[Path, LiveKernel]:
    """A copy of this host's /sys with one network device, and a kernel that has the copy as its root."""
    monkeypatch.setattr(live, "SYSFS", str(tmp_path / "sys"))
    for root in ("sys", "copy"):
        folder = tmp_path / root / "class/net/eth0"
        folder.mkdir(parents=True)
        (folder / "address").write_text("00:11\n")
        (folder / "ifindex").write_text("7\n")
    return tmp_path, LiveKernel(str(tmp_path / "copy"))


def test_a_copy_of_this_host_is_queried_like_the_host(twins) -> None:
    assert asked_of(twins[1], "EthtoolNetlink").ethtool_pause("eth0") == ("pause", "eth0")


@pytest.mark.parametrize("ask", QUESTIONS)
@pytest.mark.parametrize("file", ["address", "ifindex"])
@pytest.mark.parametrize("text", [None, "other"])
def test_a_folder_of_another_host_is_not_mixed_with_this_one(twins, ask, file, text) -> None:
    place = twins[0] / "copy/class/net/eth0" / file
    place.unlink()
    if text:
        place.write_text(text)
    else:
        (twins[0] / "sys/class/net/eth0" / file).unlink()
    with pytest.raises(Absent, match=r"\] not a network device of this namespace:") as caught:
        getattr(twins[1], ask)("eth0")
    assert (caught.value.errno, caught.value.filename) == (errno.ENODEV, "eth0")


def test_below_a_foreign_root_only_devices_of_the_same_guid_are_this_hosts(tmp_path) -> None:
    others = (
        replace(DEVICE, name="mlx5_1", node_guid="9803:9b03:0000:0002"),
        replace(DEVICE, name="mlx5_2", node_guid=""),
        replace(DEVICE, name="mlx5_3", node_guid="9803:9b03:0000:0003"),
    )
    for name, guid in (("mlx5_0", DEVICE.node_guid), ("mlx5_1", "other"), ("mlx5_2", "")):
        folder = tmp_path / "class/infiniband" / name
        folder.mkdir(parents=True)
        (folder / "node_guid").write_text(f"{guid}\n")
    kernel = asked_of(LiveKernel(str(tmp_path)), "RdmaNetlink", devices=(DEVICE, *others))
    assert kernel.rdma_devices() == (DEVICE,)


ABSENT = Absent(errno.EOPNOTSUPP, "the driver does not support it")


def settings(tmp_path: Path, driver: str, **answers: Any) -> dict[str, int]:
    folder = tmp_path / "class/net/eth0/device"
    folder.mkdir(parents=True)
    (folder / "driver").symlink_to(f"/bus/pci/drivers/{driver}")
    kernel = LiveKernel(str(tmp_path))
    kernel._local.EthtoolIoctl = Socket(netdev="eth0", **answers)
    kernel._check_own = lambda netdev: None  # type: ignore[method-assign]
    return dict(kernel.ethtool_settings("eth0"))


@pytest.mark.parametrize(
    ("driver", "answers", "expected"),
    [
        (
            "bnxt_en",
            (8000, 1_000_000, {"a": True, "b": False}),
            {"pfc_prevention_timeout": 8000, "stats_block_microseconds": 1_000_000, "flag_a": 1, "flag_b": 0},
        ),
        ("mlx5_core", (0xFFFF, 0, {"a": True}), {"flag_a": 1}),
        ("bnxt_en", (ABSENT, 0, ABSENT), {"stats_block_microseconds": 0}),
        ("bnxt_en", (100, ABSENT, {}), {"pfc_prevention_timeout": 100}),
    ],
)
def test_a_drivers_settings_are_those_it_has(tmp_path, driver, answers, expected) -> None:
    questions = ("pfc_prevention_timeout", "statistics_refresh", "private_flags")
    assert settings(tmp_path, driver, **dict(zip(questions, answers, strict=True))) == expected


def test_a_driver_without_settings_is_absent(tmp_path) -> None:
    with pytest.raises(Absent, match=r"\] the driver has no settings:") as caught:
        settings(tmp_path, "mlx5_core", pfc_prevention_timeout=ABSENT, private_flags={})
    assert (caught.value.errno, caught.value.filename) == (errno.EOPNOTSUPP, "eth0")


def test_each_thread_has_sockets_of_its_own_and_keeps_them() -> None:
    kernel, elsewhere = LiveKernel(), list[object]()
    mine = kernel._mine(EthtoolNetlink)
    thread = threading.Thread(target=lambda: elsewhere.append(kernel._mine(EthtoolNetlink)))
    thread.start()
    thread.join()
    assert kernel._mine(EthtoolNetlink) is mine
    assert elsewhere[0] is not mine
    assert isinstance(mine, EthtoolNetlink)


def test_the_fast_loop_caches_the_names_of_counters_for_a_while(tmp_path) -> None:
    pread = Reads()
    kernel = LiveKernel(str(tmp_path), pread, netlink=False)
    cached = kernel.with_cached_names()
    assert kernel.with_cached_names()._netlink is False
    for one, seconds in ((kernel, 0.0), (cached, NAMES_SECONDS)):
        ioctl = one._ethtool()
        assert isinstance(ioctl, EthtoolIoctl)
        assert ioctl._names_for == seconds
    (tmp_path / "a").write_text("x")
    assert cached.text("a") == "x"
    assert len(pread.calls) == 1
    with pytest.raises(Absent):
        cached.rdma_devices()


def test_the_live_kernel_loads_no_other_host() -> None:
    """An exporter on a real host pays for neither recordings nor simulations."""
    code = "import sys; import roce_exporter.host.kernel.live; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    others = ("roce_exporter.host.recorded", "roce_exporter.host.simulated")
    assert not [name for name in loaded if name.startswith(others)]
