"""What do the rules cost a Prometheus, per port and evaluation, compared with those of another commit, or with another file?

Half an hour of simulated hosts under an incast, some with a fault, is backfilled; then three servers scrape the same hosts every 15 s
at the same time: without rules, with the other rules, and with those of the working tree. The other rules are the same files of a commit
(`ROCE_BENCH_BEFORE`, by default the last one), or one file of the working tree (`ROCE_BENCH_FILE=alerts/compat/node_exporter.rules.yml`). The processor time of
the first is that of scraping. Other load on the machine affects all alike: rely on the ratio. The times of the rules' own clock are valid only where
their sum is below the processor time: else they waited for a processor.
"""

# ruff: noqa: S603 - it runs git, promtool and Prometheus with arguments of its own
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from rule_hosts import PORTS, SCRAPE, Page, open_metrics, simulated
from tables import print_head, print_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parent.parent
FILES = ("alerts/roce.rules.yml", "dashboards/roce-dashboards.rules.yml")
FILE = os.environ.get("ROCE_BENCH_FILE", "")
OTHER = FILE or os.environ.get("ROCE_BENCH_BEFORE", "HEAD")
HOSTS = int(os.environ.get("ROCE_BENCH_HOSTS", "40"))
HISTORY = int(os.environ.get("ROCE_BENCH_HISTORY", "1800"))
SECONDS = int(os.environ.get("ROCE_BENCH_SECONDS", "240"))
"""Duration of the measurement: rules that are evaluated every minute are measured three times or more."""
SETTLE = 45
"""Seconds before it: the first evaluations create all recorded series."""
PREPARE = 60
"""Seconds between the start of backfilling and that of Prometheus, at least; it depends on the number of hosts."""
NEWEST = Path("~/.cache/roce-lab/servers/usr/bin").expanduser()
METRIC_SET = os.environ.get("ROCE_BENCH_SET", "standard")
NOW = "now"
NO_RULES = "none"
BLOCKS = "blocks"
TOP = int(os.environ.get("ROCE_BENCH_TOP", "10"))


class Rule(NamedTuple):
    """A rule, and the seconds between two evaluations."""

    group: str
    place: int
    name: str
    interval: float


def program(name: str) -> str:
    """The newest Prometheus or promtool that tests/newest.sh has unpacked, else the machine's own."""
    return str(NEWEST / name) if (NEWEST / name).exists() else name


def files_of(variant: str) -> tuple[str, ...]:
    """The files of rules, below the working tree."""
    if variant == NO_RULES:
        return ()
    return (FILE,) if variant == FILE else FILES


def rules_of(variant: str, place: str) -> dict[str, Any]:
    """A file of rules: of the working tree, or of the other commit."""
    if variant in (NOW, FILE):
        return yaml.safe_load((ROOT / place).read_text())
    command = ["git", "-C", str(ROOT), "show", f"{OTHER}:{place}"]
    return yaml.safe_load(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def write_configuration(folder: Path, variant: str, port: int) -> Path:
    """The configuration of one Prometheus."""
    files = []
    for place in files_of(variant):
        path = folder / f"{Path(variant).name}-{Path(place).name}"
        path.write_text(yaml.safe_dump(rules_of(variant, place)))
        files.append(str(path))
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {
                "instance": f"gpu-{number}",
                "cluster": "measured",
                "__metrics_path__": f"/gpu-{number}",
            },
        }
        for number in range(HOSTS)
    ]
    jobs = [{"job_name": "roce", "honor_labels": True, "static_configs": targets}]
    config = folder / f"{Path(variant).name}-prometheus.yml"
    times = {"scrape_interval": f"{SCRAPE}s", "evaluation_interval": f"{SCRAPE}s"}
    config.write_text(yaml.safe_dump({"global": times, "rule_files": files, "scrape_configs": jobs}))
    return config


class Fleet(ThreadingHTTPServer):
    """Serves the pages of every host from a moment on."""

    def __init__(self, histories: Sequence[Sequence[Page]], begin: float) -> None:
        super().__init__(("127.0.0.1", 0), Host)
        self.histories = histories
        self.begin = begin

    def page(self, name: str) -> bytes:
        """The page of a host now."""
        history = self.histories[int(name.removeprefix("gpu-")) % len(self.histories)]
        moment = min(int((time.time() - self.begin) / SCRAPE), len(history) - 1)
        return history[moment].text(name).encode()


