"""Probes on a real kernel: what `ib_write_bw` carries over Soft-RoCE, and faults that netem and a process make."""

import json
import subprocess
import sys
from pathlib import Path

import traffic
from nic import run

import roce_exporter

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
BENCH = Path(__file__).parents[3] / "bench" / "probe_faults.py"


def test_the_bandwidth_of_a_rail_is_what_perftest_measures_in_both_directions(tmp_path: Path) -> None:
    """Soft-RoCE in an emulated processor is far below the 10 Gb/s that its port reports: the rail is slow."""
    hosts = dict(zip(("one", "two"), zip(traffic.DEVICES, traffic.ADDRESSES, strict=True), strict=True))
    groups = [{"targets": [address], "labels": {"host": host}} for host, (_, address) in hosts.items()]
    (tmp_path / "ports.json").write_text(json.dumps(groups))
    traffic.bring_up()
    try:
        ends = [
            subprocess.Popen(
                [
                    *(COMMAND, "probe", f"--probe.targets={tmp_path / 'ports.json'}", f"--bandwidth={peer}"),
                    *("--format=json", f"--device.include={device}"),
                ],
                stdout=subprocess.PIPE,
            )
            for peer, (device, _) in zip(("two", "one"), hosts.values(), strict=True)
        ]
        documents = [json.loads(end.communicate(timeout=300)[0]) for end in ends]
    finally:
        traffic.take_down()
    assert [end.returncode for end in ends] == [1, 1]
    for document, device in zip(documents, traffic.DEVICES, strict=True):
        (finding,) = document["findings"]
        assert (finding["check"], finding["device"], finding["status"]) == (
            "rail_bandwidth",
            device,
            "degraded",
        )
        rate, unit = finding["found"].split()
        assert 0 < float(rate) < 5
        assert unit == "Gbit/s"


def test_faults_of_a_router_and_of_a_process_are_named() -> None:
    """One of each kind; the table of docs/probing.md has all."""
    run("modprobe", "sch_netem")
    faults = ("netem: port loses 10 %", "netem: port delays by 20 ms", "responder busy")
    env = {
        "PYTHONPATH": str(Path(roce_exporter.__file__).parents[1]),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    done = subprocess.run(
        [sys.executable, BENCH, "1", *faults],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| 1 | 1 |") == len(faults)
