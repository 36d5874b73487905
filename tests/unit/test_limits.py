"""Limits of devices: the option, the series, and that a context is opened once."""

import asyncio
import contextlib
import errno
from collections.abc import Mapping
from pathlib import Path

import pytest
from kernel import Faults, host
from observed import exposition, samples

from roce_exporter.cli.options import parse_options
from roce_exporter.cli.parts import open_kernel
from roce_exporter.host.kernel import Absent, live
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.recorded.capture import capture
from roce_exporter.host.recorded.recorded import RecordedKernel, load_recording
from roce_exporter.host.sources.hw_counters import limits_reader
from roce_exporter.model import Device, RdmaDevice

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
    row = {"ifname": "rxe0", "port": 1, **statistic}
    return host(
        {"rdma/statistic.json": [row]} | {f"ibv_devinfo/{name}.txt": text for name, text in files.items()}
    )


async def limits_of(kernel: RecordedKernel) -> dict[str, int]:
    found = samples(await exposition(kernel))
    assert not [name for name in found if "unmapped" in name and "max_" in name]
    return {
        name.removesuffix('_limit{device="rxe0"}').removeprefix("roce_resource_"): int(value)
        for name, value in found.items()
        if "_limit{" in name
    }


SENT = {"sent_pkts": 1}
BNXT = {
    "max_qp": 65537,
    "max_cq": 131072,
    "max_mr": 262144,
    "res_tx_pci_err": 1,
    "active_qps": 2,
    "res_exceed_max": 1,
    "rx_good_bytes": 1,
}


@pytest.mark.parametrize(
    ("statistic", "files", "limits"),
    [
        (SENT, {"rxe0": DEVINFO}, {"qp": 1048560, "cq": 1048576}),
        (SENT, {}, {}),
        (SENT, {"rxe0": "nothing"}, {}),
        (SENT, {"rxe0": "\n" * (1 << 20)}, {}),
        (SENT, {"rxe0": f"max_qp: {'9' * 5000}\n"}, {}),
        (BNXT, {}, {"qp": 65537, "cq": 131072, "mr": 262144}),
    ],
    ids=[
        "printed by ibv_devinfo",
        "no source",
        "no limit",
        "blank lines",
        "too many digits",
        "counted by bnxt",
    ],
)
async def test_a_recorded_device_has_its_limits(statistic, files, limits) -> None:
    """A limit of 0 is not reported: `max_mr` here. bnxt's out-of-tree driver has them among its hardware counters."""
    assert await limits_of(recorded(statistic, **files)) == limits


def test_a_context_is_opened_only_by_the_option(monkeypatch) -> None:
    opened: list[RdmaDevice] = []

    def read(_: object, device: RdmaDevice) -> Mapping[str, int]:
        opened.append(device)
        return {"max_qp": 1}

    monkeypatch.setattr(live, "read_limits", read)
    with pytest.raises(Absent, match=r"owners\.limits"):
        LiveKernel().object_limits(DEVICE)
    assert opened == []
    assert LiveKernel(limits=True).object_limits(DEVICE) == {"max_qp": 1}
    assert opened == [DEVICE]


def test_limits_are_read_once_and_again_only_after_a_failure() -> None:
    kernel = recorded(SENT)
    faults = Faults(kernel, object_limits=PermissionError(errno.EACCES, "Permission denied"))
    reader = limits_reader(kernel, Device("rxe0", "", "", netlink=DEVICE))
    with pytest.raises(PermissionError):
        reader.read(0.0)
    faults["object_limits"] = {"max_qp": 5}
    first = reader.read(60.0)
    assert (first[0].names, tuple(first[0].values)) == (("max_qp",), (5,))
    assert reader.read(120.0) is first
    assert len(faults.calls) == 2
    with pytest.raises(Absent):
        limits_reader(kernel, Device("rxe0", "", "")).read(0.0)


def captured(kernel: RecordedKernel, place: Path) -> RecordedKernel:
    asyncio.run(capture(kernel, str(place), 1, 1.0))
    return load_recording(str(place))


def test_a_captured_host_has_the_same_limits(tmp_path) -> None:
    kernel = recorded(SENT, rxe0=DEVINFO)
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
def test_limits_that_cannot_be_captured_are_left_out(fault, lines, tmp_path, caplog) -> None:
    kernel = recorded(SENT, rxe0=DEVINFO)
    Faults(kernel, object_limits=fault)
    copy = captured(kernel, tmp_path / "host")
    assert asyncio.run(limits_of(copy)) == {}
    assert [device.name for device in copy.rdma_devices()] == ["rxe0"]
    assert sum("the limits of rxe0 are left out" in line for line in caplog.messages) == lines


@pytest.mark.parametrize(("flags", "expected"), [([], False), (["--owners.limits"], True)])
def test_a_capture_opens_a_context_only_by_the_option(flags, expected, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(live, "read_limits", lambda _, device: opened.append(device.name) or {"max_qp": 1})
    monkeypatch.setattr(LiveKernel, "_rdma", lambda _: None)
    monkeypatch.setattr(live, "read_object_limits", unreported)
    kernel = open_kernel(parse_options(["capture", "--path.sysfs=/", *flags]))
    with contextlib.suppress(Absent):
        kernel.object_limits(DEVICE)  # type: ignore[attr-defined]
    assert bool(opened) is expected


def unreported(*_: object) -> Mapping[str, int]:
    raise Absent(errno.EOPNOTSUPP, "older than 7.3")
