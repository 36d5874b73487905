"""The flags of what is around the devices (pods, RDMA namespaces), and the readers that they describe."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from roce_exporter.cli.shared_flags import add_log_flags
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.network_namespace import FOLDER
from roce_exporter.surroundings import Surroundings
from roce_exporter.surroundings.kernel_log_follower import KERNEL_LOG, KernelLogFollower
from roce_exporter.surroundings.rdma_namespaces import RdmaNamespaces

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel
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
    parser.add_argument(
        "--rdma.namespaces",
        dest="rdma_namespaces",
        default="",
        metavar="SOCKET",
        help="show the RDMA devices of other network namespaces, which `roce-exporter namespaces` reports on this socket",
    )


def add_namespace_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the helper."""
    add = parser.add_argument
    add(
        "--namespaces.socket",
        dest="namespaces_socket",
        default="/run/roce-exporter/namespaces.sock",
        metavar="SOCKET",
        help="Unix socket on which the helper reports (/run/roce-exporter/namespaces.sock)",
    )
    add(
        "--namespaces.group",
        dest="namespaces_group",
        default="",
        metavar="GROUP",
        help="group that may read the report, besides the user of the helper",
    )
    add(
        "--namespaces.folder",
        dest="namespaces_folder",
        default=FOLDER,
        metavar="DIR",
        help=f"where network namespaces are kept by name ({FOLDER})",
    )
    add_log_flags(parser)


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
    if isinstance(kernel, LiveKernel):
        neighbours.append(
            RdmaNamespaces(kernel, options.rdma_namespaces, time.monotonic, patience=options.collect_timeout)
        )
    disabled = KERNEL_LOG in options.source_disable
    followers = [] if disabled else [KernelLogFollower(kernel, time.monotonic, options.collect_timeout)]
    return Surroundings(neighbours, time.monotonic, patience=options.collect_timeout, followers=followers)
