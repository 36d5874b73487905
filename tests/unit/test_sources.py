"""Netlink first, sysfs for values that it lacks: one merged reading, never two series, and each source fails alone."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from descriptors import open_descriptors

from roce_exporter.inventory import Listed, describe
from roce_exporter.kernel import Absent
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.model import RdmaDevice, RdmaPort
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel
from roce_exporter.recording.tree import Tree
from roce_exporter.sources import NAMES, open_readers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from roce_exporter.kernel.live import LiveFiles
    from roce_exporter.sources import Reader

PORT = "sys/class/infiniband/mlx5_0/ports/1"
HW = f"{PORT}/hw_counters"


class Host(RecordedKernel):
    """A recorded host whose netlink fails when the test sets an error, and which records all reads."""

    def __init__(self, files: dict[str, str], statistics: dict[str, int] | None = None) -> None:
        tree = Tree({path: f"{text}\n".encode() for path, text in files.items()})
        for path in tree.files:
            tree.add(path)
        rdma: dict[str, tuple[dict[str, object], ...]] = {}
        if statistics is not None:
            rdma["dev"] = ({"ifindex": 0, "ifname": "mlx5_0"},)
            rdma["statistic"] = ({"ifname": "mlx5_0", "port": 1} | statistics,)
        super().__init__([Moment(tree, rdma)])
        self.failure: OSError | None = None
        self.read: list[str] = []

    def content(self, path: str) -> bytes:
        self.read.append(path.rsplit("/", 1)[-1])
        return super().content(path)

    def rdma_statistics(self, device: RdmaDevice, port: int):
        if self.failure:
            raise self.failure
        return super().rdma_statistics(device, port)

    def readers(self, *disabled: str) -> dict[str, Reader]:
        device = describe(self, Listed("mlx5_0", 0))
        self.read.clear()
        return {reader.source: reader for reader in open_readers(self, device, disabled)}


def found(reader: Reader) -> dict[str, int | None]:
    return {
        name: value
        for reading in reader.read(0.0)
        for name, value in zip(reading.names, reading.values, strict=True)
    }


FILES = {
    f"{PORT}/state": "4: ACTIVE",
    f"{HW}/np_cnp_sent": "5",
    f"{HW}/rp_cnp_handled": "6",
    f"{HW}/lifespan": "10",
}


def test_values_of_netlink_are_not_read_from_sysfs_again() -> None:
    host = Host(FILES, {"np_cnp_sent": 50})
    readers = host.readers()
    assert found(readers["rdma_netlink"]) == {"np_cnp_sent": 50}
    assert found(readers["hw_counters"]) == {"rp_cnp_handled": 6}
    assert host.read == ["rp_cnp_handled"]


def test_sysfs_replaces_netlink_while_it_fails() -> None:
    host = Host(FILES, {"np_cnp_sent": 50, "rp_cnp_handled": 60})
    readers = host.readers()
    for failure, netlink, sysfs in (
        (None, {"np_cnp_sent": 50, "rp_cnp_handled": 60}, {}),
        (OSError(errno.EIO, "firmware"), {}, {"np_cnp_sent": 5, "rp_cnp_handled": 6}),
        (None, {"np_cnp_sent": 50, "rp_cnp_handled": 60}, {}),
    ):
        host.failure = failure
        assert found(readers["rdma_netlink"]) == netlink
        assert found(readers["hw_counters"]) == sysfs


@pytest.mark.parametrize("reported", [{"np_cnp_sent": 50, "rp_cnp_handled": 60}, {"np_cnp_sent": 50}])
def test_files_that_netlink_reports_again_are_closed(tmp_path: Path, reported: dict[str, int]) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    live = LiveKernel(str(tmp_path / "sys"))

    class Descriptors(Host):
        def open_files(self, paths: Sequence[str], size: int = 0) -> LiveFiles:
            return live.open_files(paths)

    host = Descriptors(FILES, reported)
    readers = host.readers()
    statistics, files = readers["rdma_netlink"], readers["hw_counters"]
    held = []
    for host.failure in (None, OSError(errno.EIO, "firmware"), None):
        statistics.read(0.0)
        files.read(0.0)
        held.append(len(open_descriptors()))
    files.close()
    assert held[0] == held[2] == held[1] - len(reported)


def test_files_that_netlink_reports_again_leave_the_quarantine() -> None:
    """A file stays in quarantine until it is read again, which does not happen while netlink reports its value."""

    class Broken(Host):
        def content(self, path: str) -> bytes:
            if "hw_counters" in path:
                raise OSError(errno.EIO, path)
            return super().content(path)

    host = Broken(FILES, {"np_cnp_sent": 50, "rp_cnp_handled": 60})
    host.failure = OSError(errno.EIO, "firmware")
    readers = host.readers()
    statistics, files = readers["rdma_netlink"], readers["hw_counters"]
    for now in range(100):
        statistics.read(now)
        files.read(now)
    assert files.quarantined == 2
    host.failure = None
    statistics.read(100.0)
    files.read(100.0)
    assert files.quarantined == 0


def test_a_netlink_failure_names_the_port_and_the_reason() -> None:
    host = Host(FILES, {"np_cnp_sent": 50})
    host.failure = OSError(errno.EIO, "firmware")
    (reading,) = host.readers()["rdma_netlink"].read(0.0)
    assert reading.losses == (("", "EIO"),)
    assert (reading.port, reading.names) == (1, ())


def test_a_kernel_without_netlink_is_read_from_sysfs() -> None:
    readers = Host(FILES).readers()
    for source in ("rdma_netlink", "resources", "optional_counters"):
        with pytest.raises(Absent):
            readers[source].read(0.0)
    assert found(readers["hw_counters"]) == {"np_cnp_sent": 5, "rp_cnp_handled": 6}


def test_all_ones_from_netlink_are_no_value() -> None:
    (reading,) = Host({}, {"np_cnp_sent": 2**64 - 1, "rp_cnp_handled": 1}).readers()["rdma_netlink"].read(0.0)
    assert reading.values == (None, 1)
    assert reading.losses == (("np_cnp_sent", "not_available"),)


def test_a_netlink_that_is_forbidden_is_broken_and_not_absent() -> None:
    """As with systemd's RestrictAddressFamilies: sysfs provides the counters, and the loss is reported."""

    class Forbidden(Host):
        def rdma_devices(self):
            raise OSError(errno.EAFNOSUPPORT, "forbidden")

    readers = Forbidden(FILES).readers()
    for source in ("rdma_netlink", "resources", "optional_counters"):
        with pytest.raises(OSError, match="RDMA netlink") as caught:
            readers[source].read(0.0)
        assert not isinstance(caught.value, Absent)
    assert found(readers["hw_counters"]) == {"np_cnp_sent": 5, "rp_cnp_handled": 6}


