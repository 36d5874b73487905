"""The demo's two views are functions of scenes: plain lines, and a screen."""

from __future__ import annotations

import io
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from roce_exporter.demo.scene import (
    Address,
    Alert,
    PauseHistory,
    Priority,
    Scene,
    ShownOwner,
    ShownSwitch,
    StormEvent,
    SwitchPriority,
)
from roce_exporter.demo.screen import screen, short_number, sparkline
from roce_exporter.demo.views import changes, closing, opening, view, wants_screen

CALM = PauseHistory((0.0, 0.2), "ok", 0)
STORMY = PauseHistory((0.1, 1.0), "storm", 2)
PRIORITY = Priority("mlx5_0", "1", "eth0", "3", True, CALM, STORMY, 0.4, 3200.0, None)
STORM = StormEvent(
    "mlx5_0", "1", "eth0", "3", "transmit", "slow_receiver", "2026-01-02T03:04:05.678+00:00", None, ""
)
ALERT = Alert(
    "RocePfcStormTransmitted", "page", "firing", "PFC storm sent by demo-host", (("priority", "3"),)
)
QUIET = Scene(
    "pfc-storm",
    "one port storms",
    1.0,
    (Address("exporter", "http://127.0.0.1:1/"), Address("prometheus", "http://127.0.0.1:2/alerts")),
    (PRIORITY,),
    alerts=(),
)

SWITCH_PORT = SwitchPriority("Ethernet0", "3", "gpu-057 eth0", (0.0, 1.0), "ok", 0, 3200.0, 0.25)
SWITCH = ShownSwitch("leaf-057", (SWITCH_PORT,))


def tripped(port: SwitchPriority = SWITCH_PORT, trips: int = 1) -> ShownSwitch:
    return ShownSwitch("leaf-057", (replace(port, watchdog="tripped", trips=trips),))


def later(**changed: object) -> Scene:
    return replace(QUIET, seconds=12.34, **changed)


def shown(scene: Scene, width: int = 100, height: int = 30) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=width, height=height).print(screen(scene, width, height))
    return output.getvalue().splitlines()


