"""Changes as they happen: one stream per switch, which probes read from memory, and the poll where there is none."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clock import pass_time
from gnmi_switch import (
    REPLIES,
    GnmiQuestion,
    RefusedError,
    gnmi_switch,
    ietf,
    notification,
    subscribe_response,
    sync_response,
)
from recorded import files
from sonic_gnmi_replies import reply as sonic_reply
from switch_recordings import recorded
from waiting import until

from roce_exporter.catalog import named
from roce_exporter.introspection.debug import series_text
from roce_exporter.net import NetError
from roce_exporter.net.gnmi_messages import LeafReader, path_of, path_text
from roce_exporter.net.gnmi_messages import Path as GnmiPath
from roce_exporter.net.grpc import grpc
from roce_exporter.net.login import Credentials
from roce_exporter.normalise.series import Series
from roce_exporter.switches import gnmi, stream
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.readings import StreamPlan
from roce_exporter.switches.stream import LeafStore
from roce_exporter.switches.targets import FastSamples, ProbeLimits, SwitchesFile

LEAVES = {
    path: value
    for source, replies in recorded("switch-openconfig").items()
    if source != "pfc_srlinux"
    for path, value in replies.items()
}
STATE = "interfaces/interface[name=et-0/0/0]/state/oper-status"
SONIC = json.loads(files("switch-sonic-gnmi")["databases.json"])
REFUSED = RefusedError(grpc.StatusCode.UNIMPLEMENTED, "no streams here")


def updates(leaves: dict[str, Any]) -> list[tuple[GnmiPath, dict[str, Any]]]:
    return [(path_of(path), ietf(value)) for path, value in leaves.items()]


class StreamingSwitch:
    """What a switch answers: everything once, and over its stream what the test sends."""

    def __init__(self, leaves: dict[str, Any]) -> None:
        self.leaves = leaves
        self.questions: list[GnmiQuestion] = []
        self.refusal: RefusedError | None = None
        self.queues: dict[str, asyncio.Queue[bytes | None]] = {}
        """By the database that was subscribed to; empty: a model."""
        self.databases = {name: dict(rows) for name, rows in SONIC.items()}
        self.databases["APPL_DB"]["PORT_TABLE:Ethernet68"] = {"oper_status": "up", "mtu": "9100"}
        self.open = 0

    def __call__(self, asked: GnmiQuestion) -> Any:
        self.questions.append(asked)
        if asked.method == "Get":
            return sonic_reply(asked, self.databases)
        if asked.method == "Stream":
            return self.stream(asked)
        if "qos/interfaces/interface[interface-id=*]/pfc/pfc-priority[index=*]" in asked.paths:
            raise RefusedError(grpc.StatusCode.NOT_FOUND)  # no SR Linux, whose model no stream has
        return [*self.all(asked), sync_response()]

    def all(self, _: GnmiQuestion) -> list[bytes]:
        return [subscribe_response(*updates(self.leaves))]

    async def stream(self, asked: GnmiQuestion) -> AsyncIterator[bytes]:
        if self.refusal:
            raise self.refusal

        async def messages() -> AsyncIterator[bytes]:
            self.open += 1
            queue = self.queues[asked.target] = asyncio.Queue()
            try:
                for message in (*self.all(asked), sync_response()):
                    yield message
                while message := await queue.get():
                    yield message
            finally:
                self.open -= 1

        return messages()

    def send(self, leaves: dict[str, Any]) -> None:
        self.queues[""].put_nowait(subscribe_response(*updates(leaves)))

    def methods(self) -> list[str]:
        """Of the requests since the last call."""
        found = [one.method for one in self.questions]
        self.questions.clear()
        return found


class Watched:
    """A prober of one switch, whose answers are not kept."""

    def __init__(self, switch: Any, module: str, folder: Path, **more: Any) -> None:
        (folder / "password").write_text(switch.visit().login.password)
        auth = Credentials("reader", folder / "password")
        target = replace(switch.visit(module).target, basic_auth=auth, host="127.0.0.1", stream=True, **more)
        target = replace(target, tls=replace(target.tls, server_name="leaf2.example.com"))
        self.prober = Prober(SwitchesFile({"leaf2": target}, limits=ProbeLimits(cache_seconds=0)))

    async def probe(self) -> dict[str, Any]:
        answer = await self.prober.probe("leaf2", "", 60)
        return {
            series_text(series).partition("{")[0] + "{" + series_text(series).partition(",")[2]: value
            for part in answer.samples
            for series, value in zip(part.series, part.values, strict=True)
        }

    async def source(self) -> float | None:
        answer = await self.prober.probe("leaf2", "", 60)
        own = answer.samples[1]
        return dict(zip(own.series, own.values, strict=True)).get(
            Series(named.SWITCH_SOURCE_UP, (answer.device, "stream"))
        )

    @property
    def stream(self) -> Any:
        return self.prober._states["leaf2"].stream

    async def synced(self) -> dict[str, Any]:
        """What a probe reads, which begins the stream; until everything has come over it."""
        polled = await self.probe()
        await until(lambda: self.stream._store)
        return polled


@asynccontextmanager
async def streaming(
    folder: Path, module: str = "openconfig", leaves: dict[str, Any] = LEAVES, **more: Any
) -> AsyncIterator[tuple[StreamingSwitch, Watched]]:
    answers = StreamingSwitch(dict(leaves))
    async with gnmi_switch(answers, folder) as switch:
        watched = Watched(switch, module, folder, **more)
        try:
            yield answers, watched
        finally:
            await watched.prober.close()


UP = 'roce_switch_link_up{port="et-0/0/0"}'


async def test_a_probe_reads_what_the_stream_has_sent(tmp_path: Path) -> None:
    async with streaming(tmp_path) as (switch, watched):
        polled = await watched.synced()
        assert set(switch.methods()) == {"Subscribe", "Stream"}
        held = await watched.probe()
        states = {name for name in {*polled, *held} if "source_" in name or "probe_duration" in name}
        assert {name: held[name] for name in held if name not in states} == {
            name: polled[name] for name in polled if name not in states
        }
        switch.send({STATE: "DOWN"})
        while held[UP] != 0:
            held = await watched.probe()
        assert switch.methods() == []
        assert await watched.source() == 1


FAST = FastSamples(2.0, ("Ethernet1/1", "Ethernet2"))
PFC = "interfaces/interface[name={}]/ethernet/pfc/priorities"


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        (FastSamples(), {"*": 1}),
        (FastSamples(3.0), {"*": 3}),
        (FAST, {"*": 10, "Ethernet1/1": 2, "Ethernet2": 2}),
    ],
)
async def test_states_come_with_each_change_and_pfc_as_often_as_is_wanted(
    tmp_path: Path, samples: FastSamples, wanted: dict[str, float]
) -> None:
    leaves = {
        path: value
        for source, replies in recorded("switch-eos").items()
        for path, value in replies.items()
        if "/" in path
    }
    async with streaming(tmp_path, "eos", leaves, samples=samples) as (switch, watched):
        await watched.synced()
        (asked,) = [one for one in switch.questions if one.method == "Stream"]
    found = {path: seconds for path, seconds in asked.samples.items() if path.endswith("/pfc/priorities")}
    assert found == {PFC.format(port): seconds for port, seconds in wanted.items()}
    changes = {path for path, seconds in asked.samples.items() if not seconds}
    assert {
        "interfaces/interface[name=*]/ethernet/pfc/watchdog",
        "interfaces/interface[name=*]/state/oper-status",
        "lldp/interfaces/interface[name=*]/neighbors/neighbor[id=*]/state",
    } <= changes
    assert asked.metadata["username"] == "reader"


async def test_a_stream_that_breaks_is_a_source_that_is_down_until_it_is_back(tmp_path: Path) -> None:
    async with streaming(tmp_path) as (switch, watched):
        await watched.synced()
        switch.queues[""].put_nowait(None)
        await until(lambda: watched.stream.fault)
        switch.leaves[STATE] = "DOWN"
        switch.methods()
        found = await watched.probe()
        assert (found[UP], await watched.source()) == (0, 0)
        assert "Stream" not in switch.methods(), "a broken stream is not begun again at once"
        pass_time(stream.SHORTEST_PAUSE)
        await watched.synced()
        assert await watched.source() == 1


async def test_a_defect_ends_the_stream_and_no_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with streaming(tmp_path) as (switch, watched):
        await watched.synced()
        with monkeypatch.context() as broken:
            broken.setattr(LeafStore, "add", lambda *_: 1 // 0)
            switch.send({STATE: "DOWN"})
            await until(watched.stream._task.done)
        switch.leaves[STATE] = "DOWN"
        found = await watched.probe()
        assert (found[UP], await watched.source()) == (0, 0)
        pass_time(stream.SHORTEST_PAUSE)
        await watched.synced()
        assert await watched.source() == 1


async def test_a_refused_stream_costs_nothing_but_itself(tmp_path: Path) -> None:
    async with streaming(tmp_path) as (switch, watched):
        switch.refusal = REFUSED
        await watched.probe()
        await until(lambda: watched.stream.fault)
        found = await watched.probe()
        assert (found[UP], await watched.source()) == (1, 0)
        assert "no streams here" in watched.stream.fault
        pauses = []
        for _ in range(8):
            pass_time(watched.stream._pause)
            watched.stream.fault = ""
            await watched.probe()
            await until(lambda: watched.stream.fault)
            pauses.append(watched.stream._pause)
        assert pauses == sorted(pauses)
        assert pauses[-1] == stream.LONGEST_PAUSE


async def test_a_silent_stream_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with streaming(tmp_path) as (switch, watched):
        await watched.synced()
        pass_time(gnmi.SILENT_SECONDS)
        await until(lambda: watched.stream.fault)
        assert "silent" in watched.stream.fault
        assert await watched.source() == 0
        await until(lambda: not switch.open)


async def test_a_stream_begins_again_after_some_minutes_with_what_the_switch_has_then(tmp_path: Path) -> None:
    async with streaming(tmp_path) as (switch, watched):
        await watched.synced()
        switch.leaves[STATE.replace("et-0/0/0", "et-0/0/9")] = "UP"
        switch.methods()
        watched.stream._begun -= stream.RENEW_SECONDS
        await watched.synced()
        assert set(switch.methods()) == {"Subscribe", "Stream"}
        await until(lambda: switch.open == 1)
        assert await watched.source() == 1


async def test_no_stream_outlives_its_probes_its_settings_or_the_process(tmp_path: Path) -> None:
    async with streaming(tmp_path) as (switch, watched):
        await watched.synced()
        watched.stream._read -= stream.UNREAD_SECONDS + 1
        switch.send({STATE: "UP"})
        await until(lambda: not switch.open)
        assert not watched.stream.fault
        await watched.synced()
        file = watched.prober._file
        target = replace(file.targets["leaf2"], stream=False)
        watched.prober.reload(replace(file, targets={"leaf2": target}))
        await until(lambda: not switch.open)
        switch.methods()
        await watched.probe()
        assert set(switch.methods()) == {"Subscribe"}
        assert await watched.source() is None


@asynccontextmanager
async def sonic(folder: Path, **more: Any) -> AsyncIterator[tuple[StreamingSwitch, Watched, dict[str, Any]]]:
    """A SONiC that streams its tables, and these."""
    whole: dict[str, Any] = {}
    async with streaming(folder, "sonic_gnmi", {}, **more) as (switch, watched):

        def everything(asked: GnmiQuestion) -> list[bytes]:
            for path in asked.paths:
                gets = REPLIES["GetResponse"].FromString(
                    sonic_reply(replace(asked, paths=(path,)), switch.databases)
                )
                for update in gets.notification[0].update:
                    whole[path] = json.loads(update.val.json_ietf_val)
            return [subscribe_response((path_of(path), ietf(whole[path]))) for path in asked.paths]

        switch.all = everything  # type: ignore[method-assign]
        yield switch, watched, whole


async def test_sonic_sends_counters_and_the_rest_is_queried(tmp_path: Path) -> None:
    async with sonic(tmp_path) as (switch, watched, whole):
        polled = await watched.synced()
        asked = {one.target: one for one in switch.questions if one.method == "Stream"}
        assert asked["COUNTERS_DB"].samples["COUNTERS/Ethernet*"] == 1
        assert asked["APPL_DB"].samples == {"PORT_TABLE": 0, "LLDP_ENTRY_TABLE": 0}
        switch.questions.clear()
        held = await watched.probe()
        queried = {path for one in switch.questions for path in one.paths}
        assert queried
        assert not queried & {path for one in asked.values() for path in one.paths}
        same = [name for name in polled if re.search("frames|link_|neighbor", name)]
        assert {name: held[name] for name in same} == {name: polled[name] for name in same}
        frames = [name for name in polled if "pfc_receive_frames" in name]
        assert frames
        port, row = next(iter(whole["COUNTERS/Ethernet*"].items()))
        row |= {"SAI_PORT_STAT_PFC_3_RX_PKTS": "123456"}
        message = subscribe_response((path_of("COUNTERS/Ethernet*"), ietf({port: row})))
        switch.queues["COUNTERS_DB"].put_nowait(message)
        while 123456 not in held.values():
            held = await watched.probe()
        assert len([name for name in held if "pfc_receive_frames" in name]) == len(frames), "others stay"


async def test_ports_of_sonic_that_are_named_are_sampled_by_themselves(tmp_path: Path) -> None:
    """The newest of both samples counts: that of all ports, and that of the port."""
    fast = FastSamples(1.0, (PORT,))
    async with sonic(tmp_path, samples=fast) as (switch, watched, whole):
        polled = await watched.synced()
        asked = {one.target: one for one in switch.questions if one.method == "Stream"}
        samples = asked["COUNTERS_DB"].samples
        assert (samples["COUNTERS/Ethernet*"], samples[f"COUNTERS/{PORT}"]) == (10, 1)
        assert polled.keys() <= (await watched.probe()).keys(), "all ports are shown"
        for path, frames in ((f"COUNTERS/{PORT}", "123456"), ("COUNTERS/Ethernet*", "123457")):
            row = whole[f"COUNTERS/{PORT}"] | {"SAI_PORT_STAT_PFC_3_RX_PKTS": frames}
            whole_or_row = ietf({PORT: row} if "*" in path else row)
            switch.queues["COUNTERS_DB"].put_nowait(subscribe_response((path_of(path), whole_or_row)))
            while int(frames) not in (await watched.probe()).values():
                pass


PORT = "Ethernet68"
KNOWN, MTU = (f'roce_switch_{name}{{port="{PORT}"}}' for name in ("neighbor_known", "link_mtu_bytes"))


@pytest.mark.parametrize("gone", [{PORT: {}}, {"lldp_rem_sys_name": "gpu-001"}, None], ids=str)
async def test_a_neighbor_that_is_gone_is_gone_whatever_the_switch_says_of_it(
    tmp_path: Path, gone: dict[str, Any] | None
) -> None:
    """sonic-gnmi sends an empty row, fields without their row, or nothing, depending on its version."""
    async with sonic(tmp_path) as (switch, watched, whole):
        await watched.synced()
        queue, table = switch.queues["APPL_DB"], path_of("LLDP_ENTRY_TABLE")
        changed = {PORT: {**whole["PORT_TABLE"][PORT], "mtu": "1500"}}
        queue.put_nowait(subscribe_response((path_of("PORT_TABLE"), ietf(changed))))
        held = await watched.probe()
        while held[MTU] != 1500:
            held = await watched.probe()
        assert held[KNOWN] == 1
        row = switch.databases["APPL_DB"].pop(f"LLDP_ENTRY_TABLE:{PORT}")
        if gone is None:
            watched.stream._store._due["lldp"] -= stream.TABLE_SECONDS
        else:
            queue.put_nowait(subscribe_response((table, ietf(gone))))
        while held[KNOWN] != 0:
            held = await watched.probe()
        switch.questions.clear()
        assert (await watched.probe())[KNOWN] == 0
        assert not [one for one in switch.questions if "LLDP_ENTRY_TABLE" in one.paths]
        queue.put_nowait(subscribe_response((table, ietf({PORT: row}))))
        while held[KNOWN] != 1:
            held = await watched.probe()


# What a stream has sent


PLAN = StreamPlan({"links": (("a/b[n=*]/c", 10), ("a/b[n=*]/c/d", 0)), "other": (("x", 0),)}, ("none",))


def message(*updates: tuple[str, Any], deleted: tuple[str, ...] = ()) -> LeafReader:
    made = notification((path_of(path), ietf(value)) for path, value in updates)
    for path in deleted:
        made.delete.add().elem.extend(
            [
                REPLIES["PathElem"](
                    name=one.name, key=[{"key": key, "value": value} for key, value in one.keys]
                ).SerializeToString()
                for one in path_of(path)
            ]
        )
    reader = LeafReader()
    response = REPLIES["SubscribeResponse"]()
    response.update.CopyFrom(made)
    reader.add(bytes(response.SerializeToString()))
    return reader


def kept(store: LeafStore, source: str = "links") -> list[tuple[str, Any]]:
    return [(path_text(path), value) for path, value in store.held(0)[source]]


def test_ports_that_are_sampled_fast_take_the_place_of_the_first_key() -> None:
    plan = PLAN._replace(paths={"pfc": (("a[n=*]/b[i=*]", 1.0), ("c", 0), ("d", 10))})
    assert stream.sampled(plan, FastSamples(2.0, ("p1",))) == plan._replace(
        paths={"pfc": (("a[n=*]/b[i=*]", 10.0), ("a[n=p1]/b[i=*]", 2.0), ("c", 0), ("d", 10))}
    )
    assert stream.sampled(None, FastSamples()) is None


async def test_rows_that_come_while_their_table_is_queried_are_newer() -> None:
    store = LeafStore(PLAN._replace(tables=("other",)))
    assert "other" not in store.held(0)
    await store.add(message(("x", {"1": {"a": "new"}, "2": {"a": "new"}})), 0)
    (leaf,) = message(("x", {"1": {"a": "old"}, "3": {"a": "old"}})).leaves
    store.renew({"other": (leaf,)}, 0)
    assert kept(store, "other") == [("x", {"1": {"a": "new"}, "2": {"a": "new"}, "3": {"a": "old"}})]


async def test_the_newest_value_of_a_path_is_the_last_one() -> None:
    store = LeafStore(PLAN)
    assert store.held(0) == {"none": None, "links": (), "other": ()}
    await store.add(message(("a/b[n=1]/c/d", 1), ("a/b[n=2]/c/d", 2), ("unknown/path", 3)), 0)
    await store.add(message(("a/b[n=1]/c/d", 4)), 1)
    assert kept(store) == [("a/b[n=2]/c/d", 2), ("a/b[n=1]/c/d", 4)]
    await store.add(message(("x", {"Ethernet0": {"k": 1}, "Ethernet4": {"k": 1}})), 1)
    await store.add(message(("x", {"Ethernet0": {"l": 2}})), 1)
    assert kept(store, "other") == [("x", {"Ethernet0": {"l": 2}, "Ethernet4": {"k": 1}})]


@pytest.mark.parametrize("deleted", ["a/b[n=1]", "a/b[n=1]/c/d", "a/b[n=1]/c"])
async def test_what_a_switch_deletes_is_gone(deleted: str) -> None:
    store = LeafStore(PLAN)
    await store.add(message(("a/b[n=1]/c/d", 1), ("a/b[n=2]/c/d", 2)), 0)
    await store.add(message(deleted=(deleted,)), 1)
    assert kept(store) == [("a/b[n=2]/c/d", 2)]
    await store.add(message(("a/b[n=3]/c/d", 3), deleted=("a/b[n=*]",)), 1)
    assert kept(store) == [("a/b[n=3]/c/d", 3)]


def test_the_keys_of_a_path_may_come_in_any_order() -> None:
    first, second = (
        message((f"a/b[n=1]/c{keys}", 1)).leaves[0].path for keys in ("[i=1][j=2]", "[j=2][i=1]")
    )
    assert first == second


async def test_a_source_without_samples_is_silent_and_one_with_changes_only_is_not() -> None:
    store = LeafStore(PLAN)
    await store.add(message(("a/b[n=1]/c/d", 1)), 0)
    late = stream.LATE_SAMPLES * 10 + stream.GRACE_SECONDS
    await store.add(message(("x", 1)), late)
    with pytest.raises(NetError, match="links: no sample for 41 s"):
        await store.add(message(("x", 2)), late + 1)


async def test_a_switch_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_LEAVES", 3)
    store = LeafStore(PLAN)
    await store.add(message(*((f"a/b[n={number}]/c/d", 1) for number in range(3))), 0)
    with pytest.raises(NetError, match="more than 3 values"):
        await store.add(message(("a/b[n=9]/c/d", 1)), 0)
    monkeypatch.setattr(stream, "MOST_BYTES", 1 << 20)
    store, row = LeafStore(PLAN), {"long": 1000 * "x"}
    for _ in range(3000):
        await store.add(message(("x", {"Ethernet0": row})), 0)

    async def fill() -> None:  # one after the other, as `_hold` takes those of two databases
        for number in range(3000):
            await store.add(message(("x", {f"Ethernet{number}": row})), 0)

    with pytest.raises(NetError, match="more than 1 MiB"):
        await fill()


async def test_two_databases_may_send_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "AT_ONCE", 1)
    async with sonic(tmp_path) as (switch, watched, whole):
        await watched.synced()
        for number in range(20):
            port = {PORT: {**whole["PORT_TABLE"][PORT], "mtu": str(number)}}
            switch.queues["APPL_DB"].put_nowait(subscribe_response((path_of("PORT_TABLE"), ietf(port))))
            counted = {
                name: {**row, "SAI_PORT_STAT_PFC_3_RX_PKTS": str(number)}
                for name, row in whole["COUNTERS/Ethernet*"].items()
            }
            switch.queues["COUNTERS_DB"].put_nowait(
                subscribe_response((path_of("COUNTERS/Ethernet*"), ietf(counted)))
            )
        found = await watched.probe()
        while found[MTU] != 19 or 19 not in [found[name] for name in found if "pfc_receive_frames" in name]:
            found = await watched.probe()


async def test_a_database_that_has_sent_everything_first_may_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, add, counters = [], LeafStore.add, asyncio.Event()

    async def take(store: LeafStore, found: LeafReader, now: float) -> None:
        await add(store, found, now)
        taken.append(found)

    monkeypatch.setattr(LeafStore, "add", take)
    async with sonic(tmp_path) as (switch, watched, whole):
        begin = switch.stream

        async def late(asked: GnmiQuestion) -> AsyncIterator[bytes]:
            if asked.target == "COUNTERS_DB":
                await counters.wait()
            return await begin(asked)

        switch.stream = late  # type: ignore[method-assign]
        await watched.probe()
        await until(lambda: len(taken) == 3)
        counters.set()
        await until(lambda: watched.stream._store)
        pass_time(gnmi.SILENT_SECONDS - 5)
        known = len(taken)
        port = subscribe_response((path_of("COUNTERS/Ethernet*"), ietf(whole["COUNTERS/Ethernet*"])))
        switch.queues["COUNTERS_DB"].put_nowait(port)
        await until(lambda: len(taken) > known)
        pass_time(10)
        assert await watched.source() == 1


async def test_a_table_that_is_queried_while_a_message_is_taken_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "AT_ONCE", 1)
    store = LeafStore(PLAN._replace(tables=("other",)))
    await store.add(message(("x", {"1": {"a": "old"}})), 0)
    now = stream.TABLE_SECONDS
    assert "other" not in store.held(now)
    adding = asyncio.create_task(store.add(message(("a/b[n=1]/c/d", 1), ("a/b[n=2]/c/d", 1)), now))
    await asyncio.sleep(0)
    (leaf,) = message(("x", {"1": {"a": "new"}})).leaves
    store.renew({"other": (leaf,)}, now)
    await adding
    assert store.held(now).get("other", (leaf,)) == (leaf,)


async def test_names_without_end_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_NAMES", 3)
    store = LeafStore(PLAN)
    await store.add(message(*((f"invented{number}", 1) for number in range(10))), 0)
    assert len(store._sources) <= 3
    await store.add(message(("x", 1)), 0)
    assert kept(store, "other") == [("x", 1)]


async def test_deletions_without_end_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_COMPARED", 3)
    store = LeafStore(PLAN)
    await store.add(message(*((f"a/b[n={number}]/c/d", 1) for number in range(3))), 0)
    with pytest.raises(NetError, match="deleted 2 paths at once"):
        await store.add(message(deleted=("a/b[n=*]", "x")), 0)


async def test_deletions_leave_the_event_loop_its_turns(monkeypatch) -> None:
    monkeypatch.setattr(stream, "AT_ONCE", 10)
    store, turns = LeafStore(PLAN), 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count())
    await store.add(message(*((f"a/b[n={number}]/c/d", 1) for number in range(100))), 0)
    assert turns >= 10
    await store.add(message(deleted=("a/b[n=7]", "a/b[n=8]", "a/b[n=9]")), 0)
    other.cancel()
    assert turns >= 10 + 3 * 9
    assert len(kept(store)) == 97


async def test_a_round_sees_all_of_a_message_or_nothing(monkeypatch) -> None:
    monkeypatch.setattr(stream, "AT_ONCE", 10)
    store, seen = LeafStore(PLAN), set()
    ports = [f"a/b[n={number}]/c/d" for number in range(100)]
    await store.add(message(*((port, 1) for port in ports)), 0)

    async def look() -> None:
        while True:
            seen.add(tuple(sorted(value for _, value in kept(store))))
            await asyncio.sleep(0)

    other = asyncio.create_task(look())
    await store.add(message(*((port, 2) for port in ports), deleted=("a/b[n=*]",)), 1)
    await store.add(message(*((port, 3) for port in ports)), 2)
    other.cancel()
    assert seen <= {(1,) * 100, (2,) * 100, (3,) * 100}
