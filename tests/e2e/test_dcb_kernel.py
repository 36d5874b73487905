"""DCB netlink against this machine's own kernel, as far as a kernel without a data centre NIC can answer."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys

import pytest

from roce_exporter.kernel import Absent
from roce_exporter.kernel.dcb_netlink import NETLINK_ROUTE, DcbNetlink
from roce_exporter.kernel.netlink import open_kernel_socket

pytestmark = pytest.mark.ci

IN_A_NAMESPACE = ("unshare", "--user", "--map-root-user", "--net")

NOT_PERMITTED = 77
MAKE_AND_ASK = (
    f'ip link add veth-of-test type veth peer name peer-of-test || exit {NOT_PERMITTED}; exec "$0" -c "$1"'
)

ASK_VETH = """
from roce_exporter.kernel import Absent
from roce_exporter.kernel.dcb_netlink import DcbNetlink
dcb = DcbNetlink()
for netdev in ("veth-of-test", "peer-of-test"):
    try:
        print(netdev, dcb.ieee(netdev))
    except OSError as error:
        print(netdev, isinstance(error, Absent), error.errno)
"""


@pytest.fixture
def dcb():
    if not sys.platform.startswith("linux"):
        pytest.skip("no Linux")
    try:
        open_kernel_socket(NETLINK_ROUTE).close()
    except OSError as error:
        pytest.skip(f"no netlink socket here: {error.strerror}")
    conversation = DcbNetlink()
    yield conversation
    conversation.close()


def test_the_loopback_device_has_no_dcb(dcb):
    with pytest.raises(Absent) as caught:
        dcb.ieee("lo")
    assert (caught.value.errno, caught.value.filename) == (errno.EOPNOTSUPP, "lo")


def test_a_missing_device_is_reported_as_such(dcb):
    """A kernel without CONFIG_DCB returns EOPNOTSUPP for every name."""
    with pytest.raises(OSError, match="'nothing-there'") as caught:
        dcb.ieee("nothing-there")
    assert caught.value.errno in (errno.ENODEV, errno.EOPNOTSUPP)
    assert isinstance(caught.value, Absent) == (caught.value.errno == errno.EOPNOTSUPP)


def test_one_socket_answers_every_question(dcb):
    """An error leaves the socket usable, so no other is opened."""
    before = len(os.listdir("/proc/self/fd"))
    said = {said_to(dcb, netdev) for netdev in ("lo", "nothing-there", *netdevs()) * 20}
    assert said <= {None, errno.EOPNOTSUPP, errno.ENODEV}
    assert len(os.listdir("/proc/self/fd")) == before + 1


def netdevs():
    return [name for _, name in socket.if_nameindex()]


def said_to(dcb, netdev):
    try:
        dcb.ieee(netdev)
    except OSError as error:
        return error.errno
    return None


def test_a_veth_pair_in_a_network_namespace_has_no_dcb():
    try:
        made = subprocess.run(
            [*IN_A_NAMESPACE, "sh", "-c", MAKE_AND_ASK, sys.executable, ASK_VETH],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("no unshare")
    if made.returncode == NOT_PERMITTED or made.stderr.startswith("unshare:"):
        pytest.skip(f"not permitted: {made.stderr.strip()}")
    assert made.stderr == ""
    assert made.stdout.splitlines() == [
        f"{netdev} True {errno.EOPNOTSUPP}" for netdev in ("veth-of-test", "peer-of-test")
    ]