class TestLines:
    def test_the_addresses_come_first(self) -> None:
        assert opening(QUIET) == [
            "simulated host, scenario pfc-storm: one port storms",
            "exporter     http://127.0.0.1:1/",
            "prometheus   http://127.0.0.1:2/alerts",
        ]

    def test_without_events_there_are_no_lines(self) -> None:
        assert changes(QUIET, later()) == []

    def test_a_storm_has_a_line_when_it_begins_and_when_it_ends(self) -> None:
        begun = later(storms=(STORM,))
        ended = later(storms=(replace(STORM, duration=2.51, reason="restored"),))
        place = "mlx5_0/1 (eth0) priority 3 transmit"
        assert changes(QUIET, begun) == [f"[  12.3 s] storm begins: {place}, hint slow_receiver"]
        assert changes(begun, begun) == []
        assert changes(begun, ended) == [f"[  12.3 s] storm ends: {place} after 2.5 s, restored"]
        assert changes(ended, ended) == []

    def test_a_storm_between_two_scenes_has_both_lines(self) -> None:
        begins, ends = changes(QUIET, later(storms=(replace(STORM, duration=0.5, reason="restored"),)))
        assert "storm begins" in begins
        assert "storm ends" in ends

    def test_storms_are_listed_in_the_order_of_their_begin(self) -> None:
        newer = replace(STORM, netdev="eth1", start="2026-01-02T03:05:00.000+00:00")
        first, second = changes(QUIET, later(storms=(newer, STORM)))
        assert "eth0" in first
        assert "eth1" in second

    def test_an_alert_has_a_line_when_it_fires_and_when_it_resolves(self) -> None:
        pending, firing = later(alerts=(replace(ALERT, state="pending"),)), later(alerts=(ALERT,))
        assert changes(QUIET, pending) == []
        assert changes(pending, firing) == [
            "[  12.3 s] alert fires: RocePfcStormTransmitted (page) PFC storm sent by demo-host"
        ]
        assert changes(firing, firing) == []
        assert changes(firing, later()) == ["[  12.3 s] alert resolves: RocePfcStormTransmitted (page)"]

    def test_the_same_alert_of_another_priority_is_another_alert(self) -> None:
        other = replace(ALERT, labels=(("priority", "4"),))
        assert len(changes(later(alerts=(ALERT,)), later(alerts=(ALERT, other)))) == 1

    def test_a_changed_summary_is_no_new_line(self) -> None:
        assert changes(later(alerts=(ALERT,)), later(alerts=(replace(ALERT, summary="now two"),))) == []

    def test_a_prometheus_that_ended_resolves_nothing(self) -> None:
        assert changes(later(alerts=(ALERT,)), later(alerts=None)) == []

    def test_a_watchdog_of_the_switch_has_a_line_when_it_trips_and_when_it_restores(self) -> None:
        calm, held = later(switch=SWITCH), later(switch=tripped())
        restored = later(switch=ShownSwitch("leaf-057", (replace(SWITCH_PORT, trips=1),)))
        place = "leaf-057 Ethernet0 (gpu-057 eth0) priority 3"
        assert changes(calm, calm) == []
        assert changes(calm, held) == [f"[  12.3 s] switch watchdog trips: {place}"]
        assert changes(held, held) == []
        assert changes(held, restored) == [f"[  12.3 s] switch watchdog restores: {place}"]

    def test_a_storm_between_two_scenes_is_a_trip(self) -> None:
        after = later(switch=ShownSwitch("leaf-057", (replace(SWITCH_PORT, trips=1, neighbor=""),)))
        assert changes(later(switch=SWITCH), after) == [
            "[  12.3 s] switch watchdog trips: leaf-057 Ethernet0 (no neighbour) priority 3"
        ]

    def test_a_port_whose_queues_were_not_read_has_no_lines(self) -> None:
        unread = later(switch=ShownSwitch("leaf-057", (replace(SWITCH_PORT, watchdog="", trips=None),)))
        assert changes(later(switch=tripped()), unread) == []
        assert changes(unread, later(switch=tripped())) == []

    def test_a_switch_that_appears_or_ends_has_no_trips(self) -> None:
        assert changes(QUIET, later(switch=tripped(trips=3))) == []
        assert changes(later(switch=tripped()), later()) == []

    def test_a_note_has_one_line(self) -> None:
        noted = later(notes=("prometheus was ended by SIGKILL",))
        assert changes(QUIET, noted) == ["[  12.3 s] prometheus was ended by SIGKILL"]
        assert changes(noted, noted) == []

    def test_the_last_line_counts_the_storms_of_both_directions(self) -> None:
        assert closing(later()) == "ended after 12 s with 2 PFC storms seen"
        once = replace(PRIORITY, transmit=replace(STORMY, storms=1))
        assert closing(later(priorities=(once,))) == "ended after 12 s with 1 PFC storm seen"