def test_names_stay_the_same_object_while_they_do_not_change() -> None:
    host = Host(FILES, {"np_cnp_sent": 50})
    for reader in host.readers().values():
        try:
            first, second = reader.read(0.0), reader.read(1.0)
        except Absent:
            continue
        assert all(a.names is b.names for a, b in zip(first, second, strict=True))


def test_a_disabled_source_is_omitted() -> None:
    readers = Host(FILES).readers("counters", "port")
    assert not {"counters", "port"} & readers.keys()
    assert {"rdma_netlink", "hw_counters", "resources"} <= readers.keys() <= set(NAMES)


def test_the_counters_of_qedr_are_a_stub_that_is_never_read(tmp_path: Path) -> None:
    below = tmp_path / "class/infiniband/qedr0"
    (below / "ports/1/counters").mkdir(parents=True)
    (below / "ports/1/counters/symbol_error").symlink_to("/sys/class/net/lo/speed")
    (tmp_path / "devices/0000:01:00.0").mkdir(parents=True)
    (below / "device").symlink_to("../../../devices/0000:01:00.0")
    (tmp_path / "devices/0000:01:00.0/driver").symlink_to("../../bus/pci/drivers/qede")
    kernel = LiveKernel(str(tmp_path), netlink=False)
    device = describe(kernel, Listed("qedr0", 0))
    assert device.dialect == "qedr"
    (counters,) = [reader for reader in open_readers(kernel, device) if reader.source == "counters"]
    with pytest.raises(Absent):
        counters.read(0.0)


class ForeignNetlink:
    """The replies of the machine's own netlink."""

    def devices(self) -> tuple[RdmaDevice, ...]:
        return (
            RdmaDevice(0, "mlx5_0", "0000:0000:0000:00aa", "roce", ""),
            RdmaDevice(1, "mlx5_1", "0000:0000:0000:00bb", "roce", ""),
            RdmaDevice(2, "mlx5_2", "", "roce", ""),
        )

    def ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        raise AssertionError("not asked")


def test_below_another_root_netlink_counts_only_where_the_guid_agrees(tmp_path: Path) -> None:
    """Otherwise the machine's own mlx5_0 would be mixed with the one in the folder."""
    for number, guid in enumerate(("00aa", "00cc", "00dd")):
        place = tmp_path / f"class/infiniband/mlx5_{number}/node_guid"
        place.parent.mkdir(parents=True)
        place.write_text(f"0000:0000:0000:{guid}\n")
    kernel = LiveKernel(str(tmp_path))
    kernel._local.RdmaNetlink = ForeignNetlink()
    assert [device.name for device in kernel.rdma_devices()] == ["mlx5_0"]


def test_descriptors_are_kept_and_closed(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("1\n")
    before = len(open_descriptors())
    files = LiveKernel(str(tmp_path)).open_files(["a", "b", "c"])
    for _ in range(5):
        assert files.read({1}) == [b"1\n", None, b"1\n"]
    assert len(open_descriptors()) == before + 2
    files.close()
    assert len(open_descriptors()) == before
