"""The kubelet's pod-resources API: a real gRPC server on a Unix socket whose replies are encoded by hand."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from roce_exporter.kernel import Absent
from roce_exporter.quiet_grpc import grpc
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel
from roce_exporter.recording.tree import Tree
from roce_exporter.surroundings import Surroundings
from roce_exporter.surroundings.pod_messages import PodDevice, pod_devices
from roce_exporter.surroundings.pod_resources import MOST_DEVICES, PodResources

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

VF, SECOND, GPU = "0000:3b:01.2", "0000:3b:01.3", "0000:5e:00.0"


def field(number: int, value: bytes | str) -> bytes:
    """A field of a message by the encoding of protobuf: tag with wire type 2, length, value."""
    data = value.encode() if isinstance(value, str) else value
    length, size = b"", len(data)
    while size > 0x7F:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def container(name: str, resource: str, *devices: str) -> bytes:
    """ContainerResources with devices, CPUs (3) and a NUMA node (field 3 of the devices)."""
    given = field(1, resource) + b"".join(field(2, one) for one in devices) + field(3, field(1, b"\x08\x01"))
    return field(1, name) + field(2, given) + b"\x18\x04"


def pod(namespace: str, name: str, *containers: bytes) -> bytes:
    return field(1, field(1, name) + field(2, namespace) + b"".join(field(3, one) for one in containers))


REPLY = pod(
    "training",
    "llama-0",
    container("worker", "nvidia.com/sriov_rdma", VF, SECOND),
    container("sidecar", "cpu"),
    container("gpu", "nvidia.com/gpu", GPU, "GPU-1234"),
) + pod("storage", "nvmf", container("target", "rdma/hca_shared", "17"))


class Kubelet:
    """What it answers, and how often it was queried."""

    def __init__(self, reply: bytes = REPLY, status: Any = None) -> None:
        self.reply = reply
        self.status = status
        self.requests: list[bytes] = []
        self.hangs = False

    async def answer(self, request: bytes, context: Any) -> bytes:
        self.requests.append(request)
        if self.hangs:
            await asyncio.Event().wait()
        if self.status is not None:
            await context.abort(self.status, "said the kubelet")
        return self.reply


@contextlib.asynccontextmanager
async def serving(kubelet: Kubelet, path: Path, service: str = "v1.PodResourcesLister") -> AsyncIterator[str]:
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(kubelet.answer)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"List": handler}),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield str(path)
    finally:
        await server.stop(None)


def host(**classes: str) -> RecordedKernel:
    """A host whose PCI functions have these classes."""
    tree = Tree({f"sys/bus/pci/devices/{pci}/class": text.encode() for pci, text in classes.items()})
    for path in tree.files:
        tree.add(path)
    return RecordedKernel([Moment(tree, {})])


HOST = host(**{VF: "0x020000\n", GPU: "0x030200\n"})


async def read(path: str, patience: float = 20.0) -> tuple[Surroundings, list[tuple[str, ...]]]:
    around = Surroundings(
        [PodResources(path, HOST, lambda: 0.0, patience)], lambda: 0.0, patience=patience + 20
    )
    await around.read_all()
    (found,) = around.samples()
    assert set(found.values) <= {1}
    return around, [series.labels for series in found.series]


async def test_network_devices_of_pods_have_a_series(tmp_path: Path) -> None:
    """SECOND has no PCI class here, as in a container that does not see it; a GPU and an invented number are left out."""
    kubelet = Kubelet()
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        around, found = await read(path)
    assert found == [
        (VF, "training", "llama-0", "worker", "nvidia.com/sriov_rdma"),
        (SECOND, "training", "llama-0", "worker", "nvidia.com/sriov_rdma"),
    ]
    assert kubelet.requests == [b""], "List has no parameters"
    (state,) = around.states()
    assert (state.source, state.up, state.error) == ("pod_resources", True, "")


def test_the_messages_of_the_kubelet() -> None:
    assert list(pod_devices(REPLY)) == [
        PodDevice(VF, "training", "llama-0", "worker", "nvidia.com/sriov_rdma"),
        PodDevice(SECOND, "training", "llama-0", "worker", "nvidia.com/sriov_rdma"),
        PodDevice(GPU, "training", "llama-0", "gpu", "nvidia.com/gpu"),
        PodDevice("GPU-1234", "training", "llama-0", "gpu", "nvidia.com/gpu"),
        PodDevice("17", "storage", "nvmf", "target", "rdma/hca_shared"),
    ]


async def test_the_number_of_series_is_bounded(tmp_path: Path) -> None:
    names = [f"{number:04x}:00:00.0" for number in range(MOST_DEVICES + 5)]
    kubelet = Kubelet(pod("a", "b", container("c", "d", *names)))
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        _, found = await read(path)
    assert len(found) == MOST_DEVICES


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        ("UNIMPLEMENTED", "update the kubelet"),
        ("RESOURCE_EXHAUSTED", "limits the rate"),
        ("INTERNAL", "said the kubelet"),
    ],
)
async def test_a_refusal_is_one_line_with_the_path(tmp_path: Path, status: str, remedy: str) -> None:
    kubelet = Kubelet(status=grpc.StatusCode[status])
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        around, found = await read(path)
    (state,) = around.states()
    assert (found, state.up, state.errors_total) == ([], False, 1)
    assert f"--kubelet.pod-resources={path}" in state.error
    assert remedy in state.error
    assert "\n" not in state.error


async def test_a_reply_of_something_else_is_refused(tmp_path: Path) -> None:
    async with serving(Kubelet(b"\xff\xff\xff"), tmp_path / "kubelet.sock") as path:
        around, _ = await read(path)
    assert "not one of the kubelet's pod-resources API v1" in around.states()[0].error


async def test_an_older_api_is_named(tmp_path: Path) -> None:
    """Before 1.20 the kubelet had v1alpha1 alone."""
    async with serving(Kubelet(), tmp_path / "kubelet.sock", "v1alpha1.PodResourcesLister") as path:
        around, _ = await read(path)
    assert "update the kubelet (1.20 or newer)" in around.states()[0].error


async def test_a_kubelet_that_hangs_costs_its_deadline(tmp_path: Path) -> None:
    kubelet = Kubelet()
    kubelet.hangs = True
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        around, found = await read(path, patience=0.2)
        assert (found, around.states()[0].up) == ([], False)
        assert "DEADLINE_EXCEEDED" in around.states()[0].error


async def test_after_a_failure_all_is_as_before(tmp_path: Path) -> None:
    kubelet = Kubelet()
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        around, before = await read(path)
        kubelet.status = grpc.StatusCode.INTERNAL
        await around.read_all()
        assert around.samples()[0].series == ()
        kubelet.status = None
        await around.read_all()
        assert [series.labels for series in around.samples()[0].series] == before
        (state,) = around.states()
        assert (state.up, state.error, state.errors_total) == (True, "", 1)
        same = around.samples()[0].series
        await around.read_all()
        assert around.samples()[0].series is same


async def test_a_missing_socket_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    around, _ = await read(str(tmp_path / "none.sock"))
    assert "No such file or directory; mount the folder of the kubelet's socket" in around.states()[0].error


async def test_a_file_that_is_no_socket_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kubelet.sock").write_text("")
    around, _ = await read(str(tmp_path / "kubelet.sock"))
    assert "is not a socket" in around.states()[0].error


async def test_a_socket_without_a_server_is_one_line(tmp_path: Path) -> None:
    place = str(tmp_path / "kubelet.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(place)
    around, _ = await read(place)
    assert "is it running?" in around.states()[0].error


async def test_a_socket_that_may_not_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet's socket belongs to root. Root may write to any, so the test answers for the kernel."""
    place = str(tmp_path / "kubelet.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(place)
    assert stat.S_ISSOCK(os.stat(place).st_mode)
    monkeypatch.setattr(os, "access", lambda path, mode, **_: (path, mode) != (place, os.W_OK))
    around, _ = await read(place)
    assert "permission denied; run the exporter as the socket's user" in around.states()[0].error


async def test_without_grpc_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "roce_exporter.quiet_grpc", None)
    async with serving(Kubelet(), tmp_path / "kubelet.sock") as path:
        around, _ = await read(path)
    assert "install roce-exporter[gnmi]" in around.states()[0].error


