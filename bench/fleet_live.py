"""Can one Prometheus scrape and judge a thousand hosts? `python bench/fleet_live.py --set=standard`.

A real Prometheus scrapes simulated hosts, which one process replays (`fleet_server.py`), with all rules of alerts and dashboards, while
storms begin on some hosts. Afterwards it says by its own metrics whether every scrape and every evaluation was on time, and what it all
cost. `--result=FILE` saves everything as JSON; `--table FILE...` prints the table of saved results. The prometheus of the PATH is measured.
"""

# ruff: noqa: S603, S607 - it runs Prometheus and its own server
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fleet_exporter import SETS
from fleet_figures import WARM, Result, figures, longest_evaluations, print_table
from fleet_history import Course, paused_hosts, render, senders
from fleet_pages import Pages
from fleet_queries import Api, board_queries, timed
from fleet_usage import machine, size_of, usage

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parent
RULES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")
CLUSTER = "measured"
BOARDS: dict[str, dict[str, str]] = {"roce-fleet": {}, "roce-host": {"instance": "gpu-1"}}
"""The dashboards that are queried, and what is chosen on them."""
ROUNDS = (0.4, 0.7, 0.95)
"""When the queries are sent, as shares of the run."""
LEAST_MEMORY = 2_500_000_000
"""Bytes of available memory below which a run ends: others need the machine, too."""
POLL = 2.0
FABRIC_SHARE = 0.01
FABRIC_HOSTS = 3
"""RocePfcStormWithoutCulprit needs so many hosts, and this share of the cluster."""


class Running(NamedTuple):
    """The processes of a run, and the API of its Prometheus."""

    generator: int
    prometheus: int
    api: Api
    data: Path
    pages: Pages


def configuration(fleet: Result, generator: int, own: int, pages: str) -> str:
    """A Prometheus with our rules and a fleet on one address."""
    hosts = [
        {
            "targets": [f"127.0.0.1:{generator}"],
            "labels": {"instance": f"gpu-{host}", "__metrics_path__": f"/host/{host}", "cluster": CLUSTER},
        }
        for host in range(fleet.hosts)
    ]
    jobs = [
        {"job_name": "roce", "static_configs": hosts},
        {"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{own}"]}]},
        {"job_name": "generator", "static_configs": [{"targets": [f"127.0.0.1:{generator}"]}]},
    ]
    every = f"{fleet.every}s"
    return json.dumps(
        {
            "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
            "rule_files": [str(path) for path in RULES],
            "scrape_configs": jobs,
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [pages]}]}]},
        }
    )


def free_port() -> int:
    """A port of loopback that no process listens on."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str | Path], log: Path) -> Iterator[subprocess.Popen[str]]:
    """A process, whose standard output can be read; it is ended afterwards."""
    with (
        log.open("w") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def server_command(fleet: Result, histories: Path) -> list[str | Path]:
    """The generator."""
    flags = [f"--{name}={getattr(fleet, name)}" for name in ("hosts", "seconds", "every", "ports")]
    return [sys.executable, HERE / "fleet_server.py", histories, f"--set={fleet.metric_set}", *flags]


@contextlib.contextmanager
def running(fleet: Result, histories: Path, folder: Path) -> Iterator[Running]:
    """The generator and a Prometheus that is ready."""
    own = free_port()
    with Pages() as pages, started(server_command(fleet, histories), folder / "generator.log") as generator:
        assert generator.stdout is not None  # noqa: S101 - it is a pipe
        config, data = folder / "prometheus.json", folder / "data"
        config.write_text(configuration(fleet, int(generator.stdout.readline()), own, pages.address))
        command: list[str | Path] = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{own}",
            "--web.enable-admin-api",
        ]
        with started(command, folder / "prometheus.log") as prometheus:
            api = Api(f"http://127.0.0.1:{own}")
            wait_until_ready(api)
            yield Running(generator.pid, prometheus.pid, api, data, pages)


def wait_until_ready(api: Api, seconds: float = 60.0) -> None:
    """Return as soon as Prometheus is ready.

    Raises:
        TimeoutError: it is not ready in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{api.url}/-/ready"):  # noqa: S310 - a URL of our own
            return
        time.sleep(0.1)
    raise TimeoutError(f"{api.url} is not ready after {seconds:g} s")


def query_boards(fleet: Result, api: Api, span: int) -> None:
    """Time every query of the boards once more."""
    for board, chosen in BOARDS.items():
        found = fleet.queries.setdefault(board, {})
        fleet.answered[board] = 0
        for query in board_queries(board, span, cluster=CLUSTER, job="roce", **chosen):
            timing = timed(api, query, span, fleet.every)
            fleet.answered[board] += timing.series > 0
            found.setdefault(query.panel, []).append(timing.seconds)
            if timing.error:
                fleet.failed_queries.append(f"{board}, {query.panel}: {timing.error}")


def watch(fleet: Result, live: Running, began: float) -> None:
    """Note what the processes use until the run ends; send queries now and then."""
    rounds = [share * fleet.seconds for share in ROUNDS]
    while (passed := time.monotonic() - began) < fleet.seconds and not fleet.aborted:
        note(fleet, live, passed)
        if fleet.timeline[-1]["available"] < LEAST_MEMORY:
            fleet.aborted = f"only {fleet.timeline[-1]['available'] / 1e9:.1f} GB of memory were left"
            return
        if rounds and passed >= rounds[0]:
            rounds.pop(0)
            query_boards(fleet, live.api, int(passed))
        time.sleep(max(0.0, min(POLL, began + fleet.seconds - time.monotonic())))


