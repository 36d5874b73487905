"""What evaluating all rules costs on a large fleet: `python tests/alerts/measure_cost.py --hosts 1000`.

Every series that the cases of the tests know, healthy, on one port of each host, is written as blocks by promtool; a
real Prometheus then evaluates the rules on them and says how long each took. Multiply by the ports per host.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from alert_cases import CASES
from alert_hooks import answers, free_port, wait_until
from alert_promtool import RULES
from alert_scenario import Jump, Level, Rate, metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alert_scenario import Shape

AHEAD = 20 * 60
"""Seconds of samples after now: what the rules are evaluated on while Prometheus runs."""


def shapes() -> dict[str, Shape]:
    """All series of one host."""
    return {name: shape for case in CASES for name, shape in {**case.series, **case.background}.items()}


def value(shape: Shape, elapsed: float) -> float | None:
    """What a healthy host shows; counters grow a little, as real ones do."""
    if isinstance(shape, Level):
        return shape.healthy
    assert isinstance(shape, Rate | Jump)
    return shape.healthy * elapsed


def exposition(hosts: int, moments: range) -> Iterator[str]:
    """OpenMetrics with timestamps, metric by metric."""
    names = sorted(shapes().items())
    for series, shape in names:
        name = metric(series)
        inside = series.removeprefix(name).strip("{}")
        for host in range(hosts):
            target = f'cluster="east",job="roce",instance="h{host}"{"," if inside else ""}{inside}'
            for moment in moments:
                if (sample := value(shape, moment - moments.start)) is not None:
                    yield f"{name}{{{target}}} {sample:.12g} {moment}\n"
    yield "# EOF\n"


def evaluated(address: str) -> list[dict[str, Any]]:
    """The rule groups, once each has been evaluated on the data for the second time."""
    groups = json.loads(answers(f"http://{address}/api/v1/rules")())["data"]["groups"]
    return groups if all(rule["health"] == "ok" for group in groups for rule in group["rules"]) else []


def measure(folder: Path, hosts: int, step: int, minutes: int) -> None:
    """Make the data, run Prometheus, print the table."""
    now = int(time.time())
    moments = range(now - minutes * 60, now + AHEAD, step)
    with (folder / "data.om").open("w") as file:
        file.writelines(exposition(hosts, moments))
    blocks = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(folder / "data.om"),
        str(folder / "data"),
    ]
    subprocess.run(blocks, check=True, stdout=subprocess.DEVNULL)
    config = {"global": {"evaluation_interval": "30s"}, "rule_files": [str(RULES)]}
    # the blocks reach beyond now, so all that is recorded now is out of order
    config["storage"] = {"tsdb": {"out_of_order_time_window": "1d"}}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
        "--storage.tsdb.retention.time=10y",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: evaluated(address), 180)
            time.sleep(60)  # two more evaluations, with what the first recorded
            report(hosts, len(shapes()), step, evaluated(address))
        finally:
            process.terminate()


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def report(hosts: int, series: int, step: int, groups: list[dict[str, Any]]) -> None:
    """Print what each group and the dearest rules cost."""
    rules = [(rule["evaluationTime"], rule["name"]) for group in groups for rule in group["rules"]]
    say(f"{hosts} hosts x {series} series, a sample every {step} s, {len(rules)} rules")
    for group in groups:
        say(f"  {group['name']:<18} {group['evaluationTime']:8.3f} s")
    say(f"  {'all':<18} {sum(group['evaluationTime'] for group in groups):8.3f} s per evaluation")
    say("dearest rules:")
    for cost, name in sorted(rules, reverse=True)[:8]:
        say(f"  {cost:8.3f} s  {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--step", type=int, default=60, help="seconds between samples")
    parser.add_argument("--minutes", type=int, default=65, help="how far back the samples go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        measure(Path(place), options.hosts, options.step, options.minutes)
