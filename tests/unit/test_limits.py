"""Limits of devices: the option, the series, and that a context is opened once."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from typing import TYPE_CHECKING

import pytest
from observed import observe, samples

from roce_exporter.cli.host import open_kernel
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.parser import OptionError
from roce_exporter.exposition import Format
from roce_exporter.kernel import Absent, live
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.model import Device, RdmaDevice
from roce_exporter.recording.capture import capture
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel, load_recording
from roce_exporter.recording.tree import Tree
from roce_exporter.sources.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEVICE = RdmaDevice(0, "rxe0", "0000:0000:0000:0001", "roce", "")

# `ibv_devinfo -v` of rdma-core for Soft-RoCE, shortened (recorded in a virtual machine).
DEVINFO = """hca_id:\trxe0
\ttransport:\t\t\tInfiniBand (0)
\tmax_mr_size:\t\t\t0xffffffffffffffff
\tmax_qp:\t\t\t\t1048560
\tmax_qp_wr:\t\t\t1048576
\tmax_cq:\t\t\t\t1048576
\tmax_cqe:\t\t\t32767
\tmax_mr:\t\t\t\t0
\t\tport:\t1
"""


def recorded(statistic: dict[str, object], **files: str) -> RecordedKernel:
    tree = Tree({f"ibv_devinfo/{name}.txt": text.encode() for name, text in files.items()})
    for path in tree.files:
        tree.add(path)
    row = {"ifname": "rxe0", "port": 1, **statistic}
    return RecordedKernel([Moment(tree, {"statistic": (row,)})])


async def limits_of(kernel: RecordedKernel) -> dict[str, str]:
    exporter, (observation,) = await observe(kernel)
    found = samples(exporter.render(observation, Format.TEXT))
    assert not [name for name in found if "unmapped" in name and "max_" in name]
    return {name: value for name, value in found.items() if "_limit{" in name}


async def test_a_recorded_device_has_the_limits_that_ibv_devinfo_printed() -> None:
    """A limit of 0 is not reported: `max_mr` here."""
    assert await limits_of(recorded({"sent_pkts": 1}, rxe0=DEVINFO)) == {
        'roce_resource_qp_limit{device="rxe0"}': "1048560",
        'roce_resource_cq_limit{device="rxe0"}': "1048576",
    }


async def test_without_a_source_there_is_no_series() -> None:
    assert await limits_of(recorded({"sent_pkts": 1})) == {}
    assert await limits_of(recorded({"sent_pkts": 1}, rxe0="nothing")) == {}


async def test_bnxt_counts_its_limits_itself() -> None:
    """The out-of-tree driver has them among its hardware counters, where no option is needed."""
    counters = {"max_qp": 65537, "max_cq": 131072, "max_mr": 262144, "res_tx_pci_err": 1, "active_qps": 2}
    assert await limits_of(recorded(counters | {"res_exceed_max": 1, "rx_good_bytes": 1})) == {
        'roce_resource_qp_limit{device="rxe0"}': "65537",
        'roce_resource_cq_limit{device="rxe0"}': "131072",
        'roce_resource_mr_limit{device="rxe0"}': "262144",
    }


def test_a_context_is_opened_only_by_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[RdmaDevice] = []

    def read(device: RdmaDevice) -> Mapping[str, int]:
        opened.append(device)
        return {"max_qp": 1}

    monkeypatch.setattr(live, "read_limits", read)
    with pytest.raises(Absent, match=r"--owners\.limits"):
        LiveKernel().object_limits(DEVICE)
    assert opened == []
    assert LiveKernel(limits=True).object_limits(DEVICE) == {"max_qp": 1}
    assert opened == [DEVICE]


def test_limits_are_read_once_and_again_only_after_a_failure() -> None:
    class Counting(RecordedKernel):
        reads = 0
        fails = True

        def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
            self.reads += 1
            if self.fails:
                raise PermissionError(errno.EACCES, "Permission denied", device.name)
            return {"max_qp": 5}

    kernel = Counting([Moment(Tree({}), {})])
    reader = Limits(kernel, Device("rxe0", "", "", netlink=DEVICE))
    with pytest.raises(PermissionError):
        reader.read(0.0)
    kernel.fails = False
    first = reader.read(60.0)
    assert (first[0].names, tuple(first[0].values)) == (("max_qp",), (5,))
    assert reader.read(120.0) is first
    assert kernel.reads == 2


def test_a_device_without_netlink_has_no_limits() -> None:
    with pytest.raises(Absent):
        Limits(RecordedKernel([Moment(Tree({}), {})]), Device("rxe0", "", "")).read(0.0)


@pytest.mark.parametrize(("flags", "expected"), [([], False), (["--owners.limits"], True)])
def test_the_option_is_off_by_default(flags: list[str], expected: bool) -> None:
    assert parse_options(["serve", *flags]).owners_limits is expected


def test_the_option_is_a_key_of_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "exporter.yml"
    file.write_text("owners.limits: true\n")
    assert parse_options(["serve", f"--config.file={file}"]).owners_limits is True
    file.write_text("owners.limits: perhaps\n")
    with pytest.raises(OptionError, match="must be true or false"):
        parse_options(["serve", f"--config.file={file}"])


def captured(kernel: RecordedKernel, place: Path) -> RecordedKernel:
    asyncio.run(capture(kernel, str(place), 1, 1.0))
    return load_recording(str(place))


def test_a_captured_host_has_the_same_limits(tmp_path: Path) -> None:
    kernel = recorded({"sent_pkts": 1}, rxe0=DEVINFO)
    copy = captured(kernel, tmp_path / "host")
    limits = asyncio.run(limits_of(kernel))
    assert len(limits) == 2
    assert asyncio.run(limits_of(copy)) == limits
    text = (tmp_path / "host/ibv_devinfo/rxe0.txt").read_text()
    assert text == "hca_id:\trxe0\n\tmax_qp:\t\t\t1048560\n\tmax_cq:\t\t\t1048576\n"


@pytest.mark.parametrize(
    ("fault", "lines"),
    [
        (Absent(errno.EPERM, "--owners.limits is not given", "rxe0"), 0),
        (PermissionError(errno.EACCES, "Permission denied", "/dev/infiniband/uverbs0"), 1),
    ],
    ids=["absent", "refused"],
)
def test_limits_that_cannot_be_captured_are_left_out(
    fault: OSError,
    lines: int,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object, device: RdmaDevice) -> Mapping[str, int]:
        raise fault

    monkeypatch.setattr(RecordedKernel, "object_limits", refuse)
    copy = captured(recorded({"sent_pkts": 1}, rxe0=DEVINFO), tmp_path / "host")
    monkeypatch.undo()
    assert asyncio.run(limits_of(copy)) == {}
    assert [device.name for device in copy.rdma_devices()] == ["rxe0"]
    assert sum("the limits of rxe0 are left out" in line for line in caplog.messages) == lines


@pytest.mark.parametrize(("flags", "expected"), [([], False), (["--owners.limits"], True)])
def test_a_capture_opens_a_context_only_by_the_option(
    flags: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(live, "read_limits", lambda device: opened.append(device.name) or {"max_qp": 1})
    monkeypatch.setattr(LiveKernel, "_rdma", lambda _: None)
    monkeypatch.setattr(live, "read_object_limits", Refuses())
    kernel = open_kernel(parse_options(["capture", "--path.sysfs=/", *flags]))
    with contextlib.suppress(Absent):
        kernel.object_limits(DEVICE)  # type: ignore[attr-defined]
    assert bool(opened) is expected


class Refuses:
    """A kernel that does not report limits by netlink."""

    def __call__(self, *_: object) -> Mapping[str, int]:
        raise Absent(errno.EOPNOTSUPP, "older than 7.3")