class Host(BaseHTTPRequestHandler):
    """One scrape."""

    server: Fleet

    def do_GET(self) -> None:
        """The page of the host that the path names."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.server.page(self.path.removeprefix("/")))

    def log_message(self, *words: object) -> None:
        """Log nothing."""


def used_metrics() -> frozenset[str]:
    """The metrics that a rule reads: the history of others would cost time only."""
    text = json.dumps([rules_of(variant, place) for variant in (OTHER, NOW) for place in files_of(variant)])
    return frozenset(re.findall(r"(?<![:\w])(?:roce_\w+|up)(?![:\w])", text.replace("\\n", " ")))


def backfill(folder: Path, histories: Sequence[Sequence[Page]], begin: int, moments: int) -> None:
    """Write the blocks of the history."""
    place = folder / "history.om"
    with place.open("w") as file:
        times = [begin + SCRAPE * moment for moment in range(moments)]
        file.writelines(open_metrics(HOSTS, histories, times, used_metrics()))
    command = [
        program("promtool"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(place),
        str(folder / BLOCKS),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    place.unlink()


class Running:
    """A Prometheus, and the times of its rules."""

    def __init__(self, variant: str, folder: Path, port: int, address: str) -> None:
        data = folder / f"tsdb-{Path(variant).name}"
        shutil.copytree(folder / BLOCKS, data, copy_function=os.link)
        config = write_configuration(folder, variant, port)
        flags = (f"--config.file={config}", f"--storage.tsdb.path={data}", f"--web.listen-address={address}")
        self.variant = variant
        self._address = address
        self._log = folder / f"{Path(variant).name}.log"
        self._times: dict[Rule, dict[str, float]] = defaultdict(dict)
        self._begin = 0.0
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([program("prometheus"), *flags], stderr=log, stdout=log)

    def begin(self) -> None:
        """The measurement begins."""
        self._begin = self.processor_seconds()

    def used(self) -> float:
        """Processor seconds since the measurement began."""
        return self.processor_seconds() - self._begin

    def processor_seconds(self) -> float:
        """Processor time of the process so far."""
        if self._process.poll() is not None:
            raise SystemExit(f"bench: Prometheus ended: {self._log.read_text()[-2000:]}")
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def poll(self) -> None:
        """Note the last evaluation of every rule."""
        for group in self._get("/api/v1/rules?exclude_alerts=true")["data"]["groups"]:
            for number, rule in enumerate(group["rules"]):
                if rule["health"] == "err":
                    raise SystemExit(f"bench: {rule['name']}: {rule['lastError']}")
                if rule["health"] == "ok":
                    key = Rule(group["name"], number, rule["name"], group["interval"])
                    self._times[key][rule["lastEvaluation"]] = rule["evaluationTime"]

    def costs(self) -> dict[Rule, float]:
        """The fastest evaluation of each rule, in seconds: the others waited for a processor."""
        return {rule: min(times.values()) for rule, times in self._times.items()}

    def query(self, expression: str) -> float:
        """The value of an expression; 0 without a result."""
        result = self._get(f"/api/v1/query?query={urllib.parse.quote(expression)}")["data"]["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def missed(self) -> int:
        """Evaluations that began too late."""
        with urllib.request.urlopen(f"http://{self._address}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return int(
            sum(
                float(line.split()[-1])
                for line in lines
                if line.startswith("prometheus_rule_group_iterations_missed_total{")
            )
        )

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self._address}{path}") as answer:
            return json.load(answer)

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()


def print_costs(running: Mapping[str, Running], ports: int) -> None:
    """Milliseconds per port and evaluation, by processor time and by the rules' own times, and the most expensive rules."""
    rounds = SECONDS / SCRAPE
    idle = running[NO_RULES].used()
    by_cpu = [1e3 * (running[variant].used() - idle) / rounds / ports for variant in (OTHER, NOW)]
    costs = {variant: running[variant].costs() for variant in (OTHER, NOW)}
    by_clock = [1e3 * sum(map(per_evaluation, costs[variant].items())) / ports for variant in (OTHER, NOW)]
    active = [running[variant].query('count(ALERTS{alertstate="firing"})') for variant in (OTHER, NOW)]
    print_head(f"{ports} ports, set {METRIC_SET}, per port and evaluation", OTHER, NOW, "ratio")
    print_row("ms of processor time", *by_cpu, by_cpu[1] / by_cpu[0])
    print_row("ms, fastest evaluations of all rules added up", *by_clock, by_clock[1] / by_clock[0])
    print_row("alerts firing", *map(int, active), "" if all(active) else "not valid: no alert fires")
    print_row("evaluations missed", *(running[variant].missed() for variant in (OTHER, NOW)), "")
    for variant, found in costs.items():
        print(f"\n### The most expensive rules, {variant}\n")
        print_head("rule", "group", "every s", "us per port and evaluation")
        for rule, seconds in sorted(found.items(), key=per_evaluation, reverse=True)[:TOP]:
            print_row(
                rule.name, rule.group, int(rule.interval), 1e6 * per_evaluation((rule, seconds)) / ports
            )


def per_evaluation(cost: tuple[Rule, float]) -> float:
    """Seconds per 15 s: a rule that is evaluated every minute counts a quarter."""
    return cost[1] * SCRAPE / cost[0].interval


def main() -> None:
    """Measure and print."""
    if not shutil.which(program("prometheus")):
        print("left out: needs Prometheus; tests/newest.sh unpacks the newest one")
        return
    moments = HISTORY // SCRAPE
    histories = simulated(moments + (SETTLE + SECONDS) // SCRAPE + 8, METRIC_SET)
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), histories, moments)


def run(folder: Path, histories: Sequence[Sequence[Page]], moments: int) -> None:
    """Backfill, scrape, and print what Prometheus reports."""
    begin = int(time.time()) + PREPARE * HOSTS // 40 - HISTORY
    backfill(folder, histories, begin, moments)
    live = begin + HISTORY
    time.sleep(max(live - time.time(), 0))
    print(
        f"{time.time() - live:.0f} s between the history and the first scrape; load {os.getloadavg()[0]:.1f}"
    )
    with Fleet([history[moments:] for history in histories], time.time()) as fleet, ExitStack() as stack:
        threading.Thread(target=fleet.serve_forever, daemon=True).start()
        running = {
            variant: Running(variant, folder, fleet.server_port, f"127.0.0.1:{19192 + number}")
            for number, variant in enumerate((NO_RULES, OTHER, NOW))
        }
        for one in running.values():
            stack.callback(one.close)
        measure([*running.values()])
        print_costs(running, HOSTS * PORTS)
        fleet.shutdown()
    print(f"\nload at the end: {os.getloadavg()[0]:.1f}")


def measure(running: Sequence[Running]) -> None:
    """Let them run."""
    time.sleep(SETTLE)
    for one in running:
        one.begin()
    end = time.monotonic() + SECONDS
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(SCRAPE, left))  # not more often: the answer costs the server, too
        for one in running:
            if one.variant != NO_RULES:
                one.poll()


if __name__ == "__main__":
    main()
