"""The alerts that real traffic of Soft-RoCE causes on a bad wire, and that it does not cause on a good one.

A condition counts as soon as it is true: tests/alerts tests how long it must last. A silent peer is not tested here:
perftest requests 7 retries, for which rxe retries without limit, and it counts no timeouts.
"""

import json
import os
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import traffic
import yaml
from daemon import Exporter, get, wait_until
from nic import run

pytestmark = pytest.mark.timeout(240)

RULES = Path(__file__).parents[3] / "alerts/roce.rules.yml"
PROGRAM = Path(os.environ.get("ROCELAB_TOOLS", "/nowhere")) / "prometheus"
PROMETHEUS = "127.0.0.1:9090"


@pytest.fixture(scope="module", autouse=True)
def _watched(tmp_path_factory) -> Iterator[None]:
    """Two Soft-RoCE devices, an exporter, and Prometheus with our rules: it scrapes and evaluates every two seconds."""
    traffic.bring_up()
    exporter = Exporter("--sampler.mode=off")
    folder = tmp_path_factory.mktemp("prometheus")
    target = {"targets": [exporter.address], "labels": {"instance": "lab", "cluster": "guest"}}
    config = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "roce", "static_configs": [target]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        group.pop("interval", None)
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    flags = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            (PROGRAM, *flags, f"--web.listen-address={PROMETHEUS}"), stdout=log, stderr=log
        )
    try:
        wait_until(lambda: query("roce_port_up"), 100)
        yield
    finally:
        server.kill()
        server.wait()
    assert exporter.stop() == 0
    traffic.take_down()


def query(expression: str) -> list[dict[str, Any]]:
    """The series of an instant query; empty without a reply."""
    try:
        answer = get(f"http://{PROMETHEUS}/api/v1/query?query={urllib.parse.quote(expression)}")
    except OSError:
        return []
    return list(json.loads(answer)["data"]["result"])


def about_traffic() -> set[tuple[str, str]]:
    """The conditions that are true now, firing or pending: names, each with the RDMA device."""
    found = [series["metric"] for series in query("ALERTS")]
    return {(one["alertname"], one["device"]) for one in found if one.get("device", "") in traffic.DEVICES}


def wait_for(name: str, device: str) -> None:
    wait_until(lambda: (name, device) in about_traffic(), 100)


def test_a_good_wire_is_no_alert() -> None:
    assert traffic.exchange("ib_write_bw", "-s", "4096", "-D", "8") == 0
    assert about_traffic() == set()


def test_packets_that_are_lost_are_one() -> None:
    """The rules judge no ratio below 1,000 packets per second of five minutes: messages of 256 packets have them soon."""
    with traffic.flowing("ib_write_bw", "-m", "256", "-s", "65536", "-D", "100"):
        traffic.lose(0, "0.5%")
        wait_for("RocePacketLoss", "rxe1")


def test_a_link_that_falls_is_one() -> None:
    run("ip", "link", "set", "veth1", "down")
    wait_for("RocePortDown", "rxe1")
    run("ip", "link", "set", "veth1", "up")
    traffic.route()
