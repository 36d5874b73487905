"""The IP side against this machine's kernel, in a network namespace of its own: `ip -j` and `ip route get` are the oracle."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HUNG_SECONDS

pytestmark = pytest.mark.ci

NOT_PERMITTED = 77
IN_A_NAMESPACE = ("unshare", "--user", "--map-root-user", "--net")

TWO_RAILS = """
ip link set lo up
for rail in 1 2; do
  ip link add r$rail type veth peer name p$rail; ip link set p$rail up; ip link set r$rail up
  ip addr add 10.0.$rail.1/24 dev r$rail; ip addr add 2001:db8:$rail::1/64 dev r$rail nodad
done
while ip -6 addr show tentative | grep -q .; do sleep 0.1; done
"""
"""Its last line waits until the kernel has checked the link-local addresses: a state that changes between two readers."""

COMPARE = Path(__file__).with_name("ip_side_in_namespace.py")


def in_a_namespace(what, *words):
    """What the script prints in a namespace with two rails, as JSON."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and iproute2")
    script = f'{{ {TWO_RAILS.strip()}; }} >&2 || exit {NOT_PERMITTED}; exec "$0" "$@"'
    done = subprocess.run(
        [*IN_A_NAMESPACE, "sh", "-c", script, sys.executable, str(COMPARE), what, *words],
        capture_output=True,
        text=True,
        timeout=HUNG_SECONDS,
        check=False,
    )
    if done.returncode == NOT_PERMITTED or done.stderr.startswith("unshare:"):
        pytest.skip(f"not permitted: {done.stderr.strip()}")
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_kernels_replies_are_those_of_ip():
    """Both ways to the same facts: pyroute2's messages, and the text of iproute2 as a recording has it."""
    found = in_a_namespace("facts")
    assert found["netlink"] == found["printed"]
    assert len(found["netlink"]["r1"]["routes"]) > 8
    assert {one["state"] for one in found["netlink"]["r1"]["neighbours"]} == {"resolved", "failed"}


@pytest.mark.parametrize("seed", range(4))
def test_recorded_rules_and_routes_lead_where_the_kernel_leads(seed):
    """Random rules and routes of both versions of IP: every lookup has the kernel's result, or is unknown for a reason."""
    found = in_a_namespace("lookups", str(seed))
    assert found["wrong"] == []
    assert found["compared"] > 100
    assert found["known"] > found["compared"] / 2


def test_paths_are_those_of_ip_route_get():
    assert in_a_namespace("paths") == []


def test_a_list_is_cut_and_this_is_said():
    """A router on the host may have 100,000 routes."""
    found = in_a_namespace("capped")
    assert found == {"routes": 1000, "capped": ["route"], "descriptors": 0}


def test_reads_leave_no_descriptor_and_no_thread():
    assert in_a_namespace("leaks") == {"descriptors": 0, "threads": 0}
