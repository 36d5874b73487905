"""Rounds that read the values of a SONiC again: the same as whole ones, with a real Redis, whatever changes in between."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from sonic_redis import DATABASES, RedisServer, need_redis, recorded, target_of
from waiting import HUNG_SECONDS

from roce_exporter.introspection.debug import series_text
from roce_exporter.net import ReplyBudget
from roce_exporter.switches.interpretation import earlier
from roce_exporter.switches.probe import Prober, ProbeResult
from roce_exporter.switches.systems.sonic import redis_client, repeat
from roce_exporter.switches.systems.sonic.repeat import SonicRepeat
from roce_exporter.switches.targets import ProbeLimits, SwitchesFile


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RedisServer]:
    need_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


def load(server: RedisServer) -> None:
    """A recorded switch, with states of its ports."""
    tables = recorded("switch-sonic")
    for port in tables["counters_db"]["COUNTERS_PORT_NAME_MAP"]:
        tables["appl_db"][f"PORT_TABLE:{port}"] = {
            "oper_status": "up",
            "admin_status": "up",
            "speed": "400000",
        }
    server.load(tables)


@contextlib.asynccontextmanager
async def probing(server: RedisServer) -> AsyncIterator[Prober]:
    target = target_of(server.socket, name="leaf1", ports={"unix": 0}, timeout=HUNG_SECONDS)
    prober = Prober(SwitchesFile({"leaf1": target}, (), ProbeLimits(cache_seconds=0)))
    yield prober
    await prober.close()


def values(answer: ProbeResult) -> dict[str, object]:
    found = {
        series_text(series): value
        for part in answer.samples
        for series, value in zip(part.series, part.values, strict=True)
    }
    return {name: value for name, value in found.items() if "probe_duration" not in name}


def again(prober: Prober) -> SonicRepeat | None:
    found = prober._states["leaf1"].again
    assert found is None or isinstance(found, repeat.SonicRepeat)
    return found


async def rounds(
    server: RedisServer, change: Callable[[], object], *, slow: bool = False
) -> tuple[bool, bool]:
    """Whether the round after a change read values alone, and whether its answer is that of a whole round."""
    async with probing(server) as prober, probing(server) as other:
        await prober.probe("leaf1", "", 60)
        kept = again(prober)
        assert kept is not None
        change()
        if slow:
            kept.slow_due = 0
        found = values(await prober.probe("leaf1", "", 60))
        return again(prober) is kept, found == values(await other.probe("leaf1", "", 60))


def counted(server: RedisServer, database: str, start: str, **fields: object) -> Callable[[], None]:
    """Sets fields of all hashes whose keys begin so; None deletes."""

    def change() -> None:
        with server.client(DATABASES[database]) as client:
            keys = [key for key in client.keys(f"{start}*") if client.type(key) == "hash"]
            assert keys
            for key in keys:
                for name, value in fields.items():
                    if value is None:
                        client.hdel(key, name)
                    elif client.hexists(key, name):
                        client.hset(key, name, str(value))

    return change


async def test_counters_that_rise_are_read_without_a_whole_round(server) -> None:
    load(server)
    change = counted(
        server,
        "counters_db",
        "COUNTERS:oid",
        SAI_PORT_STAT_PFC_3_RX_PKTS=777,
        SAI_PORT_STAT_IF_IN_OCTETS=2**62,
    )
    assert await rounds(server, change) == (True, True)
    async with probing(server) as prober:
        first = await prober.probe("leaf1", "", 60)
        counted(server, "counters_db", "COUNTERS:oid", SAI_PORT_STAT_PFC_3_RX_PKTS=778)()
        with server.client() as client:
            client.config_resetstat()
            found = values(await prober.probe("leaf1", "", 60))
            ((last, before),) = prober.views()
            assert (before, last.facts) == (earlier(first.ended, first.samples[0]), first.facts)
            commands = client.info("commandstats")
    frames = {value for name, value in found.items() if "pfc_receive_frames_total" in name and '"3"' in name}
    assert frames == {778}
    assert set(commands) <= {"cmdstat_hgetall", "cmdstat_hmget", "cmdstat_select", "cmdstat_config|resetstat"}


async def test_all_databases_of_a_round_have_one_budget(server, monkeypatch) -> None:
    made: list[ReplyBudget] = []

    def budget(*bounds: int) -> ReplyBudget:
        made.append(ReplyBudget(*bounds))
        return made[-1]

    monkeypatch.setattr(redis_client, "ReplyBudget", budget)
    load(server)
    async with probing(server) as prober:
        await prober.probe("leaf1", "", 60)
        kept = again(prober)
        await prober.probe("leaf1", "", 60)
        assert again(prober) is kept is not None
    whole, repeated = made
    assert whole.received > repeated.received > 0
    assert whole.values > 0


@pytest.mark.parametrize(
    ("database", "start", "fields", "is_slow"),
    [
        ("appl_db", "PORT_TABLE:", {"oper_status": "down"}, False),
        ("counters_db", "COUNTERS:oid", {"SAI_PORT_STAT_PFC_3_RX_PKTS": "-"}, False),
        ("counters_db", "COUNTERS:oid", {"SAI_PORT_STAT_PFC_3_RX_PKTS": "1e3"}, False),
        ("counters_db", "COUNTERS:oid", {"SAI_PORT_STAT_PFC_3_RX_PKTS": str(2**64)}, False),
        ("counters_db", "COUNTERS:oid", {"SAI_PORT_STAT_PFC_3_RX_PKTS": None}, False),
        ("counters_db", "COUNTERS_PORT_NAME_MAP", {"Ethernet0": "oid:0x0"}, False),
        ("config_db", "PORT_QOS_MAP|", {"pfc_enable": ""}, True),
        ("appl_db", "LLDP_ENTRY_TABLE:", {"lldp_rem_sys_name": "another\r\nhost"}, True),
    ],
)
async def test_whatever_else_changes_costs_a_whole_round(server, database, start, fields, is_slow) -> None:
    load(server)
    change = counted(server, database, start, **fields)
    assert await rounds(server, change, slow=is_slow) == (False, True)


@pytest.mark.parametrize(
    ("database", "start"),
    [("config_db", "PFC_WD|"), ("config_db", "QUEUE|"), ("appl_db", "LLDP_ENTRY_TABLE:")],
)
async def test_rows_that_appear_cost_a_whole_round(server, database, start) -> None:
    load(server)
    with server.client(DATABASES[database]) as client:
        rows = {key: client.hgetall(key) for key in client.keys(f"{start}*")}
        client.delete(*rows)

        def appear() -> None:
            for key, fields in rows.items():
                client.hset(key, mapping=fields)

        assert await rounds(server, appear, slow=True) == (False, True)


async def test_a_counter_that_was_damaged_once_is_back_in_the_next_round(server) -> None:
    load(server)
    name = "SAI_PORT_STAT_PFC_3_RX_PKTS"
    async with probing(server) as prober:
        seen = []
        for text in ("5", "-", "9", "10"):
            counted(server, "counters_db", "COUNTERS:oid", **{name: text})()
            found = values(await prober.probe("leaf1", "", 60))
            seen.append({v for n, v in found.items() if "pfc_receive_frames_total" in n and '"3"' in n})
        assert seen == [{5}, set(), {9}, {10}]
        assert again(prober) is None, "rounds are whole for a while"
        prober._states["leaf1"].whole_until = 0
        await prober.probe("leaf1", "", 60)
        assert again(prober) is not None


async def test_a_whole_round_follows_after_some_minutes(server, monkeypatch) -> None:
    load(server)
    assert await rounds(server, lambda: monkeypatch.setattr(repeat, "WHOLE_SECONDS", 0)) == (False, True)


async def test_a_pool_whose_name_would_end_a_command_is_not_read_again(server) -> None:
    tables = recorded("switch-sonic")
    names = tables["counters_db"]["COUNTERS_BUFFER_POOL_NAME_MAP"]
    name, oid = next(iter(names.items()))
    names[name] = f"{oid}\0$1\r\n"
    server.load(tables)
    assert await rounds(server, lambda: None) == (True, True)


async def test_a_server_that_is_gone_is_no_answer(tmp_path_factory) -> None:
    need_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    load(server)
    try:
        async with probing(server) as prober:
            assert (await prober.probe("leaf1", "", 60)).success
            server.stop()
            assert not (await prober.probe("leaf1", "", 60)).success
            assert again(prober) is None
    finally:
        server.stop()
