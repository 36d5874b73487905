"""The daemon's verdict: rounds beside the scrapes, a document, and a fault in a rule that costs nothing else."""

import asyncio
import json
import threading
from collections.abc import Callable

import pytest
from waiting import HUNG_SECONDS

from roce_exporter.checks.finding import Report
from roce_exporter.checks.health.causes import NAMED
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import INTERVAL, HealthWatch
from roce_exporter.checks.health.port_health import RECOVERY, VERSION
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.view.host_view import History
from roce_exporter.web import Request
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

WALL = 1_700_000_000.0


class Host:
    """A simulated host with an exporter, a verdict, and a clock that the test moves."""

    def __init__(self, scenario: str, rules: Callable[[History], Report] = diagnose) -> None:
        self.now = 0.0
        self.collections = 0
        self.fourth = asyncio.Event()
        kernel = simulate(scenario, clock=lambda: self.now, vendors=("mlx5", "bnxt"))
        self.collector = Collector(kernel, Settings(), clock=lambda: self.now)
        self.wall = WALL
        self.health = HealthWatch(
            self.collect, lambda: self.now, lambda: self.wall + self.now, self.sleep, rules
        )
        self.exporter = Exporter(self.collector, [Auditor(load_profile("auto")), self.health])

    async def collect(self) -> None:
        self.collections += 1
        if self.collections == 4:
            self.fourth.set()
        await self.exporter.observe()

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    async def play(self, seconds: float) -> None:
        """Rounds of the verdict for this time."""
        end = self.now + seconds
        while self.now < end:
            await self.health.judge()
            self.now += INTERVAL

    async def scrape(self) -> str:
        return self.exporter.render(await self.exporter.observe(), Format.TEXT).decode()


async def test_a_quiet_host_is_healthy_and_a_lossy_one_is_not() -> None:
    quiet, lossy = Host("quiet"), Host("lossy")
    await quiet.play(120)
    await lossy.play(120)
    text = await quiet.scrape()
    assert 'roce_port_health{device="mlx5_0",port="1"} 1' in text
    assert 'roce_port_health{device="bnxt_re0",port="1"} 1' in text
    assert "roce_port_health_reason{" not in text
    text = await lossy.scrape()
    assert 'roce_port_health{device="mlx5_0",port="1"} 2' in text
    assert 'roce_port_health_reason{device="mlx5_0",port="1",reason="link_errors"} 2' in text
    assert 'roce_exporter_source_up{source="health"} 1' in text


async def test_the_first_round_knows_nothing_yet() -> None:
    host = Host("quiet")
    await host.health.judge()
    document = host.health.document()
    assert {port["health"] for port in document["ports"]} == {"unknown"}
    assert document["ports"][0]["reasons"][0]["reason"] == "no_history"


async def test_a_round_uses_the_collection_of_a_scrape() -> None:
    host = Host("quiet")
    await host.health.judge()
    assert host.collections == 1
    host.now += INTERVAL
    await host.exporter.observe()
    await host.health.judge()
    assert host.collections == 1
    host.now += INTERVAL
    await host.health.judge()
    assert host.collections == 2


async def test_the_document_has_every_reason_with_its_side_and_runbook() -> None:
    host = Host("lossy")
    await host.play(120)
    document = json.loads(json.dumps(host.health.document()))
    assert document["version"] == VERSION == 1
    assert document["time"] == WALL + 105
    assert document["health"] == "degraded"
    assert document["summary"] == "mlx5_0/1 degraded: link_errors (link)"
    worst = next(port for port in document["ports"] if port["device"] == "mlx5_0")
    reason = worst["reasons"][0]
    assert (reason["reason"], reason["side"], reason["runbook"]) == ("link_errors", "link", "RocePortFaulty")
    assert reason["evidence"]
    assert reason["next"]
    fit = next(port for port in document["ports"] if port["device"] == "bnxt_re0")
    assert (fit["health"], fit["reasons"]) == ("healthy", [])


async def test_a_fault_in_a_rule_is_counted_and_costs_no_metric(caplog) -> None:
    failing = True

    def rules(history: History) -> Report:
        if failing:
            raise ZeroDivisionError
        return diagnose(history)

    host = Host("quiet", rules)
    await host.health.judge()
    assert "fault in source health" in caplog.text
    text = await host.scrape()
    assert 'roce_exporter_source_up{source="health"} 0' in text
    assert "roce_port_up{" in text
    failing = False
    await host.play(60)
    text = await host.scrape()
    assert 'roce_exporter_source_up{source="health"} 1' in text
    assert 'roce_port_health{device="mlx5_0",port="1"} 1' in text


async def test_the_verdict_runs_until_it_is_cancelled() -> None:
    host = Host("quiet")
    task = asyncio.create_task(host.health.run())
    await host.fourth.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert host.now >= 3 * INTERVAL


