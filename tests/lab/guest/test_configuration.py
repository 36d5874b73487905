"""Settings made through the kernel's DCB are exported as `dcb` prints them, and audited."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from daemon import COMMAND, NOBODY, value
from nic import ask_json, run

ALGORITHMS = {"strict": 0, "cbs": 1, "ets": 2, "vendor": 255}
PROFILE = "nvidia-lossless"


@pytest.fixture
def netdev(cards) -> Iterator[str]:
    """The network device of a card with typical settings: RoCE by DSCP 26 on priority 3, alone."""
    name = cards["mlx5_0"].netdevs[0]
    run("dcb", "pfc", "set", "dev", name, "prio-pfc", "all:off", "3:on")
    run("dcb", "app", "add", "dev", name, "dscp-prio", "26:3", "48:6")
    yield name
    run("dcb", "app", "flush", "dev", name)
    run("dcb", "pfc", "set", "dev", name, "prio-pfc", "all:off", "3:on")


def test_scheduling_is_exported_as_dcb_prints_it(netdev, exporter) -> None:
    classes = ("tc-tsa", "all:ets", "6:strict", "tc-bw", "all:10", "3:40", "6:0")
    run("dcb", "ets", "set", "dev", netdev, *classes, "prio-tc", "all:0", "3:3", "6:6")
    printed = ask_json("dcb", "-j", "ets", "show", "dev", netdev)
    samples = exporter.scrape()

    def told(metric: str, label: str) -> list[float | None]:
        return [value(samples, metric, netdev=netdev, **{label: str(number)}) for number in range(8)]

    assert told("roce_config_priority_traffic_class", "priority") == printed["prio_tc"]
    shares = told("roce_config_ets_transmit_bandwidth_ratio", "traffic_class")
    assert shares == [share / 100 for share in printed["tc_bw"]]
    scheduled = told("roce_config_ets_algorithm", "traffic_class")
    assert scheduled == [ALGORITHMS[name] for name in printed["tc_tsa"]]


def test_buffers_are_exported_as_dcb_prints_them(netdev, exporter) -> None:
    sizes = ("buffer-size", "0:20480", "1:262144")
    run("dcb", "buffer", "set", "dev", netdev, "prio-buffer", "all:0", "3:1", *sizes)
    printed = ask_json("dcb", "-j", "buffer", "show", "dev", netdev)
    samples = exporter.scrape()
    for number in range(8):
        of_priority = value(samples, "roce_config_priority_buffer", netdev=netdev, priority=str(number))
        assert of_priority == printed["prio_buffer"][number]
        size = value(samples, "roce_config_buffer_bytes", netdev=netdev, buffer=str(number))
        assert size == printed["buffer_size"][number]


def test_dscps_are_exported(netdev, exporter) -> None:
    samples = exporter.scrape()
    told = [value(samples, "roce_config_dscp_priority", netdev=netdev, dscp=dscp) for dscp in ("26", "48")]
    assert told == [3, 6]
    assert value(samples, "roce_config_dscp_mappings", netdev=netdev) == 2


def findings(netdev: str) -> dict[str, str]:
    """The results of `check settings` for one network device, by check: ok, degraded or unknown."""
    command = [*NOBODY, COMMAND, "check", "settings", f"--audit.profile={PROFILE}", "--format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    checks = json.loads(done.stdout)["findings"]
    return {check["check"]: check["status"] for check in checks if check["netdev"] == netdev}


def test_wrong_settings_are_found(netdev) -> None:
    found = findings(netdev)
    assert (found["pfc"], found["dscp_priority"]) == ("ok", "ok")
    run("dcb", "pfc", "set", "dev", netdev, "prio-pfc", "3:off", "4:on")
    run("dcb", "app", "del", "dev", netdev, "dscp-prio", "26:3")
    run("dcb", "app", "add", "dev", netdev, "dscp-prio", "26:5")
    found = findings(netdev)
    assert (found["pfc"], found["dscp_priority"]) == ("degraded", "degraded")
