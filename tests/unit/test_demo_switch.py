"""The switch end of the demo: what it needs, what it writes, and what it shows."""

import signal
import time
from pathlib import Path

import pytest
import redis
from sonic_redis import need_redis
from sonic_server import redis_server, short_folder
from waiting import until

from roce_exporter.catalog import INDEX
from roce_exporter.demo import switch_end as module
from roce_exporter.demo.figures import SWITCH_WANTED, Moments, switch_ports
from roce_exporter.demo.servers import running
from roce_exporter.demo.switch_end import TablesNotWrittenError, TableWriter, switch_end
from roce_exporter.host.simulated.simulated_switch import DATABASE_NUMBERS, simulate_switch
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.view.host_view import TimedSamples, timed_samples

LEAF = "leaf-057"
PORT = (LEAF, "Ethernet0")


def leaf():
    return simulate_switch("pfc-storm", start=100.0, vendors=("mlx5",) * 4, seed=57)


class TestMissing:
    @pytest.fixture
    def program(self, tmp_path, monkeypatch) -> Path:
        """The place of redis-server on the PATH, where nothing is."""
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path / "redis-server"

    async def noted(self, folder: Path | None = None) -> list[str]:
        notes: list[str] = []
        with short_folder() as short:
            async with switch_end(leaf(), folder or short, notes) as found:
                assert found is None
        return notes

    async def test_without_redis_server_a_note_says_what_it_would_show(self, program) -> None:
        (note,) = await self.noted()
        assert (
            note == "redis-server is not on the PATH: with it the demo shows the switch end of the links too"
        )

    async def test_a_folder_whose_path_is_too_long_is_noted(self, program, tmp_path) -> None:
        install(program, "exit 3")
        folder = tmp_path / ("x" * 100)
        assert await self.noted(folder) == [
            f"{folder}/redis.sock is too long for a socket: no switch here; set TMPDIR to a shorter folder"
        ]

    @pytest.mark.parametrize(
        ("script", "note"),
        [
            (
                "#!/bin/sh\necho the port is taken >&2\nexit 3\n",
                "redis-server ended with code 3; the rest goes on: the port is taken",
            ),
            ("\x7fELF no program", "{program} cannot be started: Exec format error; the rest goes on"),
            ("#!/bin/sh\nexec /bin/sleep 60\n", "redis-server does not answer; the rest goes on"),
        ],
    )
    async def test_a_server_that_does_not_serve_is_ended_and_noted(
        self, program, monkeypatch, script, note
    ) -> None:
        install(program, script)
        if "sleep" in script:
            monkeypatch.setattr(module, "START_SECONDS", 0.0)
        assert await self.noted() == [note.format(program=program)]


def install(program: Path, script: str) -> None:
    program.write_text(script)
    program.chmod(0o755)


