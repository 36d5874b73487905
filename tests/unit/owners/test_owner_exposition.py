"""Owners in the exposition: next to a collection, which neither waits for a survey nor makes one."""

import asyncio
import json

from clock import Clock
from owner_fakes import FakeHost, process, queue_pair, surveyor
from waiting import Gate

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.owners import Surveyor
from roce_exporter.web import Request
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

DEVICES = ("mlx5_0", "mlx5_1")


def setup() -> tuple[FakeHost, Surveyor, Exporter]:
    host = FakeHost({name: [queue_pair(1, 7)] for name in DEVICES})
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")
    found = surveyor(host, Clock())
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5", "mlx5"], seed=1)
    return host, found, Exporter(Collector(kernel, Settings(), lambda: 0.0), [found])


async def scrape(exporter: Exporter) -> str:
    return exporter.render(await exporter.observe(), Format.TEXT).decode()


async def test_a_scrape_shows_the_last_survey_and_makes_none() -> None:
    host, found, exporter = setup()
    before = await scrape(exporter)
    assert "owner" not in before
    await found.read_once()
    lists = len(host.lists)
    for _ in range(3):
        after = await scrape(exporter)
    assert len(host.lists) == lists > 0
    for name in DEVICES:
        assert f'roce_owner_queue_pairs{{device="{name}",owner="slurm/7",state="RTS",type="RC"}} 1' in after
        assert f'roce_exporter_source_up{{source="owners",device="{name}"}} 1' in after
    assert {line for line in before.splitlines() if not line.startswith("#")} <= set(after.splitlines())


async def test_a_scrape_does_not_wait_for_a_survey_that_hangs() -> None:
    host, found, exporter = setup()
    await scrape(exporter)
    host.before_part = gate = Gate()
    surveying = asyncio.create_task(found.read_once())
    await gate.entered()
    assert "roce_port_up" in await scrape(exporter)
    gate.release()
    await surveying


async def test_the_debug_pages_show_owners_and_the_state_of_the_source() -> None:
    _, found, exporter = setup()
    endpoints = Application((HostPages(exporter),))
    await scrape(exporter)
    await found.read_once()

    async def page(path: str) -> dict[str, list[dict[str, object]]]:
        reply = await endpoints(Request("GET", path, {}))
        assert reply.status == 200
        found: dict[str, list[dict[str, object]]] = json.loads(reply.body)
        return found

    assert [one["device"] for one in (await page("/debug/owners"))["devices"]] == list(DEVICES)
    sources = (await page("/debug/snapshot"))["sources"]
    assert [one["device"] for one in sources if one["source"] == "owners"] == list(DEVICES)
    assert "/debug/owners" in endpoints.private