async def test_a_scrape_never_waits_for_the_rules() -> None:
    """The rules run in another thread: a scrape during a round gets the verdict before it."""
    begun, release = threading.Event(), threading.Event()

    def rules(history: History) -> Report:
        begun.set()
        assert release.wait(HUNG_SECONDS)
        return diagnose(history)

    host = Host("quiet", rules)
    task = asyncio.create_task(host.health.judge())
    await asyncio.to_thread(begun.wait)
    host.now += 1
    text = await host.scrape()
    assert "roce_port_up{" in text
    assert "roce_port_health{" not in text
    release.set()
    await task
    host.now += 1
    assert "roce_port_health{" in await host.scrape()


async def get(host: Host, path: str) -> tuple[int, bytes]:
    path, _, query = path.partition("?")
    response = await Application((HostPages(host.exporter),))(Request("GET", path, {}, query))
    return int(response.status), response.body


FAULT = NAMED["crc_errors"].finding("mlx5_0", "1", ("5 packets",), harm=1.0)


class Rules:
    """Rules that find one fault as long as they are told to, and take this long on the host's clock."""

    def __init__(self) -> None:
        self.wrong = True
        self.seconds = 0.0
        self.host: Host | None = None

    def __call__(self, history: History) -> Report:
        if self.host is not None:
            self.host.now += self.seconds
        return Report((FAULT,) if self.wrong else (), ())


def reasons(host: Host) -> list[str]:
    (port,) = (one for one in host.health.document()["ports"] if one["device"] == "mlx5_0")
    return [one["reason"] for one in port["reasons"]]


@pytest.mark.parametrize("step", [-86_400.0, 86_400.0])
async def test_a_clock_that_is_set_neither_ends_nor_prolongs_a_reason(step) -> None:
    rules = Rules()
    host = Host("quiet", rules)
    await host.play(60)
    rules.wrong = False
    host.wall += step
    await host.play(RECOVERY - 60)
    assert reasons(host) == [NAMED["crc_errors"].name]
    document = host.health.document()
    (port,) = (one for one in document["ports"] if one["device"] == "mlx5_0")
    shown = [document["time"], port["since"], port["reasons"][0]["since"]]
    assert all(0 <= host.wall + host.now - time <= RECOVERY + 60 for time in shown), "in today's time"
    await host.play(90)
    assert reasons(host) == []


async def test_a_port_is_never_degraded_without_a_reason() -> None:
    """A reason that ends while the rules run was there when its port was judged."""
    rules = Rules()
    host = Host("quiet", rules)
    rules.host = host
    await host.play(30)
    rules.wrong, rules.seconds = False, 13.0  # a collection 295 s after the last sign, judged at 308
    for _ in range(20):
        await host.play(INTERVAL)
        document = host.health.document()
        (port,) = (one for one in document["ports"] if one["device"] == "mlx5_0")
        assert (port["health"] == "degraded") == bool(port["reasons"])


async def test_health_json_is_public_and_says_when_it_is_off() -> None:
    host = Host("lossy")
    await host.play(60)
    status, body = await get(host, "/health.json")
    assert status == 200
    assert json.loads(body)["version"] == 1
    status, body = await get(host, "/health.json?version=2")
    document = json.loads(body)
    assert (status, document["version"]) == (200, 2)
    assert {one["topic"] for one in document["findings"]} == {"health"}
    assert {one["status"] for one in document["ports"]} <= {"ok", "degraded", "failed", "unknown"}
    assert [(await get(host, f"/health.json?{query}"))[0] for query in ("version=3", "a=1")] == [400, 400]
    application = Application((HostPages(host.exporter),))
    assert "/health.json" not in application.private  # it says nothing that /metrics does not
    host.exporter.parts.remove(host.health)
    status, body = await get(host, "/health.json")
    assert status == 404
    assert b"--source.disable=health" in body


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vendor", "minutes"),
    [
        ("mlx5", 30),
        *(
            pytest.param(vendor, 240, marks=pytest.mark.ci)
            for vendor in ("mlx5", "bnxt", "ionic", "ice", "mlx5-lag")
        ),
    ],
)
async def test_quiet_hours_are_nothing_but_healthy(vendor, minutes) -> None:
    """24 hours show nothing more than four: a sample of every minute, from the second on."""
    kernel_time = 0.0
    kernel = simulate("quiet", clock=lambda: kernel_time, vendors=(vendor, vendor))
    collector = Collector(kernel, Settings(refresh=10.0), clock=lambda: kernel_time)
    exporter = Exporter(collector, [Auditor(load_profile("auto"))])
    health = HealthWatch(exporter.observe, lambda: kernel_time, lambda: WALL + kernel_time)
    exporter.parts.append(health)
    while kernel_time < 60 * minutes:
        await health.judge()
        document = health.document()
        if kernel_time:
            assert document["health"] == "healthy", document["summary"]
            assert all(not port["reasons"] for port in document["ports"])
        kernel_time += 60.0
