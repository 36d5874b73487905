"""Which pod has which network device: the kubelet's pod-resources API, over its Unix socket.

https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/ (monitoring device plugin
resources). SR-IOV device plugins name a device by its PCI address. Plugins that share one RDMA device among pods invent
numbers, which say nothing about the device and are left out.

The one request that exists here is `List`, which changes nothing. The channel ends with the read.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from roce_exporter.catalog.named import POD_DEVICE_INFO
from roce_exporter.collect.rounds import Calls
from roce_exporter.host_sources import HostSource
from roce_exporter.net import NetError
from roce_exporter.normalise.series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.host_sources.pod_messages import PodDevice
    from roce_exporter.normalise.series import Value

LIST = "/v1.PodResourcesLister/List"

REPLY_BYTES = 4 * 1024 * 1024
"""Most bytes of a reply: a host of 500 pods has a quarter."""

MOST_DEVICES = 1024
"""Devices of one host with a series each."""
MOST_GIVEN = 65_536
"""Devices of all kinds that are looked at."""
MOST_CHARACTERS = 253
"""Of a name, as Kubernetes allows."""

OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.max_receive_message_length", REPLY_BYTES),
)

_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

_NETWORK = "0x02"
"""The base class of network controllers, as sysfs shows it."""

FLAG = "--kubelet.pod-resources"


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
        reply, devices_of = await self._list()
        try:
            found = await self._call(lambda: network_devices(self._kernel, devices_of(reply)))
        except NetError as error:
            why = f"{FLAG}={self._path}: not one of the kubelet's pod-resources API v1: {error}"
            raise OSError(errno.EBADMSG, why) from None
        return {Series(POD_DEVICE_INFO, one): 1 for one in sorted(found)}

    async def _list(self) -> tuple[bytes, Callable[[bytes], Iterable[PodDevice]]]:
        """The reply, and what decodes it."""
        try:
            from roce_exporter.host_sources.pod_messages import pod_devices  # noqa: PLC0415 - the same
            from roce_exporter.net.grpc import grpc, start_grpc  # noqa: PLC0415 - needed with the option only, and slow to import
        except ImportError as error:
            why = f"{FLAG} needs the package {error.name}; install the extra gnmi, in a clone: pip install '.[gnmi]'"
            raise OSError(errno.ELIBACC, why) from None
        start_grpc()
        channel = grpc.aio.insecure_channel(f"unix:{self._path}", options=OPTIONS)
        try:
            method: Any = channel.unary_unary(LIST)
            return await method(b"", timeout=self._call.timeout), pod_devices
        except grpc.aio.AioRpcError as error:
            raise _fault(self._path, error.code().name, error.details() or "") from None
        finally:
            await channel.close()


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
        if len(found) < MOST_DEVICES and _PCI.fullmatch(one.device) and _is_network(kernel, one.device):
            found.add(one._replace(**{name: text[:MOST_CHARACTERS] for name, text in one._asdict().items()}))
    return found


def _is_network(kernel: Kernel, pci: str) -> bool:
    try:
        return kernel.text(f"bus/pci/devices/{pci}/class").startswith(_NETWORK)
    except OSError:
        return True


def _fault(path: str, code: str, details: str) -> OSError:
    remedies = {
        "UNIMPLEMENTED": "this socket has no pod-resources API v1; correct the path, or update the kubelet (1.20 or newer)",
        "RESOURCE_EXHAUSTED": "the kubelet limits the rate of requests, or its reply is too large",
        "DEADLINE_EXCEEDED": "no answer by the deadline; read the log of the kubelet",
        "UNAVAILABLE": "the kubelet does not answer; is it running?",
    }
    said = " ".join(details.split())[:200]
    return OSError(errno.EPROTO, f"{FLAG}={path}: {code}: {remedies.get(code, said) or code}")