def note(fleet: Result, live: Running, passed: float) -> None:
    """Append what is used now to the timeline."""
    prometheus, generator, whole = usage(live.prometheus), usage(live.generator), machine()
    fleet.timeline.append(
        {
            "at": passed,
            "prometheus_cpu": prometheus.cpu,
            "resident": prometheus.resident,
            "resident_most": prometheus.most,
            "generator_cpu": generator.cpu,
            "generator_resident": generator.resident,
            "machine_cpu": whole.cpu,
            "available": whole.available,
        }
    )


def used(timeline: list[dict[str, float]]) -> dict[str, float]:
    """Cores and memory of the time since `WARM`, or of all of a short run."""
    first = next((one for one in timeline if one["at"] >= WARM), timeline[0])
    if first is timeline[-1]:
        first = timeline[0]
    last = timeline[-1]
    cores = {
        name: (last[f"{name}_cpu"] - first[f"{name}_cpu"]) / (last["at"] - first["at"])
        for name in ("prometheus", "generator", "machine")
    }
    return {
        "prometheus_cores": cores["prometheus"],
        "generator_cores": cores["generator"],
        "other_cores": cores["machine"] - cores["prometheus"] - cores["generator"],
        "resident_most": last["resident_most"],
        "generator_resident": last["generator_resident"],
        "available_least": min(one["available"] for one in timeline),
    }


def disk(live: Running) -> dict[str, float]:
    """Bytes of the write-ahead log, and per sample of a block that Prometheus makes of all samples."""
    log = size_of(live.data / "wal")
    request = urllib.request.Request(f"{live.api.url}/api/v1/admin/tsdb/snapshot", method="POST")  # noqa: S310 - a URL of our own
    with urllib.request.urlopen(request, timeout=900) as answer:  # noqa: S310 - the same
        name = json.load(answer)["data"]["name"]
    size = count = 0
    for meta in (live.data / "snapshots" / name).glob("*/meta.json"):
        count += json.loads(meta.read_text())["stats"]["numSamples"]
        size += size_of(meta.parent)
    return {"log_bytes": log, "block_bytes": size, "samples": count, "bytes_per_sample": size / max(1, count)}


def measure(fleet: Result, histories: Path, folder: Path, *, with_disk: bool) -> None:
    """Run a fleet and fill its result."""
    said = subprocess.run(["prometheus", "--version"], capture_output=True, text=True, check=True)
    fleet.prometheus = (said.stdout + said.stderr).split("version ")[1].split()[0]
    fleet.environment = {name: os.environ[name] for name in ("GOGC", "GOMEMLIMIT") if name in os.environ}
    course = Course(fleet.seconds, fleet.every, fleet.ports)
    victims = paused_hosts(fleet.hosts, course)
    fleet.expected_storm_pages = senders(fleet.hosts, course)
    fleet.expected_fabric_pages = int(victims >= max(FABRIC_HOSTS, FABRIC_SHARE * fleet.hosts))
    with running(fleet, histories, folder) as live:
        began = time.monotonic()
        watch(fleet, live, began)
        fleet.lasted = time.monotonic() - began
        note(fleet, live, fleet.lasted)
        fleet.usage = used(fleet.timeline)
        fleet.figures = figures(live.api, fleet.every, fleet.lasted)
        fleet.groups = longest_evaluations(live.api, int(fleet.lasted))
        for severity in ("critical", "warning", "info"):
            fleet.fired[severity] = live.pages.fired(severity)
        fleet.pages_repeated = live.pages.repeated("critical")
        fleet.pages = live.pages.listed("critical")
        if with_disk and not fleet.aborted and machine().available > 2 * LEAST_MEMORY:
            with contextlib.suppress(OSError):  # the other results are kept
                fleet.disk = disk(live)


def requested() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="standard", choices=SETS)
    for flag, default in (("--hosts", 1000), ("--ports", 8), ("--every", 15), ("--seconds", 1800)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument(
        "--histories", type=Path, help="folder in which the expositions are kept between runs"
    )
    parser.add_argument("--result", type=Path, help="file for the result, as JSON")
    parser.add_argument(
        "--without-disk", action="store_true", help="write no block of all samples at the end"
    )
    parser.add_argument("--table", type=Path, nargs="+", help="only print the table of these results")
    return parser.parse_args()


def load_result(path: Path) -> Result:
    """A saved result."""
    return Result(**json.loads(path.read_text()))


def main() -> None:
    """Measure one fleet, or print saved results."""
    options = requested()
    if options.table:
        print_table([load_result(path) for path in options.table])
        return
    fleet = Result(options.set, options.hosts, options.ports, options.every, options.seconds)
    folder = Path(tempfile.mkdtemp())
    signal.signal(signal.SIGTERM, lambda *_: setattr(fleet, "aborted", "stopped"))
    try:
        histories = options.histories or folder / "histories"
        course = Course(fleet.seconds, fleet.every, fleet.ports)
        render(fleet.hosts, course, [fleet.metric_set], histories)
        measure(fleet, histories, folder, with_disk=not options.without_disk)
    finally:
        shutil.rmtree(folder)
    if options.result:
        options.result.write_text(json.dumps(dataclasses.asdict(fleet), indent=1))
    print_table([fleet])


if __name__ == "__main__":
    main()
