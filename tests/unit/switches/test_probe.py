"""Probes: one round of queries per target at a time, answers kept for a moment, and every fault in the answer."""

import asyncio
import contextlib
import ipaddress
import logging
import re
import socket
import threading
from dataclasses import replace

import pytest
from clock import pass_time
from switch_fakes import RAW, leaf, prober

from roce_exporter.catalog.named import SWITCH_NEIGHBOR_INFO
from roce_exporter.introspection.debug import series_text
from roce_exporter.net import NetError
from roce_exporter.net.login import Credentials
from roce_exporter.switches import probe as probe_module
from roce_exporter.switches.interpretation import is_success, with_links
from roce_exporter.switches.probe import BadModuleError, Prober, ProbeResult, UnknownTargetError
from roce_exporter.switches.readings import (
    Module,
    ProbeReply,
    ProbeRequest,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    Unreadable,
)
from roce_exporter.switches.targets import Discovery, Link, ProbeLimits, SwitchesFile

FRAMES = 'roce_switch_pfc_receive_frames_total{device="leaf1.example.com",port="Ethernet0",priority="3"}'


def as_text(answer: ProbeResult) -> dict[str, object]:
    return {
        series_text(series): value
        for part in answer.samples
        for series, value in zip(part.series, part.values, strict=True)
    }


def up(source: str, device: str = "leaf1") -> str:
    return f'roce_switch_source_up{{device="{device}",source="{source}"}}'