def stored(socket: Path) -> dict[str, dict[str, dict[str, str]]]:
    """Everything in the server."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, number in DATABASE_NUMBERS.items():
        with redis.Redis(unix_socket_path=str(socket), db=number, decode_responses=True) as client:
            found[name] = {key: client.hgetall(key) for key in client.scan_iter()}
    return found


class TestWriter:
    async def test_the_server_has_exactly_the_tables_of_the_switch(self) -> None:
        switch = leaf()
        with redis_server() as socket:
            writer = TableWriter(socket)
            for now in (101.0, 121.5, 130.0):
                databases = switch.databases(now)
                await writer.write(databases)
                assert stored(socket) == databases

    async def test_keys_and_fields_that_are_gone_are_removed(self) -> None:
        rest = {"CONFIG_DB": {"A|1": {"one": "1"}}, "APPL_DB": {}, "STATE_DB": {}}
        with redis_server() as socket:
            writer = TableWriter(socket)
            await writer.write({**rest, "COUNTERS_DB": {"a": {"x": "1", "y": "2"}, "b": {"x": "1"}}})
            await writer.write({**rest, "COUNTERS_DB": {"a": {"x": "1"}}})
            assert stored(socket) == {**rest, "COUNTERS_DB": {"a": {"x": "1"}}}
            with pytest.raises(TablesNotWrittenError, match=r"wrong number of arguments"):
                await writer.write({**rest, "COUNTERS_DB": {"a": {}}})
            with redis.Redis(unix_socket_path=str(socket)) as client:
                await until(
                    lambda: len(client.client_list()) == 1
                )  # the server closes its end soon after ours

    async def test_a_server_that_is_away_is_one_line(self, tmp_path) -> None:
        with pytest.raises(TablesNotWrittenError, match=r"^the tables of the switch cannot be written: .+"):
            await TableWriter(tmp_path / "none.sock").write(leaf().databases(101.0))


ROWS = INDEX.named


def values(time: float, *found: tuple[str, tuple[str, ...], float]) -> TimedSamples:
    samples = Samples(
        tuple(Series(ROWS[name], labels) for name, labels, _ in found), tuple(value for *_, value in found)
    )
    return timed_samples([samples], time, SWITCH_WANTED)


def neighbor(port: str = "02:00:00:39:00:00", description: str = "eth0", kind: str = "mac"):
    labels = (*PORT, "gpu-057", "02:00:00:39:00:00", port, description, "", kind, "lldp")
    return "roce_switch_lldp_neighbor_info", labels, 1


def port_values(time: float, pause: float = 0.0, **more: float) -> TimedSamples:
    queue, group = (*PORT, "3"), (*PORT, "3")
    known = {
        "roce_switch_queue_info": ((*PORT, "3", "3", "3"), 1),
        "roce_switch_pfc_receive_pause_seconds_total": ((*PORT, "3"), pause),
        "roce_switch_pfc_watchdog_enabled": (queue, more.get("enabled", 1)),
        "roce_switch_pfc_watchdog_acts": (queue, more.get("acts", 1)),
        "roce_switch_pfc_watchdog_tripped": (queue, more.get("tripped", 0)),
        "roce_switch_pfc_watchdog_trips_total": (queue, more.get("trips", 0)),
        "roce_switch_queue_ecn_marked_packets_total": (queue, more.get("marked", 0)),
        "roce_switch_buffer_headroom_bytes": (group, 400),
        "roce_switch_buffer_headroom_watermark_bytes": ((*group, "periodic"), more.get("used", 0)),
    }
    found = [(name, labels, value) for name, (labels, value) in known.items()]
    return values(time, *found, neighbor())


class TestFigures:
    def only(self, *moments: TimedSamples):
        followed = Moments()
        for moment in moments:
            followed.add(moment)
            (port,) = switch_ports(followed)
        return port

    def test_rates_are_over_two_seconds_of_the_switch_and_shares_at_most_1(self) -> None:
        port = self.only(
            port_values(10, 0.0, marked=0), port_values(11, 0.5, marked=10), port_values(12, 1.0, marked=50)
        )
        assert port.shares == (None, 0.5, 0.5)
        assert port.marked == 25
        assert self.only(port_values(10, 0.0), port_values(12, 2.4)).shares[-1] == 1.0

    def test_the_same_tables_read_twice_have_the_same_share(self) -> None:
        port = self.only(*(port_values(time, time / 2) for time in (10, 10, 12, 12)))
        assert port.shares == (None, None, 0.5, 0.5)

    def test_trips_neighbour_and_headroom_are_those_of_its_queue_and_group(self) -> None:
        port = self.only(port_values(10, trips=2, used=100))
        assert (port.port, port.priority, port.neighbor) == ("Ethernet0", "3", "gpu-057 eth0")
        assert (port.trips, port.headroom) == (2, 0.25)

    @pytest.mark.parametrize(
        ("state", "found"),
        [
            ("ok", {}),
            ("tripped", {"tripped": 1}),
            ("tripped", {"tripped": 1, "acts": 0}),
            ("reports", {"acts": 0}),
            ("off", {"enabled": 0}),
        ],
    )
    def test_the_state_of_the_watchdog(self, state, found) -> None:
        assert self.only(port_values(10, **found)).watchdog == state

    def test_what_the_switch_does_not_have_is_not_shown_as_zero(self) -> None:
        port = self.only(values(10, ("roce_switch_queue_info", (*PORT, "3", "3", "3"), 1)))
        assert (port.trips, port.marked, port.headroom, port.shares[-1]) == (None, None, None, None)
        assert (port.neighbor, port.watchdog) == ("", "")

    def test_a_neighbour_is_named_by_its_port_unless_that_is_an_address(self) -> None:
        info = ("roce_switch_queue_info", (*PORT, "3", "3", "3"), 1)
        for text, found in (
            ("gpu-057 eth0", neighbor()),
            ("gpu-057 eth7", neighbor("eth7", "Interface 7", "name")),
            ("gpu-057 02:00:00:39:00:00", neighbor(description="")),
        ):
            assert self.only(values(10, info, found)).neighbor == text


async def seen(end: module.SwitchEnd, before: object) -> object:
    """The next view that is another one."""
    for _ in range(10_000):
        if (found := await end.view()) != before:
            return found
    raise AssertionError("nothing else is shown")


class TestServer:
    async def test_the_switch_is_shown_and_kept_while_it_does_not_answer(self) -> None:
        need_redis()
        notes: list[str] = []
        switch = simulate_switch("quiet", start=time.monotonic(), vendors=("mlx5",), seed=57)
        with short_folder() as folder:
            async with switch_end(switch, folder, notes) as end:
                assert end is not None
                first = await seen(end, None)
                assert first.name == LEAF
                assert [port.neighbor for port in first.ports] == [
                    "gpu-057 eth0",
                    "gpu-058 eth0",
                    "gpu-059 eth0",
                ]
                end.child.process.send_signal(signal.SIGSTOP)
                assert await end.view() == first
                end.child.process.send_signal(signal.SIGCONT)
                await seen(end, first)
        assert all("cannot be written: Timeout" in note for note in notes)

    async def test_its_end_is_noted_once(self, tmp_path) -> None:
        notes: list[str] = []
        async with running("redis-server", ["sleep", "60"], tmp_path / "log") as child:
            end = module.SwitchEnd(LEAF, "127.0.0.1:1", None, child, notes)  # type: ignore[arg-type]
            assert end.running
            child.process.kill()
            await child.process.wait()
            assert await end.view() is None
            assert await end.view() is None
        assert notes == ["redis-server was ended by SIGKILL; the rest goes on"]