class TestView:
    def test_without_a_terminal_there_are_plain_lines(self) -> None:
        output = io.StringIO()
        with view(output) as show:
            show(QUIET)
            show(later(storms=(STORM,)))
        lines = output.getvalue().splitlines()
        assert lines[:3] == opening(QUIET)
        assert lines[3].startswith("[  12.3 s] storm begins")
        assert lines[4:] == [closing(later())]
        assert "\x1b" not in output.getvalue()

    def test_a_note_of_the_first_scene_has_a_line(self) -> None:
        output = io.StringIO()
        with view(output) as show:
            show(replace(QUIET, notes=("prometheus is not on the PATH",)))
        assert "[   1.0 s] prometheus is not on the PATH\n" in output.getvalue()

    def test_a_variable_that_forces_colours_makes_no_terminal(self, monkeypatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        output = io.StringIO()
        assert Console(file=output).is_terminal
        assert not wants_screen(Console(file=output), output)

    def test_a_terminal_that_cannot_move_its_cursor_gets_lines(self) -> None:
        class Teletype(io.TextIOWrapper):
            def isatty(self) -> bool:
                return True

        output = Teletype(io.BytesIO(), encoding="utf-8")
        assert wants_screen(Console(file=output, _environ={"TERM": "xterm"}), output)
        assert not wants_screen(Console(file=output, _environ={"TERM": "dumb"}), output)
        latin = Teletype(io.BytesIO(), encoding="iso-8859-1")
        assert not wants_screen(Console(file=latin, _environ={"TERM": "xterm"}), latin)


class TestScreen:
    def test_it_shows_every_part_of_a_scene(self) -> None:
        note = "alertmanager is not on the PATH"
        text = "\n".join(shown(later(storms=(STORM,), alerts=(ALERT,), notes=(note,)), width=140))
        for expected in (
            "pfc-storm: one port storms",
            "http://127.0.0.1:1/",
            "http://127.0.0.1:2/alerts",
            "eth0 mlx5_0/1 p3",
            " 20%",
            "100%",
            "3.2k",
            "firing",
            "RocePfcStormTransmitted",
            "PFC storm sent by demo-host",
            "03:04:05  goes on",
            "slow_receiver",
            note,
        ):
            assert expected in text

    def test_the_row_of_a_port_reads_from_pause_in_to_reaction(self) -> None:
        (row,) = (line for line in shown(QUIET, width=80) if "mlx5_0" in line)
        assert row.split() == [
            *("eth0", "mlx5_0/1", "p3"),
            *("▂", "20%", "▁█", "100%"),
            *("storm", "2", "0.4", "3.2k", "-"),
        ]

    def test_the_worse_direction_gives_the_state(self) -> None:
        def state(receive: str, transmit: str) -> str:
            pauses = {"receive": replace(CALM, state=receive), "transmit": replace(CALM, state=transmit)}
            lines = shown(replace(QUIET, priorities=(replace(PRIORITY, **pauses),)))
            return next(line for line in lines if "mlx5_0" in line).split()[-5]

        assert state("ok", "storm") == "storm"
        assert state("recovering", "suspect") == "recovering"
        assert state("unknown", "ok") == "unknown"
        assert state("unknown", "suspect") == "suspect"

    def test_a_nic_that_measures_no_time_shows_a_bound_or_nothing(self) -> None:
        bound = replace(PRIORITY, receive=PauseHistory((0.5,), "ok", 0, estimated=True))
        assert any("≤50%" in line for line in shown(replace(QUIET, priorities=(bound,))))
        unknown = replace(PRIORITY, receive=PauseHistory((None,), "ok", 0), transmit=None)
        (row,) = (line for line in shown(replace(QUIET, priorities=(unknown,))) if "mlx5_0" in line)
        assert "%" not in row
        assert "·" in row

    def test_the_row_of_a_switch_port_reads_from_pause_in_to_headroom(self) -> None:
        lines = shown(later(switch=tripped()), width=90)
        (heading,) = (line for line in lines if line.startswith("leaf-057"))
        assert heading.split() == ["leaf-057", "pause", "in", "watchdog", "trips", "ECN/s", "headroom"]
        (row,) = (line for line in lines if line.startswith("Ethernet0"))
        assert row.split() == [
            "Ethernet0",
            "gpu-057",
            "eth0",
            "p3",
            "█",
            "100%",
            "tripped",
            "1",
            "3.2k",
            "25%",
        ]

    def test_what_a_switch_does_not_report_is_a_dash(self) -> None:
        port = replace(SWITCH_PORT, neighbor="", shares=(None,), watchdog="", trips=None)
        port = replace(port, marked=None, headroom=None)
        (row,) = (
            line
            for line in shown(later(switch=ShownSwitch("leaf-057", (port,))))
            if line.startswith("Ethernet0")
        )
        assert row.split() == ["Ethernet0", "-", "p3", "·", "-", "-", "-", "-", "-"]

    def test_on_a_low_screen_the_ports_with_trips_and_pause_are_shown(self) -> None:
        calm = [replace(SWITCH_PORT, port=f"Ethernet{8 * number}", shares=(0.0,)) for number in range(9)]
        ports = (
            *calm[:4],
            replace(calm[4], watchdog="tripped", trips=1),
            *calm[5:8],
            replace(calm[8], shares=(0.5,)),
        )
        lines = shown(later(switch=ShownSwitch("leaf-057", ports)), height=19)
        assert [line.split()[0] for line in lines if line.startswith("Ethernet")] == [
            "Ethernet32",
            "Ethernet64",
        ]

    def test_without_a_switch_there_is_no_table_of_it(self) -> None:
        assert not any("headroom" in line for line in shown(QUIET))

    def test_without_prometheus_there_is_no_heading_of_alerts(self) -> None:
        assert "alerts" in shown(QUIET)
        assert "alerts" not in shown(later(alerts=None))

    @given(
        width=st.integers(80, 250),
        height=st.integers(20, 60),
        alerts=st.integers(0, 40),
        storms=st.integers(0, 256),
        notes=st.integers(0, 2),
        ports=st.integers(0, 40),
    )
    def test_it_fits_the_screen_and_shows_the_newest_of_each(
        self, *, width: int, height: int, alerts: int, storms: int, notes: int, ports: int
    ) -> None:
        scene = later(
            alerts=(replace(ALERT, summary="x" * 300),) * alerts,
            storms=(STORM,) * storms,
            notes=("something is missing " * 20,) * notes,
            switch=ShownSwitch("leaf-057", (SWITCH_PORT,) * ports),
        )
        lines = shown(scene, width, height)
        assert len(lines) <= height
        assert all(len(line) <= width for line in lines)
        assert not alerts or any("RocePfcStorm" in line for line in lines)
        assert not storms or any("goes on" in line for line in lines)

    @given(st.lists(st.none() | st.floats(0, 1)), st.integers(1, 60))
    def test_a_sparkline_has_the_given_width_and_hides_no_pause(self, history, width: int) -> None:
        text = sparkline(history, width).plain
        assert len(text) == width
        for share, bar in zip(reversed(history), reversed(text), strict=False):
            assert (bar == " ") == (share == 0)
            assert (bar == "·") == (share is None)

    def test_numbers_are_short(self) -> None:
        shown = [short_number(value) for value in (None, 0, 0.44, 17.2, 999.4, 3210, 45_600, 1.5e6, 2e12)]
        assert shown == ["-", "0", "0.4", "17", "999", "3.2k", "46k", "1.5M", "2000G"]

    @given(st.floats(0, 1e11))
    def test_a_rate_never_needs_more_than_five_characters(self, value: float) -> None:
        assert len(short_number(value)) <= 5


SUFFERER = ShownOwner("slurm/4711.0", "gmx_mpi", 24, 2, 3200.0, 16.0)
BYSTANDER = ShownOwner("kernel/nvme_rdma", "", 8, 0, None, None)


class TestOwners:
    def test_queue_pairs_in_error_have_a_line_once_and_when_they_are_gone(self) -> None:
        sound = replace(SUFFERER, in_error=0)
        before, after = later(owners=(sound, BYSTANDER)), later(owners=(SUFFERER, BYSTANDER))
        assert changes(before, after) == [
            "[  12.3 s] queue pairs in error: 2 of 24 of slurm/4711.0 (gmx_mpi)"
        ]
        assert changes(after, after) == []
        assert changes(after, later(owners=(replace(SUFFERER, in_error=3), BYSTANDER))) == []
        assert changes(after, before) == ["[  12.3 s] queue pairs work again: slurm/4711.0 (gmx_mpi)"]

    def test_an_owner_that_appears_with_queue_pairs_in_error_has_a_line(self) -> None:
        assert len(changes(QUIET, later(owners=(SUFFERER, BYSTANDER)))) == 1

    def test_the_screen_shows_them_between_priorities_and_alerts(self) -> None:
        lines = shown(later(owners=(SUFFERER, BYSTANDER)))
        heading = next(number for number, line in enumerate(lines) if line.startswith("owner"))
        assert lines[heading + 1].split() == ["slurm/4711.0", "(gmx_mpi)", "24", "2", "3.2k", "16"]
        assert lines[heading + 2].split() == ["kernel/nvme_rdma", "8", "0", "-", "-"]
        assert lines.index("alerts") > heading

    def test_a_low_screen_leaves_owners_out_and_keeps_alerts(self) -> None:
        lines = shown(later(owners=(SUFFERER,) * 9, alerts=(ALERT,)), height=14)
        assert len(lines) <= 14
        assert not [line for line in lines if line.startswith(("owner", "slurm"))]
        assert [line for line in lines if "RocePfcStorm" in line]

    def test_a_narrow_screen_shortens_the_names(self) -> None:
        pod = replace(SUFFERER, owner="pod/7f1d4e02-5c38-4b6a-9d10-000000000001/000000000001")
        lines = shown(later(owners=(pod,)), width=80)
        assert all(len(line) <= 80 for line in lines)
        (line,) = (line for line in lines if line.startswith("pod/"))
        assert line.split()[-4:] == ["24", "2", "3.2k", "16"]

    def test_owners_never_displace_the_switch(self) -> None:
        scene = later(switch=SWITCH)
        for height in range(10, 40):
            crowded = shown(replace(scene, owners=(SUFFERER,) * 9), height=height)
            assert ("leaf-057" in str(crowded)) == ("leaf-057" in str(shown(scene, height=height)))

    def test_owners_and_switch_share_the_screen(self) -> None:
        scene = later(owners=(SUFFERER, BYSTANDER), switch=SWITCH)
        lines = shown(scene, height=40)
        assert [line.split()[0] for line in lines if line.startswith(("owner", "leaf", "Ether"))] == [
            "owner",
            "leaf-057",
            "Ethernet0",
        ]
        crowded, bare = replace(scene, owners=(SUFFERER,) * 9), later()
        for height in range(5, 40):
            assert len(shown(crowded, height=height)) <= max(height, len(shown(bare, height=5)))
