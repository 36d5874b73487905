"""The names that the real node_exporter makes of the counters of real network devices are those of `migrate/node_exporter.py`.

In a network namespace of its own, with a veth pair: its names have queues, which are replaced characters and words.
"""

import os
import re
import subprocess
import sys

import pytest
from tools import lacking, need

from roce_exporter.migrate.node_exporter import ethtool_name

pytestmark = pytest.mark.ci

INSIDE = """
import subprocess, sys, time, urllib.request
from roce_exporter.host.kernel.live import LiveKernel

(program,) = sys.argv[1:]
for command in (
    "ip link set lo up",
    "ip link add v0 numrxqueues 3 numtxqueues 3 type veth peer name v1",
    "mount -t sysfs sysfs /sys",
):
    subprocess.run(command.split(), check=True)
flags = ["--collector.disable-defaults", "--collector.ethtool", "--web.listen-address=127.0.0.1:9100"]
running = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    for _ in range(600):
        try:
            page = urllib.request.urlopen("http://127.0.0.1:9100/metrics").read().decode()
            break
        except OSError:
            time.sleep(0.1)
finally:
    running.terminate()
    running.wait()
names, _ = LiveKernel().ethtool_statistics("v0")
print("\\n".join([*(f"raw {name}" for name in names), *page.splitlines()]))
"""


@pytest.mark.slow
def test_names_of_a_real_device() -> None:
    if os.geteuid():
        lacking("needs root")
    need("ip")
    command = [need("unshare"), "--net", "--mount", sys.executable, "-c", INSIDE, need("node_exporter")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    raw = {line.removeprefix("raw ") for line in printed.splitlines() if line.startswith("raw ")}
    theirs = set(re.findall(r"^(node_ethtool_\w+)\{device=\"v0\"\}", printed, re.MULTILINE))
    assert len(raw) > 10
    assert {ethtool_name(one) for one in raw} == theirs
