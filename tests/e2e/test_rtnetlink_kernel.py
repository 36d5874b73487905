"""Addresses by rtnetlink against this machine's own kernel: its hardware, and veth pairs in a network namespace."""

import os
import shutil
import socket
import subprocess
import sys
import threading

import pytest
from waiting import HUNG_SECONDS

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.netlink import open_kernel_socket
from roce_exporter.host.kernel.rtnetlink import read_link_addresses

pytestmark = pytest.mark.ci

NETLINK_ROUTE = 0
NOT_PERMITTED = 77
IN_A_NAMESPACE = ("unshare", "--user", "--map-root-user", "--net", "--uts")

READ = """
import sys
from roce_exporter.host.kernel.live import LiveKernel
kernel = LiveKernel()
print(kernel.hostname())
for netdev in sys.argv[1:]:
    try:
        print(netdev, kernel.mac_address(netdev))
    except OSError as error:
        print(netdev, type(error).__name__, error.errno, error.strerror)
"""


@pytest.fixture(autouse=True)
def _needs_rtnetlink():
    if not sys.platform.startswith("linux"):
        pytest.skip("no Linux")
    try:
        open_kernel_socket(NETLINK_ROUTE).close()
    except OSError as error:
        pytest.skip(f"no netlink socket here: {error.strerror}")


READ_NEIGHBOURS = """
import json, subprocess, sys
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.recorded.ip_text import parse_neighbours
printed = json.loads(subprocess.check_output(["ip", "-j", "-s", "neigh", "show"]))
for found in (LiveKernel().ip_facts(sys.argv[1]).neighbours, parse_neighbours(printed)[sys.argv[1]]):
    print(*sorted(f"{one.address} {one.state}" for one in found), sep=", ")
"""


def in_a_namespace(prepare, *netdevs, read=READ):
    """The lines that READ prints in a network namespace of its own, after these commands of a shell."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and iproute2")
    script = f'{{ {prepare}; }} >&2 || exit {NOT_PERMITTED}; exec "$0" -c "$@"'
    done = subprocess.run(
        [*IN_A_NAMESPACE, "sh", "-c", script, sys.executable, read, *netdevs],
        capture_output=True,
        text=True,
        timeout=HUNG_SECONDS,
        check=False,
    )
    if done.returncode == NOT_PERMITTED or done.stderr.startswith("unshare:"):
        pytest.skip(f"not permitted: {done.stderr.strip()}")
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="no ethtool to compare with")
def test_the_permanent_addresses_of_this_machine_are_those_of_ethtool():
    for _, netdev in socket.if_nameindex():
        printed = subprocess.run(
            ["ethtool", "-P", netdev], capture_output=True, text=True, check=False
        ).stdout
        permanent = printed.removeprefix("Permanent address:").strip()
        assert read_link_addresses(netdev).permanent == ("" if permanent == "not set" else permanent)


def test_a_device_without_hardware_has_its_current_address_and_a_changed_one_is_read():
    """In such a namespace, as in a pod, the network devices of the host do not exist."""
    outside = next((name for _, name in socket.if_nameindex() if name != "lo"), "eth0")
    prepare = (
        "hostname gpu-7 && ip link add left address 02:00:5e:00:00:01 type veth peer name right address "
        "02:00:5e:00:00:02 && ip link set right address 02:00:5e:00:00:fe"
    )
    assert in_a_namespace(prepare, "left", "right", "lo", outside) == [
        "gpu-7",
        "left 02:00:5e:00:00:01",
        "right 02:00:5e:00:00:fe",
        "lo Absent 99 no Ethernet address of its own",
        f"{outside} Absent 19 No such device",
    ]


def test_a_member_of_a_bond_keeps_its_own_address():
    prepare = (
        "hostname gpu-7 && ip link add left address 02:00:5e:00:00:01 type veth peer name right "
        "&& ip link add bond7 address 02:00:5e:00:00:99 type bond && ip link set left master bond7"
    )
    assert in_a_namespace(prepare, "left", "bond7") == [
        "gpu-7",
        "left 02:00:5e:00:00:01",
        "bond7 02:00:5e:00:00:99",
    ]


def test_neighbours_that_another_program_enters_are_left_out():
    """As Cilium does; the kernel's list and what iproute2 prints of it."""
    prepare = (
        "ip link add left type veth peer name right && ip link set left up && ip neigh add 10.9.9.8 lladdr "
        "02:00:5e:00:00:01 dev left && ip neigh add 10.9.9.9 lladdr 02:00:5e:00:00:02 dev left extern_learn"
    )
    assert in_a_namespace(prepare, "left", read=READ_NEIGHBOURS) == ["10.9.9.8 resolved"] * 2


def test_reads_from_many_threads_leave_nothing_open():
    """The slow chain may use another thread after a read that hangs."""
    found: list[str] = []

    def read():
        for _ in range(5):
            with pytest.raises(Absent, match="no Ethernet address"):
                LiveKernel().mac_address("lo")
            found.append("lo")

    read()
    before = len(os.listdir("/proc/self/fd"))
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 25
    assert len(os.listdir("/proc/self/fd")) == before