async def test_what_the_host_does_not_have_is_neither_up_nor_down() -> None:
    class Nowhere:
        source = "nowhere"

        async def read(self) -> dict[Any, Any]:
            raise Absent(2, "not here")

    around = Surroundings([Nowhere()], lambda: 0.0)
    await around.read_all()
    assert [(one.up, one.error) for one in around.states()] == [(None, "")]


async def test_a_fault_of_the_exporter_costs_that_source_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty:
        source = "faulty"

        async def read(self) -> dict[Any, Any]:
            raise KeyError("missing")

    around = Surroundings([Faulty()], lambda: 0.0)
    await around.read_all()
    assert [(one.up, one.error) for one in around.states()] == [
        (False, "fault in the exporter: KeyError('missing')")
    ]
    assert "fault in source faulty" in caplog.text


async def test_a_neighbour_that_hangs_does_not_hold_up_the_others() -> None:
    class Stuck:
        source = "stuck"

        async def read(self) -> dict[Any, Any]:
            await asyncio.Event().wait()
            return {}

    class Quick:
        source = "quick"

        async def read(self) -> dict[Any, Any]:
            return {}

    around = Surroundings([Stuck(), Quick()], lambda: 0.0, patience=0.05)
    await around.read_all()
    assert [(one.source, one.up) for one in around.states()] == [("stuck", False), ("quick", True)]
