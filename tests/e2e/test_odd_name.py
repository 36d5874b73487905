"""A real network device whose name is not valid UTF-8, in a network namespace: it is read like any other, and breaks nothing."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from host_tree import HostTree

pytestmark = pytest.mark.ci

ODD = b"ro\xffce0"
TEXT = "ro\\xffce0"

INSIDE = """
import json, sys
from roce_exporter.host.kernel.live import LiveKernel
kernel = LiveKernel()
(name,) = [name for name in kernel.entries("class/net") if name.startswith("ro")]
print(json.dumps({
    "name": name,
    "address": kernel.text(f"class/net/{name}/address"),
    "link": kernel.ethtool_link(name)["up"],
    "driver_counters": len(kernel.ethtool_statistics(name)[0]),
}))
"""


def in_namespace(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a new network namespace, with that namespace's /sys."""
    unshare = shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None or shutil.which("ip") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "a network namespace needs root, iproute2 and util-linux"
        )
    made = (
        "mount -t sysfs sysfs /sys && ip link add name $(printf 'ro\\377ce0') type veth peer name other && "
        "ip link set $(printf 'ro\\377ce0') up && ip link set other up && "
    )
    return subprocess.run(
        [unshare, "--net", "--mount", "sh", "-c", made + script, "sh", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def _device() -> None:
    made = in_namespace("true")
    if made.returncode:
        pytest.skip(f"this kernel makes no such network device: {made.stderr.strip()}")


@pytest.mark.usefixtures("_device")
def test_the_kernel_is_queried_with_the_bytes_of_the_name() -> None:
    done = in_namespace('exec "$1" -c "$2"', sys.executable, INSIDE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["name"] == TEXT
    assert len(found["address"]) == 17
    assert found["link"] == 1
    assert found["driver_counters"] > 0


@pytest.mark.usefixtures("_device")
def test_a_scrape_holds_everything_of_the_odd_device_and_of_the_others(tmp_path) -> None:
    """The RDMA devices are a tree of files, because this machine has none; the network device is the kernel's own."""
    tree = HostTree(tmp_path, devices=2)
    odd = os.fsdecode(ODD)
    (tree.infiniband / "mlx5_0/device/net" / odd).mkdir(parents=True)
    (tmp_path / "class").mkdir(exist_ok=True)
    script = 'cp -rL "/sys/class/net/$(printf \'ro\\377ce0\')" "$2/class/net/" 2>/dev/null; exec "$1" once "--path.sysfs=$2"'
    (tmp_path / "class/net").mkdir()
    command = os.path.join(os.path.dirname(sys.executable), "roce-exporter")
    done = in_namespace(script, command, str(tmp_path))
    assert done.returncode == 0, done.stderr
    label = 'netdev="ro\\\\xffce0"'
    own = [line for line in done.stdout.splitlines() if label in line]
    assert any(line.startswith("roce_link_") for line in own), "the ethtool series of the device"
    assert 'roce_port_up{device="mlx5_1",port="1"} 1' in done.stdout
    down = [line for line in done.stdout.splitlines() if "source_up" in line and line.endswith(" 0")]
    assert down == []
