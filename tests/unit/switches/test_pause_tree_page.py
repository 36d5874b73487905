"""/debug/pause-tree over the answers of probes, and the views that it and the audit are made of."""

import asyncio
import json
import re
from collections.abc import Mapping

import pytest
from fabric_views import SECONDS, MadeSwitch, leaf_spine
from switch_fakes import leaf, prober

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO
from roce_exporter.checks.finding import Report, Side
from roce_exporter.checks.switches.recorded_pause import (
    ALONE,
    NO_SWITCH,
    STATES,
    recorded_links,
    recorded_pause,
)
from roce_exporter.checks.thresholds import shipped_thresholds
from roce_exporter.net.login import Credentials
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.pause.fabric import PAUSE_SECONDS, PausePlace, SwitchPauses
from roce_exporter.switches.pause.pause_tree import pause_tree
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.readings import ProbeReply, SwitchFact, SwitchReading, SwitchReadings
from roce_exporter.switches.switch_view import NOT_PROBED, answer_views
from roce_exporter.switches.targets import ProbeLimits, SwitchTarget
from roce_exporter.web import Request, Response
from roce_exporter.web.application import Application
from roce_exporter.web.switch_pages import SwitchPages

ALWAYS = ProbeLimits(cache_seconds=0)
NEIGHBOR = {"port": "Ethernet0", "neighbor": "gpu-007", "neighbor_port": "eth2", "port_id_kind": "name"}