async def test_simultaneous_clients_share_one_round(switch) -> None:
    switch.gate.clear()
    one = prober()
    clients = [asyncio.create_task(one.probe("leaf1", "", 10)) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    switch.gate.set()
    answers = await asyncio.gather(*clients)
    assert switch.rounds == 1
    assert answers[0] is answers[1] is answers[2]


async def test_a_client_that_disconnects_does_not_end_the_round(switch) -> None:
    switch.gate.clear()
    one = prober()
    first = asyncio.create_task(one.probe("leaf1", "", 10))
    second = asyncio.create_task(one.probe("leaf1", "", 10))
    await switch.entered.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    switch.gate.set()
    assert as_text(await second)[FRAMES] == 1
    assert switch.rounds == 1


async def test_answers_are_kept_for_a_moment(switch, monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    one = prober(limits=ProbeLimits(cache_seconds=10))
    await one.probe("leaf1", "", 10)
    now[0] += 9.9
    await one.probe("leaf1", "", 10)
    assert switch.rounds == 1
    now[0] += 0.2
    assert as_text(await one.probe("leaf1", "", 10))[FRAMES] == 2
    assert [(last.samples[0].values, before and tuple(before.numbers)) for last, before in one.views()] == [
        ((2,), (1,))
    ]


async def test_only_so_many_targets_are_queried_at_once(switch) -> None:
    switch.gate.clear()
    one = prober(*(leaf(f"leaf{n}") for n in range(5)), limits=ProbeLimits(targets_at_once=2))
    probes = [asyncio.create_task(one.probe(f"leaf{n}", "", 60)) for n in range(5)]
    for _ in range(100):
        await asyncio.sleep(0)
    switch.gate.set()
    assert all(as_text(answer)[FRAMES] for answer in await asyncio.gather(*probes))
    assert switch.most_at_once == 2


@pytest.mark.parametrize(("share", "most"), [(1.0, 2), (0.0, 5)])
async def test_whole_rounds_of_repeated_modules_wait_for_a_place_and_go_on_without_one(
    switch, monkeypatch, share, most
) -> None:
    """The replies of a few at once are kept in memory; switches that hang cost the others only a part of their time."""
    monkeypatch.setattr(probe_module, "WHOLE_AT_ONCE", 2)
    monkeypatch.setattr(probe_module, "WHOLE_SHARE", share)
    monkeypatch.setattr(
        probe_module, "load_module", lambda name: Module(name, "sonic", switch.query, switch.read, None, True)
    )
    switch.gate.clear()
    one = prober(*(leaf(f"leaf{n}") for n in range(5)))
    probes = [asyncio.create_task(one.probe(f"leaf{n}", "", 60)) for n in range(5)]
    for _ in range(200):
        await asyncio.sleep(0)
    assert switch.most_at_once == most
    switch.gate.set()
    assert all(as_text(answer)[FRAMES] for answer in await asyncio.gather(*probes))
    assert not one._whole.locked(), "the places are free again"


async def test_a_target_that_gets_no_turn_says_so(switch) -> None:
    switch.gate.clear()
    one = prober(leaf("leaf0"), leaf("leaf1", timeout=0.6), limits=ProbeLimits(targets_at_once=1))
    first = asyncio.create_task(one.probe("leaf0", "", 60))
    await switch.entered.wait()
    answer = await one.probe("leaf1", "", 60)
    line = "too many other switches are being queried; raise limits.targets_at_once"
    assert answer.readings.faults == {"target": line}
    assert as_text(answer)['roce_switch_probe_success{device="leaf1"}'] == 0
    assert as_text(answer)[up("target")] == 0
    switch.gate.set()
    await first


@pytest.mark.parametrize("waits_for", ["nothing", "a place for whole rounds", "its name"])
async def test_the_deadline_leaves_time_to_read_the_replies(switch, monkeypatch, waits_for) -> None:
    """It is one for all that a round does."""
    find, one = probe_module.find_routes, prober(leaf(timeout=300))

    async def slow(*arguments):
        pass_time(100)
        return await find(*arguments)

    async def full():
        pass_time(100)
        await asyncio.Event().wait()

    monkeypatch.setattr(
        probe_module, "load_module", lambda name: Module(name, "sonic", switch.query, switch.read, None, True)
    )
    monkeypatch.setattr(probe_module, "READING_SECONDS", 80)
    monkeypatch.setattr(probe_module, "WHOLE_SHARE", 0.4)
    if waits_for == "a place for whole rounds":
        one._whole.acquire = full
    if waits_for == "its name":
        monkeypatch.setattr(probe_module, "find_routes", slow)
    now = asyncio.get_running_loop().time()
    await one.probe("leaf1", "", 600)
    assert now + 200 < switch.visits[0].deadline < now + 300


async def test_one_source_that_fails_is_one_line(switch, caplog) -> None:
    caplog.set_level(logging.INFO)
    switch.faults["lldp"] = "no database APPL_DB"
    one = prober(limits=ProbeLimits(cache_seconds=0))
    for _ in range(3):
        found = as_text(await one.probe("leaf1", "", 10))
    assert (found[up("lldp", "leaf1.example.com")], found[up("port_counters", "leaf1.example.com")]) == (0, 1)
    assert found['roce_switch_probe_success{device="leaf1.example.com"}'] == 1
    assert caplog.messages == ["target leaf1: lldp: no database APPL_DB"]
    switch.faults.clear()
    await one.probe("leaf1", "", 10)
    assert caplog.messages[1:] == ["target leaf1: lldp works again"]


async def test_a_name_that_is_not_in_the_file_is_refused_before_anything_is_resolved(
    switch, monkeypatch
) -> None:
    async def find_routes(*_: object) -> None:
        pytest.fail("resolved")

    monkeypatch.setattr(probe_module, "find_routes", find_routes)
    for name in ("leaf9", "192.0.2.1", "", "x" * 10000):
        with pytest.raises(UnknownTargetError) as refusal:
            await prober().probe(name, "", 10)
        assert str(refusal.value) == f"{name[:200]!r} is not a target of the configuration file"


async def test_service_discovery_allows_addresses_in_its_networks(switch) -> None:
    discovery = Discovery((ipaddress.ip_network("192.0.2.0/24"),), leaf(""))
    one = Prober(SwitchesFile({}, (discovery,)))
    assert as_text(await one.probe("192.0.2.9", "", 10))[FRAMES] == 1
    assert switch.visits[0].route.address == "192.0.2.9"
    answer = await one.probe("198.51.100.1", "", 10)
    assert answer.readings.faults["target"].startswith("198.51.100.1: 198.51.100.1 is not an allowed address")
    with pytest.raises(UnknownTargetError):
        await one.probe("http://192.0.2.9/", "", 10)
    assert switch.rounds == 1


async def test_an_address_has_the_settings_of_the_first_entry_of_discovery_with_its_network(switch) -> None:
    """Credentials go to the networks of their entry alone, whatever a client names."""
    entries = [
        Discovery((ipaddress.ip_network(network),), leaf("", host="", priorities=priorities))
        for network, priorities in (("192.0.2.0/25", "all"), ("192.0.2.0/24", "pfc"), ("::1/128", "pfc"))
    ]
    one = Prober(SwitchesFile({}, tuple(entries)))
    for name, priorities in (("192.0.2.9", "all"), ("192.0.2.200", "pfc"), ("::1", "pfc")):
        assert (await one.probe(name, "", 10)).target.priorities == priorities
        assert switch.visits[-1].route.address == name
    assert "target" in (await one.probe("198.51.100.1", "", 10)).readings.faults
    with pytest.raises(
        UnknownTargetError, match=r"^'leaf9' is a name; several entries of discovery need an address$"
    ):
        await one.probe("leaf9", "", 10)
    with pytest.raises(
        BadModuleError,
        match=r"^'nxos' is not the module of 192\.0\.2\.9; leave it out: the configuration file says sonic$",
    ):
        await one.probe("192.0.2.9", "nxos", 10)


async def test_what_the_file_means_to_be_lossless_is_a_series_per_priority(switch) -> None:
    def intended(text: dict[str, object]) -> list[object]:
        return [value for name, value in text.items() if name.startswith("roce_switch_pfc_intended")]

    found = as_text(await prober(leaf(lossless=(3, 5))).probe("leaf1", "", 10))
    assert intended(found) == [0, 0, 0, 1, 0, 1, 0, 0]
    assert intended(as_text(await prober(leaf(lossless=())).probe("leaf1", "", 10))) == [0] * 8
    assert intended(as_text(await prober().probe("leaf1", "", 10))) == []


async def test_a_source_that_is_missing_has_its_reason(switch) -> None:
    switch.faults = {"lldp": "192.0.2.1: no complete reply by the deadline", "state": "what is this?"}
    found = as_text(await prober().probe("leaf1", "", 10))
    reasons = {name for name in found if name.startswith("roce_switch_source_missing")}
    label = 'roce_switch_source_missing{device="leaf1.example.com",source='
    assert reasons == {f'{label}"lldp",reason="timeout"}}', f'{label}"state",reason="unusable"}}'}


async def test_a_client_names_the_module_of_the_file_or_none(switch) -> None:
    """Another one would send the credentials of the target in another form, with logins of its own."""
    one = prober()
    for other in ("nxos", "junos"):
        with pytest.raises(BadModuleError, match=f"'{other}' is not the module of leaf1; leave it out"):
            await one.probe("leaf1", other, 10)
    await one.probe("leaf1", "sonic", 10)
    assert switch.rounds == 1


async def test_a_client_in_a_hurry_shortens_its_own_wait_only(switch) -> None:
    switch.gate.clear()
    one = prober(leaf(timeout=600.0))
    hurried = await one.probe("leaf1", "", 0.01)
    assert (hurried.success, hurried.facts) == (False, 0)
    assert hurried.readings.faults == {"target": "no answer within the 0.01 s that the client waits"}
    patient = asyncio.create_task(one.probe("leaf1", "", 600))
    await asyncio.sleep(0)
    switch.gate.set()
    assert (await patient).success
    (visit,) = switch.visits
    assert visit.deadline - asyncio.get_running_loop().time() > 500


async def test_a_client_that_cannot_wait_gets_the_last_whole_answer_with_its_age(switch, monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    one = prober(limits=ProbeLimits(cache_seconds=10))
    age = 'roce_switch_answer_age_seconds{device="leaf1.example.com"}'
    found = []
    for passed in (0, 5, 15):
        now[0] += passed
        found.append(as_text(await one.probe("leaf1", "", 10)))
    assert [(each[age], each[FRAMES]) for each in found] == [(0, 1), (5, 1), (0, 2)]
    switch.gate.clear()
    now[0] += 15
    late = as_text(await one.probe("leaf1", "", 0))
    assert (late[age], late[FRAMES]) == (15, 2)
    assert late['roce_switch_probe_success{device="leaf1.example.com"}'] == 1
    assert not (await one.probe("leaf1", "", 0, record=True)).success, (
        "the debug page shows this round or none"
    )
    switch.gate.set()
    await one.close()


async def test_refused_credentials_are_not_sent_again_until_the_file_changes(
    switch, tmp_path, monkeypatch
) -> None:
    file = tmp_path / "pw"
    file.write_text("wrong\n")
    one = prober(leaf(basic_auth=Credentials("ro", file)), limits=ProbeLimits(cache_seconds=0))
    query = switch.query

    async def refuse(visit: ProbeRequest) -> ProbeReply:
        visit.gate.refusal = "" if visit.login.password == "right" else "refused"  # noqa: S105 - of a fake
        return await query(visit)

    monkeypatch.setattr(switch, "query", refuse)
    one = prober(leaf(basic_auth=Credentials("ro", file)), limits=ProbeLimits(cache_seconds=0))
    for _ in range(3):
        answer = await one.probe("leaf1", "", 10)
    assert switch.rounds == 1
    assert answer.readings.faults["target"].startswith(
        "the switch refused the user or the password: check basic_auth; it"
    )
    refused = 'roce_switch_login_refused{device="leaf1.example.com"}'
    assert as_text(answer)[refused] == 1
    file.write_text("right\n")
    assert [as_text(await one.probe("leaf1", "", 10))[refused] for _ in range(2)] == [0, 0]
    assert switch.rounds == 3


async def test_a_reload_keeps_what_is_known_of_targets_with_the_same_settings(
    switch, tmp_path, monkeypatch
) -> None:
    """The answers, and so the rounds that a client shares; refused credentials also where other settings have changed."""
    file = tmp_path / "pw"
    file.write_text("wrong\n")
    query = switch.query

    async def refuse(visit: ProbeRequest) -> ProbeReply:
        visit.gate.refusal = "refused" if visit.login.username else ""
        return await query(visit)

    monkeypatch.setattr(switch, "query", refuse)
    locked, changed, gone = leaf("leaf2", basic_auth=Credentials("ro", file)), leaf("leaf3"), leaf("leaf4")
    kept = ProbeLimits(cache_seconds=300)
    one = prober(leaf(), locked, changed, gone, limits=kept)
    before = {name: await one.probe(name, "", 10) for name in one.targets}
    with monkeypatch.context() as patch:
        patch.setattr(probe_module, "load_module", {}.__getitem__)
        with pytest.raises(KeyError):
            one.reload(SwitchesFile({"leaf9": leaf("leaf9")}, (), kept))
    assert (await one.probe("leaf4", "", 10)).ended == before["leaf4"].ended, (
        "a file that is refused changes nothing"
    )
    other = (Link("Ethernet0", "gpu-001", "eth0"),)
    new = (leaf(), replace(locked, links=other), replace(changed, links=other), leaf("leaf5"))
    one.reload(SwitchesFile({each.name: each for each in new}, (), kept))
    assert switch.rounds == 4
    assert (await one.probe("leaf1", "", 10)).ended == before["leaf1"].ended
    assert "is tried again in" in (await one.probe("leaf2", "", 10)).readings.faults["target"]
    assert switch.rounds == 4, "nothing has been sent yet"
    for name in ("leaf3", "leaf5"):
        assert (await one.probe(name, "", 10)).success
    assert switch.rounds == 6
    with pytest.raises(UnknownTargetError):
        await one.probe("leaf4", "", 10)


async def test_a_reload_ends_the_round_of_a_target_that_is_gone(switch) -> None:
    switch.gate.clear()
    one = prober()
    waiting = asyncio.create_task(one.probe("leaf1", "", 600))
    await switch.entered.wait()
    room = one._room
    one.reload(SwitchesFile())
    assert one._room is room, "the places that are taken stay taken"
    one.reload(SwitchesFile(limits=ProbeLimits(targets_at_once=3)))
    assert (one._room is not room, one.targets_at_once) == (True, 3)
    line = "its settings were changed during this round; the next one has the new ones"
    assert (await waiting).readings.faults == {"target": line}
    assert switch.at_once == 0


@pytest.mark.dials
async def test_a_switch_that_accepts_no_connection_takes_no_place(switch) -> None:
    """A listener whose queue is full: connections to it hang. Nothing is queried, and others have all places."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        dead = leaf("dead", host="127.0.0.1", ports={"redis": port})
        answer = await prober(dead, limits=ProbeLimits(targets_at_once=1)).probe("dead", "", 600)
    assert answer.readings.faults == {"target": f"127.0.0.1:{port}: no connection within 2.5 s"}
    assert switch.rounds == 0


async def test_a_switch_that_stays_away_is_left_alone_for_some_time(switch, monkeypatch) -> None:
    """It holds a place until it is late, which others wait for."""
    now = [1000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    shares = iter((0.8, 1.0, *[1.0] * 99))
    monkeypatch.setattr(probe_module, "uniform", lambda *ends: next(shares) if ends == (0.8, 1.0) else None)
    switch.faults["target"] = "is away"
    one = prober()

    async def rounds(seconds: int) -> list[int]:
        """When it is queried, of a client that asks every second."""
        begun, times = now[0], []
        for passed in range(seconds):
            now[0], before = begun + passed, switch.rounds
            assert (await one.probe("leaf1", "", 10)).success is not bool(switch.faults)
            times += [passed] * (switch.rounds - before)
        return times

    assert await rounds(600) == [0, 10, 20, 32, 62, 122, 242, 362, 482]
    switch.faults.clear()
    now[0] += 10
    assert await rounds(32) == [0, 10, 20, 30]


async def test_the_debug_page_leaves_no_switch_alone_and_ends_that(switch, monkeypatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    one = prober()
    assert (await one.probe("leaf1", "", 10)).success
    now[0] += 15
    switch.faults["target"] = "is away"
    for _ in range(3):
        assert not (await one.probe("leaf1", "", 10, record=True)).success
    for _ in range(3):
        assert not (await one.probe("leaf1", "", 10)).success, "what it said before is not served"
        now[0] += 12
    switch.faults.clear()
    assert (await one.probe("leaf1", "", 10, record=True)).success
    assert (await one.probe("leaf1", "", 10)).success


async def test_what_was_missing_here_leaves_no_switch_alone(switch, monkeypatch, tmp_path) -> None:
    """A password file, the address of a name, a place among the switches that are queried."""
    now = [1000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    one = prober(leaf(basic_auth=Credentials("reader", tmp_path / "password")))

    async def missing(*_: object) -> None:
        raise NetError("no such name")

    async def full() -> None:
        raise TimeoutError

    for where, name, fault in (
        (one, "nothing", None),  # the file
        (probe_module, "find_routes", missing),
        (one._room, "acquire", full),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(where, name, fault, raising=False)
            for _ in range(5):
                assert not (await one.probe("leaf1", "", 10)).success
                now[0] += 12
        (tmp_path / "password").write_text("secret")
        assert (await one.probe("leaf1", "", 10)).success
        now[0] += 12


async def test_a_source_that_comes_and_goes_is_a_few_lines(switch, monkeypatch, caplog) -> None:
    now = [1000.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    caplog.set_level(logging.INFO)
    one = prober()
    for number in range(8):
        switch.faults = {"lldp": f"is away {number}"} if number % 2 else {}
        await one.probe("leaf1", "", 10)
        now[0] += 15
    assert [line.partition(":")[0] for line in caplog.messages] == [
        *5 * ["target leaf1"],
        "no more lines about target leaf1 for 525 s; /probe shows the faults",
    ]
    switch.faults = {}
    for _ in range(40):
        await one.probe("leaf1", "", 10)
        now[0] += 15
    assert caplog.messages[6:] == ["target leaf1: lldp works again"], "once lines are due again"


@pytest.mark.parametrize(
    "name", ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "127.0.0.01", "0x7f000001", "127.0.0.1."]
)
async def test_an_address_has_one_spelling(name, switch) -> None:
    everywhere = Discovery((ipaddress.ip_network("127.0.0.0/8"),), leaf(name="", host=""))
    one = Prober(SwitchesFile({}, (everywhere,)))
    with pytest.raises(
        UnknownTargetError,
        match=f"^'{re.escape(name)}' is an address in another form; write it with four numbers$",
    ):
        await one.probe(name, "", 10)
    assert (await one.probe("127.0.0.1", "", 10)).success


async def test_what_is_kept_and_logged_of_discovered_targets_is_bounded(switch, monkeypatch, caplog) -> None:
    monkeypatch.setattr(probe_module, "MOST_SERIES", 10)
    switch.faults["lldp"] = "is away"
    everywhere = Discovery((ipaddress.ip_network("192.0.2.0/24"),), leaf(name="", host=""))
    one = Prober(SwitchesFile({"leaf1": leaf()}, (everywhere,), limits=ProbeLimits(cache_seconds=3600)))
    first = await one.probe("192.0.2.1", "", 10)
    for number in (None, *range(2, 60)):
        await one.probe(f"192.0.2.{number}" if number else "leaf1", "", 10)
        assert (await one.probe("192.0.2.1", "", 10)).ended == first.ended, (
            "a target that is requested again stays"
        )
    kept = [last.target.name for last, _ in one.views()]
    assert len(kept) <= 11
    assert {"leaf1", "192.0.2.59"} <= set(kept), "the oldest make room"
    lines = [record.message for record in caplog.records]
    assert len(lines) <= 22, "the configured target, and that no more follow"
    assert "target leaf1: lldp: is away" in lines


@pytest.mark.parametrize(
    ("ports", "values", "line"),
    [(4097, 1, "4,097 ports, and at most 4,096 are read"), (1, 12, "12 values, and at most 10 are read")],
)
async def test_a_switch_without_end_is_one_fault(switch, monkeypatch, ports, values, line) -> None:
    many = tuple(
        SwitchReading(
            "port_counters", (("port", f"Ethernet{number}"),), {RAW + str(one): 1 for one in range(values)}
        )
        for number in range(ports)
    )
    monkeypatch.setattr(switch, "read", lambda *_: SwitchReadings("leaf1", many, sources=("port_counters",)))
    one = prober(limits=ProbeLimits(series=10 if values > 1 else 10_000, cache_seconds=0))
    answer = await one.probe("leaf1", "", 10)
    assert answer.readings.faults == {"target": f"the switch has {line}"}
    assert (answer.success, len(answer.samples[0].series)) == (False, 0)


async def test_the_password_is_read_for_every_round(switch, tmp_path) -> None:
    file = tmp_path / "pw"
    file.write_text("one\n")
    one = prober(leaf(basic_auth=Credentials("ro", file)), limits=ProbeLimits(cache_seconds=0))
    await one.probe("leaf1", "", 10)
    file.write_text("two")
    await one.probe("leaf1", "", 10)
    assert [visit.login.password for visit in switch.visits] == ["one", "two"]
    assert "two" not in repr(switch.visits)
    file.unlink()
    answer = await one.probe("leaf1", "", 10)
    assert answer.readings.faults == {
        "target": f"password_file {file}: cannot be read: No such file or directory"
    }


@pytest.mark.parametrize("content", [b"", b"\n", b"a\nb", b"\xff", b"x" * 5000, b"a\x00b"])
async def test_a_file_that_is_no_password_is_one_line(switch, tmp_path, content) -> None:
    file = tmp_path / "pw"
    file.write_bytes(content)
    answer = await prober(leaf(basic_auth=Credentials("ro", file))).probe("leaf1", "", 10)
    assert "is not a password; write it as one line" in answer.readings.faults["target"]


def test_a_neighbour_by_lldp_takes_precedence_over_a_link_of_the_file() -> None:
    seen = SwitchFact(SWITCH_NEIGHBOR_INFO, {"port": "Ethernet4", "neighbor": "gpu-002", "source": "lldp"})
    readings = SwitchReadings(facts=(seen,))
    assert with_links(readings, leaf(links=(Link("Ethernet4", "gpu-001", "eth1"),))) is readings


async def test_a_defect_of_a_module_reaches_the_caller_and_the_next_probe_works(switch, monkeypatch) -> None:
    one = prober(limits=ProbeLimits(cache_seconds=0))
    state = next(iter(one._states.values()))
    module, broken = state.module, replace(state.module, read=lambda *_: 1 / 0)
    state.module = broken
    with pytest.raises(ZeroDivisionError):
        await one.probe("leaf1", "", 10)
    state.module = module
    assert as_text(await one.probe("leaf1", "", 10))[FRAMES] == 2


def test_readings_of_one_asic_are_a_success_although_the_other_is_away() -> None:
    reading = SwitchReading("port_counters", (("port", "Ethernet0"),), {})
    faults = {"port_counters": "asic1: connection refused"}
    assert is_success(SwitchReadings("", (reading,), faults=faults, sources=("port_counters",)))
    assert not is_success(SwitchReadings(faults=faults, sources=("port_counters",)))
    assert is_success(SwitchReadings(sources=("lldp",)))


class CountedAside(dict[str, int]):
    """Values of which no thread but a worker may see all: with a thousand ports that takes the event loop's time."""

    def values(self):
        assert threading.current_thread() is not threading.main_thread()
        return super().values()


async def test_what_is_computed_of_every_value_is_computed_aside(switch, monkeypatch) -> None:
    def read(*_):
        values = CountedAside({RAW: 1, "SAI_PORT_STAT_PFC_4_RX_PKTS": Unreadable("garbage")})
        reading = SwitchReading("port_counters", (("port", "Ethernet0"),), values)
        return SwitchReadings("leaf1", (reading,), sources=("port_counters",))

    monkeypatch.setattr(switch, "read", read)
    found = as_text(await prober().probe("leaf1", "", 10))
    assert found['roce_switch_source_unreadable_values{device="leaf1",source="port_counters"}'] == 1
