"""Which pod has which network device: the kubelet's pod-resources API, over its Unix socket.

https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/ (monitoring device plugin
resources), k8s.io/kubelet/pkg/apis/podresources/v1/api.proto. SR-IOV device plugins name a device by its PCI address. Plugins that share one RDMA device among pods invent
numbers, which say nothing about the device and are left out.

The one request that exists here is `List`, which changes nothing. The channel ends with the read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from roce_exporter.catalog.named import POD_DEVICE_INFO
from roce_exporter.collect.rounds import Calls
from roce_exporter.host.inventory import PCI_ADDRESS
from roce_exporter.host.kernel import Kernel, read_or
from roce_exporter.host_sources import HostSource
from roce_exporter.net import NetError
from roce_exporter.normalise.series import Series, Value

LIST = "/v1.PodResourcesLister/List"
REPLY_BYTES = 4 * 1024 * 1024
"""Most bytes of a reply: a host of 500 pods has a quarter."""
MOST_DEVICES = 1024  # devices of one host with a series each
MOST_GIVEN = 65_536  # devices of all kinds that are looked at
MOST_CHARACTERS = 253  # of a name, as Kubernetes allows

_NETWORK = "0x02"  # the base class of network controllers, as sysfs shows it
FLAG = "--kubelet.pod-resources"

POD_RESOURCES = 1
NAME, NAMESPACE, CONTAINERS = 1, 2, 3
"""Of PodResources."""
DEVICES = 2  # of ContainerResources, which has its name as a pod has
RESOURCE, DEVICE_IDS = 1, 2  # of ContainerDevices


class PodDevice(NamedTuple):
    """A device that the kubelet gave to a container."""

    device: str
    """As the device plugin calls it; SR-IOV device plugins use the PCI address."""
    namespace: str
    pod: str
    container: str
    resource: str


def pod_devices(reply: bytes) -> Iterator[PodDevice]:
    """Every device of every container, one after the other: a reply may have any number. NetError: it is no such reply.

    Whatever a pod is called, it is shown.
    """
    for pod in _each(reply, POD_RESOURCES):
        namespace, name = _text(pod, NAMESPACE), _text(pod, NAME)
        for container in _each(pod, CONTAINERS):
            place = (namespace, name, _text(container, NAME))
            for given in _each(container, DEVICES):
                names = (*place, _text(given, RESOURCE))
                for device in _each(given, DEVICE_IDS):
                    yield PodDevice(device.decode(errors="replace"), *names)


def _each(message: bytes, wanted: int) -> Iterator[bytes]:
    from roce_exporter.net.grpc import fields  # noqa: PLC0415 - needed with the option only, and slow to import

    return (content for field, content in fields(message) if field == wanted)


def _text(message: bytes, wanted: int) -> str:
    return next(_each(message, wanted), b"").decode(errors="replace")


class PodResources(HostSource):
    """The kubelet of one host."""

    source = "pod_resources"

    def __init__(self, path: str, kernel: Kernel, timeout: float = 5.0) -> None:
        self._path = path
        self._kernel = kernel
        self._call = Calls(timeout)

    async def read(self) -> Mapping[Series, Value]:
        """One series per network device of a pod. OSError: no socket, no permission, no usable reply; one line with the remedy."""
        await self._call(partial(check_socket, self._path))
        reply = await self._list()
        try:
            found = await self._call(lambda: network_devices(self._kernel, pod_devices(reply)))
        except NetError as error:
            why = f"{FLAG}={self._path}: not one of the kubelet's pod-resources API v1: {error}"
            raise OSError(errno.EBADMSG, why) from None
        return {Series(POD_DEVICE_INFO, one): 1 for one in sorted(found)}

    async def _list(self) -> bytes:
        try:
            from roce_exporter.net.grpc import CHANNEL_OPTIONS, grpc, start_grpc  # noqa: PLC0415 - as above
        except ImportError as error:
            why = f"{FLAG} needs the package {error.name}; install the extra gnmi, in a clone: pip install '.[gnmi]'"
            raise OSError(errno.ELIBACC, why) from None
        start_grpc()
        options = (*CHANNEL_OPTIONS, ("grpc.max_receive_message_length", REPLY_BYTES))
        channel = grpc.aio.insecure_channel(f"unix:{self._path}", options=options)
        try:
            method: Any = channel.unary_unary(LIST)
            reply: bytes = await method(b"", timeout=self._call.timeout)
        except grpc.aio.AioRpcError as error:
            raise _fault(self._path, error.code().name, error.details() or "") from None
        finally:
            await channel.close()
        return reply


def check_socket(path: str) -> None:
    """Refuse a path that no kubelet can be reached at. OSError: one line with the path and the remedy."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        remedy = "mount the folder of the kubelet's socket, or correct the path"
        raise OSError(error.errno, f"{FLAG}={path}: {os.strerror(error.errno or 0)}; {remedy}") from None
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.ENOTSOCK, f"{FLAG}={path}: is not a socket; correct the path")
    if not os.access(path, os.W_OK, effective_ids=True):
        remedy = "run the exporter as the socket's user, or give its user write access to the socket"
        raise OSError(errno.EACCES, f"{FLAG}={path}: permission denied; {remedy}")


def network_devices(kernel: Kernel, devices: Iterable[PodDevice]) -> set[PodDevice]:
    """Those that are network devices by their PCI class, or whose class is not visible here; no others after `MOST_DEVICES`."""
    found: set[PodDevice] = set()
    for one in islice(devices, MOST_GIVEN):
        if (
            len(found) < MOST_DEVICES
            and PCI_ADDRESS.fullmatch(one.device)
            and read_or(_NETWORK, kernel.text, f"bus/pci/devices/{one.device}/class").startswith(_NETWORK)
        ):
            found.add(one._replace(**{name: text[:MOST_CHARACTERS] for name, text in one._asdict().items()}))
    return found


def _fault(path: str, code: str, details: str) -> OSError:
    remedies = {
        "UNIMPLEMENTED": "this socket has no pod-resources API v1; correct the path, or update the kubelet (1.20 or newer)",
        "RESOURCE_EXHAUSTED": "the kubelet limits the rate of requests, or its reply is too large",
        "DEADLINE_EXCEEDED": "no answer by the deadline; read the log of the kubelet",
        "UNAVAILABLE": "the kubelet does not answer; is it running?",
    }
    said = " ".join(details.split())[:200]
    return OSError(errno.EPROTO, f"{FLAG}={path}: {code}: {remedies.get(code, said) or code}")