def paused_leaf(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """gpu-007 pauses Ethernet0, more with each round."""
    rounds = replies.replies["port_counters"]
    values: Mapping[str, int] = {
        "SAI_PORT_STAT_PFC_3_RX_PKTS": rounds * 1000,
        "SAI_PORT_STAT_PFC_3_TX_PKTS": 5,
        "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": rounds * 5_000_000,
    }
    facts = (
        SwitchFact(SWITCH_INFO, {"os": "sonic"}),
        SwitchFact(SWITCH_NEIGHBOR_INFO, {**NEIGHBOR, "source": "lldp"}),
    )
    reading = SwitchReading("port_counters", (("port", "Ethernet0"),), values)
    return SwitchReadings(target.name, (reading,), facts, sources=("port_counters",))


@pytest.fixture
async def clock(monkeypatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    return now


def pages_of(one: Prober) -> Application:
    registry = OwnRegistry()
    application = Application((SwitchPages(one, registry),), registry)
    application.ready = True
    return application


async def get(one: Prober, query: str = "") -> Response:
    return await pages_of(one)(Request("GET", "/debug/pause-tree", {}, query))


async def two_rounds(one: Prober, clock: list[float], *names: str) -> None:
    for _ in range(2):
        for name in names:
            await one.probe(name, "", 10)
        clock[0] += 10


@pytest.mark.parametrize("query", ["", "host=gpu-007&netdev=eth2&priority=3", "switch=leaf1&port=Ethernet0"])
async def test_the_page_shows_where_pause_starts(switch, clock, query) -> None:
    switch.read = paused_leaf  # type: ignore[method-assign]
    one = prober(limits=ALWAYS)
    await two_rounds(one, clock, "leaf1")
    answer = await get(one, query)
    assert answer.status == 200
    assert answer.body.decode().startswith(
        "Where it starts (1 switch answered):\n"
        "  gpu-007 eth2 sends pause on priority 3 to leaf1 Ethernet0 for 50 % of the time and receives none"
    )
    document = json.loads((await get(one, f"{query}&format=json".lstrip("&"))).body)
    assert (document["version"], document["steps"][0]["pause_ratio"]) == (1, 0.5)
    assert switch.rounds == 2, "the page queries no switch"


@pytest.mark.parametrize(
    ("query", "line"),
    [
        (
            "target=leaf1",
            "'target' is not a parameter; known here: host, netdev, switch, port, priority, format",
        ),
        ("format=xml", "format is 'xml'; use one of text, json"),
        ("priority=8", "priority is '8', not a number from 0 to 7"),
        ("host=a&host=b", "host is given twice"),
    ],
)
async def test_a_bad_query_is_one_line(switch, query, line) -> None:
    answer = await get(prober(), query)
    assert answer.status == 400
    assert line in answer.body.decode()
    assert answer.body.count(b"\n") == 1


async def test_targets_that_were_not_probed_are_said(switch) -> None:
    text = (await get(prober(leaf("leaf1"), leaf("leaf2")))).body.decode()
    assert text.startswith("No pause is known on 0 switches.")
    assert f"  leaf1: {NOT_PROBED}\n  leaf2: {NOT_PROBED}\n" in text


async def test_a_password_in_a_fault_is_hidden(switch, tmp_path) -> None:
    (tmp_path / "pw").write_text("hunter2")
    one = prober(leaf(basic_auth=Credentials("ro", tmp_path / "pw")))
    switch.faults["lldp"] = "refused hunter2"
    await one.probe("leaf1", "", 10)
    text = (await get(one)).body.decode()
    assert "source lldp: refused ***" in text
    assert "hunter2" not in text


async def test_views_have_the_time_between_two_answers_and_their_age(switch, clock) -> None:
    one = prober(limits=ALWAYS)
    await one.probe("leaf1", "", 10)
    (view,) = answer_views(one.views(), one.targets, clock[0])
    assert (view.before, view.seconds) == (None, 0), "one answer gives no rate"
    clock[0] += 15
    await one.probe("leaf1", "", 10)
    (view,) = answer_views(one.views(), one.targets, clock[0] + 7)
    assert (view.seconds, view.age) == (15, 7)
    assert view.before is not None
    assert (*view.before.numbers, *view.samples.values) == (1, 2)


async def test_two_switches_with_one_name_are_two(switch) -> None:
    one = prober(leaf("a"), leaf("b"))
    for name in ("a", "b"):
        await one.probe(name, "", 10)
    assert [view.device for view in answer_views(one.views(), one.targets, 0)] == [
        "leaf1.example.com",
        "leaf1.example.com (b)",
    ]


async def test_a_counter_of_petabytes_that_stands_still_has_a_rate(switch, clock) -> None:
    """What is kept of an answer for rates has 53 bits."""

    def read(_: ProbeReply, target: SwitchTarget) -> SwitchReadings:
        values = {"SAI_PORT_STAT_PFC_3_TX_PKTS": 2**53 + 3}
        reading = SwitchReading("port_counters", (("port", "Ethernet0"),), values)
        return SwitchReadings(target.name, (reading,), sources=("port_counters",))

    switch.read = read  # type: ignore[method-assign]
    one = prober(limits=ALWAYS)
    await two_rounds(one, clock, "leaf1")
    (view,) = answer_views(one.views(), one.targets, clock[0])
    place = PausePlace(view.device, "Ethernet0", "3")
    assert SwitchPauses(view, {}).pause(place).transmit_frames == 0


# From recorded series

END, WORST = 10_000.0, 4_000.0


def prometheus(*switches: MadeSwitch, shards: bool = False):
    """Answers the queries from what the switches count, as if it had been so at the time of the most pause."""

    async def ask(query: str, time: float) -> list[tuple[dict[str, str], float]]:
        if query.startswith("max_over_time"):
            assert time == END
            rows = [series for one in switches for series in one.now if series.row.name == PAUSE_SECONDS]
            paused = sum(
                (one.now[series] - one.before[series]) / SECONDS
                for one in switches
                for series in rows
                if series in one.now
            )
            return [({}, WORST if "time()" in query else paused)] if switches else []
        assert time == WORST
        found = []
        rated = re.fullmatch(r"rate\((\w+)\[120s\]\)", query)
        for number, switch in enumerate(switches):
            for series, value in switch.now.items():
                labels = dict(zip(series.row.labels, series.labels, strict=True))
                labels |= {"cluster": f"c{number}" if shards else "", "instance": f"shard{number}"}
                if rated and rated[1] == series.row.name:
                    found.append((labels, (value - switch.before[series]) / SECONDS))
                elif not rated and series.row.name in STATES:
                    found.append((labels | {"__name__": series.row.name}, value))
        return found

    return ask


async def report(*switches: MadeSwitch, shards: bool = False) -> Report:
    return await recorded_pause(prometheus(*switches, shards=shards), 7200, END)


def storm(share: float) -> tuple[MadeSwitch, ...]:
    """gpu-007 pauses leaf2, which pauses the spine, which pauses leaf1, which pauses gpu-001; each switch in a process of its own."""
    leaf1, leaf2, spine = leaf_spine()
    leaf2.paused("Ethernet12", share).pauses("Ethernet48")
    spine.paused("Ethernet4", share).pauses("Ethernet0")
    leaf1.paused("Ethernet48", share).pauses("Ethernet0")
    return leaf1, leaf2, spine


async def test_the_start_is_that_of_the_tree_of_all_processes() -> None:
    switches = storm(0.8)
    tree = pause_tree([one.view() for one in switches])
    (found,) = (await report(*switches)).findings
    assert [step.sentence for step in tree.causes] == [found.evidence[0]]
    assert (found.check, found.device, found.side, found.until) == (
        "pause_start",
        "gpu-007 eth2",
        Side.HOST,
        WORST,
    )
    assert [one.split(" ", 1)[0] for one in found.evidence] == ["gpu-007", "leaf2", "spine1", "leaf1"]


async def test_switches_of_another_cluster_are_another_fabric() -> None:
    found = await report(*storm(0.8), shards=True)
    assert "gpu-007 eth2" in {one.device for one in found.findings}
    assert len(found.findings) > 1


@pytest.mark.parametrize("share", [0.0, 0.01, 0.04])
async def test_everyday_pause_is_no_storm(share) -> None:
    assert not (await report(*storm(share))).findings


async def test_a_week_is_looked_at_no_more_often_than_prometheus_evaluates() -> None:
    asked: list[str] = []

    async def ask(query: str, _: float) -> list[tuple[dict[str, str], float]]:
        asked.append(query)
        return []

    await recorded_pause(ask, 604_800, END)
    (step,) = re.findall(r"\[604800s:(\d+)s\]", asked[0])
    assert {int(one) >= int(step) for one in re.findall(r"\[(\d+)s\]", asked[0])} == {True}
    assert 604_800 / int(step) <= 1000


async def test_without_switches_it_says_so() -> None:
    found = await report()
    assert [one.what for one in found.not_checked] == [NO_SWITCH]


async def test_a_card_that_announces_no_name_is_a_host_without_series_too() -> None:
    """Prometheus leaves out labels that are empty."""
    card = {"device": "leaf1", "port": "Ethernet8", "neighbor_port": "00:00:5e:00:53:08"}

    async def ask(query: str, _: float) -> list[tuple[dict[str, str], float]]:
        return {ALONE: [(card, 1.0)]}.get(query, [({}, 1.0)] if query.startswith("count(") else [])

    (line,) = (await recorded_links(ask, shipped_thresholds(), 7200, END)).not_checked
    assert "leaf1 Ethernet8 (00:00:5e:00:53:08)" in line.what


async def test_damage_of_a_link_has_the_limits_of_the_operator() -> None:
    asked: list[str] = []

    async def ask(query: str, _: float) -> list[tuple[dict[str, str], float]]:
        asked.append(query)
        return [({}, 1.0)] if query.startswith("count(") else []

    shipped = shipped_thresholds()
    await recorded_links(ask, {**shipped, "crc_errors": {**shipped["crc_errors"], "packets": 7.5}}, 7200, END)
    assert [one.split(" > ")[1] for one in asked if "receive_crc_errors" in one] == ["7.5 + 1"]
