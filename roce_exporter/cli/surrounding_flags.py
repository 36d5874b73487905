"""The flags of what is around the devices (pods, RDMA namespaces), and the readers that they describe."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from roce_exporter.surroundings import Surroundings

if TYPE_CHECKING:
    import argparse

    from roce_exporter.kernel import Kernel
    from roce_exporter.surroundings import Neighbour


def add_surrounding_flags(parser: argparse.ArgumentParser) -> None:
    """Where pods and namespaces are read."""
    parser.add_argument(
        "--kubelet.pod-resources",
        dest="kubelet_pod_resources",
        default="",
        metavar="SOCKET",
        help="show which pod has which network device, from the kubelet's pod-resources API "
        "(/var/lib/kubelet/pod-resources/kubelet.sock); needs roce-exporter[gnmi] and access to the socket",
    )


def make_surroundings(options: argparse.Namespace, kernel: Kernel) -> Surroundings:
    """The readers that the options select."""
    neighbours: list[Neighbour] = []
    if options.kubelet_pod_resources:
        from roce_exporter.surroundings.pod_resources import PodResources  # noqa: PLC0415 - with the option only

        neighbours.append(
            PodResources(
                options.kubelet_pod_resources, kernel, time.monotonic, patience=options.collect_timeout
            )
        )
    return Surroundings(neighbours, time.monotonic, patience=options.collect_timeout)
