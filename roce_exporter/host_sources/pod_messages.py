"""The reply of the kubelet to `v1.PodResourcesLister/List` (k8s.io/kubelet/pkg/apis/podresources/v1/api.proto)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.net.grpc import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

POD_RESOURCES = 1
NAME, NAMESPACE, CONTAINERS = 1, 2, 3
"""Of PodResources."""
DEVICES = 2
"""Of ContainerResources, which has its name as a pod has."""
RESOURCE, DEVICE_IDS = 1, 2
"""Of ContainerDevices."""


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
            for given in _each(container, DEVICES):
                names = (namespace, name, _text(container, NAME), _text(given, RESOURCE))
                for device in _each(given, DEVICE_IDS):
                    yield PodDevice(device.decode(errors="replace"), *names)


def _each(message: bytes, wanted: int) -> Iterator[bytes]:
    return (content for field, content in fields(message) if field == wanted)


def _text(message: bytes, wanted: int) -> str:
    return next(_each(message, wanted), b"").decode(errors="replace")
