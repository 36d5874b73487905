"""The reply of the kubelet to `v1.PodResourcesLister/List` (k8s.io/kubelet/pkg/apis/podresources/v1/api.proto)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.message import DecodeError

from roce_exporter.net.grpc import message_classes

if TYPE_CHECKING:
    from collections.abc import Iterator

# The names of protobuf's own texts are read as bytes: whatever a pod is called, it is shown.
MESSAGES = {
    "ContainerDevices": "bytes resource_name 1, repeated bytes device_ids 2",
    "ContainerResources": "bytes name 1, repeated ContainerDevices devices 2",
    "PodResources": "bytes name 1, bytes namespace 2, repeated ContainerResources containers 3",
    "ListPodResourcesResponse": "repeated PodResources pod_resources 1",
}
CLASSES = message_classes("v1", MESSAGES)


class PodDevice(NamedTuple):
    """A device that the kubelet gave to a container."""

    device: str
    """As the device plugin calls it; SR-IOV device plugins use the PCI address."""
    namespace: str
    pod: str
    container: str
    resource: str


def pod_devices(reply: bytes) -> Iterator[PodDevice]:
    """Every device of every container.

    Raises:
        ValueError: it is no such reply.
    """
    try:
        message = CLASSES["ListPodResourcesResponse"].FromString(reply)
    except DecodeError:
        raise ValueError("the reply is not one of the kubelet's pod-resources API v1") from None
    for pod in message.pod_resources:
        for container in pod.containers:
            for given in container.devices:
                names = (pod.namespace, pod.name, container.name, given.resource_name)
                for device in given.device_ids:
                    yield PodDevice(*(one.decode(errors="replace") for one in (device, *names)))
