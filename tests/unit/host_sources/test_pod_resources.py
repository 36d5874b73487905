"""The kubelet's pod-resources API: a real gRPC server on a Unix socket whose replies are encoded by hand."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kernel import host
from waiting import HUNG_SECONDS

from roce_exporter.host.kernel import Absent
from roce_exporter.host_sources import HostSource, HostSources
from roce_exporter.host_sources.pod_resources import MOST_DEVICES, PodResources, pod_devices
from roce_exporter.net import grpc as grpc_fields
from roce_exporter.net.grpc import grpc

VF, SECOND, THIRD, GPU = "0000:3b:01.2", "0000:3b:01.3", "0000:3b:01.4", "0000:5e:00.0"


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
) + pod("storage", "nvmf", container("target", "rdma/hca_shared", "17", THIRD))


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


HOST = host(
    {f"sys/bus/pci/devices/{pci}/class": text for pci, text in ((VF, "0x020000\n"), (GPU, "0x030200\n"))}
)


async def read(path: str, seconds: float = HUNG_SECONDS) -> tuple[HostSources, list[tuple[str, ...]]]:
    around = HostSources([PodResources(path, HOST, seconds)], lambda: 0.0, seconds + 20)
    await around.read_once()
    (found,) = around.samples()
    assert set(found.values) <= {1}
    return around, [series.labels for series in found.series]


async def test_network_devices_of_pods_have_a_series(tmp_path) -> None:
    """SECOND and THIRD have no PCI class here, as in a container that does not see them; a GPU and an invented number are left out."""
    kubelet = Kubelet()
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        around, found = await read(path)
    assert found == [
        (VF, "training", "llama-0", "worker", "nvidia.com/sriov_rdma"),
        (SECOND, "training", "llama-0", "worker", "nvidia.com/sriov_rdma"),
        (THIRD, "storage", "nvmf", "target", "rdma/hca_shared"),
    ]
    assert kubelet.requests == [b""], "List has no parameters"
    (state,) = around.states()
    assert (state.source, state.up, state.error) == ("pod_resources", True, "")


def test_each_container_is_read_once_for_its_name(monkeypatch) -> None:
    """The kubelet's order of fields is not known: the name may come last, or never."""
    read, fields = [], grpc_fields.fields
    monkeypatch.setattr(grpc_fields, "fields", lambda message: read.append(1) or fields(message))
    assert list(pod_devices(pod("a", "b", field(2, field(1, "r")) * 500))) == []
    assert len(read) < 3 * 500


async def test_the_number_of_series_is_bounded(tmp_path) -> None:
    names = [f"{number:04x}:00:00.0" for number in range(MOST_DEVICES + 5)]
    kubelet = Kubelet(pod("a", "b", container("c", "d", *names)))
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        _, found = await read(path)
    assert len(found) == MOST_DEVICES


@pytest.mark.parametrize(
    ("kubelet", "service", "remedy"),
    [
        (Kubelet(status=grpc.StatusCode.RESOURCE_EXHAUSTED), "v1", "limits the rate"),
        (Kubelet(status=grpc.StatusCode.INTERNAL), "v1", "said the kubelet"),
        (Kubelet(b"\xff\xff\xff"), "v1", "not one of the kubelet's pod-resources API v1"),
        (Kubelet(), "v1alpha1", "update the kubelet (1.20 or newer)"),  # which had this version alone
    ],
)
async def test_a_refusal_is_one_line_with_the_path(tmp_path, kubelet, service, remedy) -> None:
    async with serving(kubelet, tmp_path / "kubelet.sock", f"{service}.PodResourcesLister") as path:
        around, found = await read(path)
    (state,) = around.states()
    assert (found, state.up, state.errors_total) == ([], False, 1)
    assert f"--kubelet.pod-resources={path}" in state.error
    assert remedy in state.error
    assert "\n" not in state.error


async def test_a_kubelet_that_hangs_costs_its_deadline(tmp_path) -> None:
    kubelet = Kubelet()
    kubelet.hangs = True
    async with serving(kubelet, tmp_path / "kubelet.sock") as path:
        around, found = await read(path, 0.2)
        assert (found, around.states()[0].up) == ([], False)
        assert "DEADLINE_EXCEEDED" in around.states()[0].error


@pytest.mark.parametrize(
    ("name", "writable", "said"),
    [
        ("none", True, "No such file or directory; mount the folder of the kubelet's socket"),
        ("file", True, "is not a socket"),
        ("left.sock", True, "is it running?"),
        ("left.sock", False, "permission denied; run the exporter as the socket's user"),
    ],
)
async def test_a_place_without_a_kubelet_is_one_line_with_the_remedy(
    tmp_path, monkeypatch, name, writable, said
) -> None:
    """The kubelet's socket belongs to root. Root may write to any, so the test answers for the kernel."""
    (tmp_path / "file").write_text("")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    place = str(tmp_path / name)
    monkeypatch.setattr(os, "access", lambda path, mode, **_: writable or (path, mode) != (place, os.W_OK))
    around, _ = await read(place)
    assert said in around.states()[0].error


async def test_without_grpc_the_extra_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "roce_exporter.net.grpc", None)
    async with serving(Kubelet(), tmp_path / "kubelet.sock") as path:
        around, _ = await read(path)
    assert "pip install '.[gnmi]'" in around.states()[0].error


class Source(HostSource):
    """A neighbour that raises this error, hangs, or has nothing to say."""

    def __init__(self, source: str, error: Exception | None = None, *, hangs: bool = False) -> None:
        self.source, self.error, self.hangs = source, error, hangs

    async def read(self) -> dict[Any, Any]:
        if self.error:
            raise self.error
        if self.hangs:
            await asyncio.Event().wait()
        return {}


async def test_a_source_that_fails_or_hangs_costs_itself_alone(caplog) -> None:
    """What the host does not have is neither up nor down."""
    sources = (
        Source("absent", Absent(2, "not here")),
        Source("faulty", KeyError("missing")),
        Source("stuck", hangs=True),
        Source("quick"),
    )
    around = HostSources(sources, lambda: 0.0, 0.05)
    await around.read_once()
    states = {one.source: one for one in around.states()}
    assert {name: one.up for name, one in states.items()} == {
        "absent": None,
        "faulty": False,
        "stuck": False,
        "quick": True,
    }
    assert (states["absent"].error, states["faulty"].error) == (
        "",
        "fault in the exporter: KeyError('missing')",
    )
    assert "fault in source faulty" in caplog.text
