"""A host that lets the daemon open fewer files than its devices have."""

import socket

import pytest
from chaos_daemon import Samples, exporter
from host_tree import HostTree
from tools import need
from waiting import HUNG_SECONDS

pytestmark = pytest.mark.ci


def of_host(samples: Samples) -> Samples:
    """What is read of the ports. Health comes with the first round after a scrape."""
    return {
        name: value
        for name, value in samples.items()
        if name[0].startswith("roce_port_") and not name[0].startswith("roce_port_health")
    }


def test_too_few_descriptors_cost_no_series_and_refuse_no_client(tmp_path) -> None:
    """Near the limit the exporter opens files for each read, so that connections still get a descriptor."""
    HostTree(tmp_path / "sys")
    flags = (f"--path.sysfs={tmp_path / 'sys'}", f"--collect.timeout={HUNG_SECONDS}")
    with exporter(tmp_path, *flags) as daemon:
        whole = of_host(daemon.scrape())
        assert daemon.seen.num_fds() > 64, "the number that it would like to open"
    with exporter(tmp_path, *flags, prefix=(need("prlimit"), "--nofile=64:64")) as daemon:
        assert of_host(daemon.scrape()) == whole != {}
        host, _, port = daemon.address.rpartition(":")
        held = [socket.create_connection((host, int(port))) for _ in range(100)]
        assert of_host(daemon.scrape()) == whole, "an idle connection was closed for it"
        for client in held:
            client.close()
        assert daemon.stop() == 0
