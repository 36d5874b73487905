"""The demo's two views are functions of scenes: plain lines, and a screen."""

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from roce_exporter.demo.figures import (
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
from roce_exporter.demo.screen import (
    changes,
    closing,
    opening,
    screen,
    short_number,
    sparkline,
    view,
    wants_screen,
)
from roce_exporter.host.simulated.scenarios import SCENARIOS

CALM = PauseHistory((0.0, 0.2), "ok", 0)
STORMY = PauseHistory((0.1, 1.0), "storm", 2)
PRIORITY = Priority("mlx5_0", "1", "eth0", "3", True, CALM, STORMY, 0.4, 3200.0, None)
STORM = StormEvent(
    "mlx5_0", "1", "eth0", "3", "transmit", "slow_receiver", "2026-01-02T03:04:05.678+00:00", None, ""
)
ENDED = replace(STORM, duration=2.51, reason="restored")
ALERT = Alert("RocePfcStorm", "critical", "firing", "PFC storm sent by demo-host", (("priority", "3"),))
ADDRESSES = (Address("exporter", "http://127.0.0.1:1/"), Address("prometheus", "http://127.0.0.1:2/alerts"))
QUIET = Scene("pfc-storm", "one port storms", 1.0, ADDRESSES, (PRIORITY,), alerts=())
SWITCH_PORT = SwitchPriority("Ethernet0", "3", "gpu-057 eth0", (0.0, 1.0), "ok", 0, 3200.0, 0.25)
SUFFERER = ShownOwner("slurm/4711.0", "gmx_mpi", 24, 2, 3200.0, 16.0)
BYSTANDER = ShownOwner("kernel/nvme_rdma", "", 8, 0, None, None)


def port(**changed: object) -> ShownSwitch:
    return ShownSwitch("leaf-057", (replace(SWITCH_PORT, **changed),))


SWITCH, TRIPPED = port(), port(watchdog="tripped", trips=1)


def later(**changed: object) -> Scene:
    return replace(QUIET, seconds=12.34, **changed)


def shown(scene: Scene, width: int = 100, height: int = 30) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=width, height=height).print(screen(scene, width, height))
    return output.getvalue().splitlines()


def row(scene: Scene, begin: str, width: int = 100) -> list[str]:
    """The words of the only line that begins so."""
    (line,) = (line for line in shown(scene, width) if line.startswith(begin))
    return line.split()


PLACE = "mlx5_0/1 (eth0) priority 3 transmit"
BEGINS, ENDS = f"storm begins: {PLACE}, hint slow_receiver", f"storm ends: {PLACE} after 2.5 s, restored"
FIRES = "alert fires: RocePfcStorm (critical) PFC storm sent by demo-host"
TRIP = "switch watchdog trips: leaf-057 Ethernet0 (gpu-057 eth0) priority 3"
SOUND = replace(SUFFERER, in_error=0)
CHANGES = {
    "nothing": (QUIET, later(), []),
    "a storm begins": (QUIET, later(storms=(STORM,)), [BEGINS]),
    "a storm ends": (later(storms=(STORM,)), later(storms=(ENDED,)), [ENDS]),
    "a storm in between": (QUIET, later(storms=(ENDED,)), [BEGINS, ENDS]),
    "in the order of their begin": (
        QUIET,
        later(storms=(replace(STORM, netdev="eth1", start="2026-01-02T03:05:00.000+00:00"), STORM)),
        [BEGINS, BEGINS.replace("eth0", "eth1")],
    ),
    "an alert is pending": (QUIET, later(alerts=(replace(ALERT, state="pending"),)), []),
    "an alert fires": (later(alerts=(replace(ALERT, state="pending"),)), later(alerts=(ALERT,)), [FIRES]),
    "an alert resolves": (later(alerts=(ALERT,)), later(), ["alert resolves: RocePfcStorm (critical)"]),
    "an alert of another priority": (
        later(alerts=(ALERT,)),
        later(alerts=(ALERT, replace(ALERT, labels=(("priority", "4"),)))),
        [FIRES],
    ),
    "another summary": (later(alerts=(ALERT,)), later(alerts=(replace(ALERT, summary="now two"),)), []),
    "Prometheus ended": (later(alerts=(ALERT,)), later(alerts=None), []),
    "a watchdog trips": (later(switch=SWITCH), later(switch=TRIPPED), [TRIP]),
    "a watchdog restores": (
        later(switch=TRIPPED),
        later(switch=port(trips=1)),
        [TRIP.replace("trips", "restores")],
    ),
    "a trip in between": (
        later(switch=SWITCH),
        later(switch=port(trips=1, neighbor="")),
        [TRIP.replace("gpu-057 eth0", "no neighbour")],
    ),
    "a port is unread": (later(switch=TRIPPED), later(switch=port(watchdog="", trips=None)), []),
    "a port was unread": (later(switch=port(watchdog="", trips=None)), later(switch=TRIPPED), []),
    "a switch appears": (QUIET, later(switch=port(watchdog="tripped", trips=3)), []),
    "a switch ends": (later(switch=TRIPPED), later(), []),
    "a note": (QUIET, later(notes=("prometheus was ended by SIGKILL",)), ["prometheus was ended by SIGKILL"]),
    "queue pairs in error": (
        later(owners=(SOUND, BYSTANDER)),
        later(owners=(SUFFERER, BYSTANDER)),
        ["queue pairs in error: 2 of 24 of slurm/4711.0 (gmx_mpi)"],
    ),
    "more of them": (later(owners=(SUFFERER,)), later(owners=(replace(SUFFERER, in_error=3),)), []),
    "they work again": (
        later(owners=(SUFFERER,)),
        later(owners=(SOUND,)),
        ["queue pairs work again: slurm/4711.0 (gmx_mpi)"],
    ),
    "an owner appears with them": (
        QUIET,
        later(owners=(SUFFERER, BYSTANDER)),
        ["queue pairs in error: 2 of 24 of slurm/4711.0 (gmx_mpi)"],
    ),
}


@pytest.mark.parametrize(("before", "after", "lines"), CHANGES.values(), ids=CHANGES)
def test_each_event_has_one_line(before, after, lines) -> None:
    assert changes(before, after) == [f"[  12.3 s] {line}" for line in lines]
    assert changes(after, after) == []


def test_the_addresses_come_first_and_the_storms_of_both_directions_last() -> None:
    assert opening(QUIET) == [
        "simulated host, scenario pfc-storm: one port storms",
        "exporter     http://127.0.0.1:1/",
        "prometheus   http://127.0.0.1:2/alerts",
    ]
    assert closing(later()) == "ended after 12 s with 2 PFC storms seen; its servers and files are removed"
    once = replace(PRIORITY, transmit=replace(STORMY, storms=1))
    assert (
        closing(later(priorities=(once,)))
        == "ended after 12 s with 1 PFC storm seen; its servers and files are removed"
    )


def test_without_a_terminal_there_are_plain_lines() -> None:
    output = io.StringIO()
    first = replace(QUIET, notes=("prometheus is not on the PATH",))
    with view(output) as show:
        show(first)
        show(replace(first, seconds=12.34, storms=(STORM,)))
    assert output.getvalue().splitlines() == [
        *opening(QUIET),
        "[   1.0 s] prometheus is not on the PATH",
        f"[  12.3 s] {BEGINS}",
        closing(later()),
    ]


class Teletype(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_that_can_move_its_cursor_has_a_screen(monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes no terminal
    output = io.StringIO()
    assert Console(file=output).is_terminal
    assert not wants_screen(Console(file=output), output)
    for encoding, term, wanted in (
        ("utf-8", "xterm", True),
        ("utf-8", "dumb", False),
        ("latin-1", "xterm", False),
    ):
        output = Teletype(io.BytesIO(), encoding=encoding)
        assert wants_screen(Console(file=output, _environ={"TERM": term}), output) is wanted


def test_the_screen_shows_every_part_of_a_scene() -> None:
    note = "alertmanager is not on the PATH"
    text = "\n".join(shown(later(storms=(STORM,), alerts=(ALERT,), notes=(note,)), width=140))
    parts = (
        "pfc-storm, ",
        "one port storms",
        *(one.url for one in ADDRESSES),
        "eth0 mlx5_0/1 p3",
        " 20%",
        "100%",
    )
    events = ("firing", ALERT.name, ALERT.summary, "03:04:05  goes on", "slow_receiver", note)
    assert not [part for part in (*parts, *events) if part not in text]
    assert not any("headroom" in line for line in shown(QUIET))
    assert "alerts" in shown(QUIET)
    assert "alerts" not in shown(later(alerts=None)), "without Prometheus"


UNKNOWN = PauseHistory((None,), "ok", 0)
BARE = {"neighbor": "", "shares": (None,), "watchdog": "", "trips": None, "marked": None, "headroom": None}


@pytest.mark.parametrize(
    ("scene", "begin", "words"),
    [
        (QUIET, "eth0", "eth0 mlx5_0/1 p3 ▂ 20% ▁█ 100% storm 2 0.4 3.2k -"),
        (later(switch=TRIPPED), "leaf-057", "leaf-057 pause in watchdog trips ECN/s headroom"),
        (later(switch=TRIPPED), "Ethernet0", "Ethernet0 gpu-057 eth0 p3 █ 100% tripped 1 3.2k 25%"),
        (later(switch=port(**BARE)), "Ethernet0", "Ethernet0 - p3 · - - - - -"),
        (later(owners=(SUFFERER, BYSTANDER)), "slurm", "slurm/4711.0 (gmx_mpi) 24 2 3.2k 16"),
        (later(owners=(SUFFERER, BYSTANDER)), "kernel", "kernel/nvme_rdma 8 0 - -"),
    ],
)
def test_a_row(scene, begin, words) -> None:
    """What is not reported is a dash."""
    assert row(scene, begin, 90) == words.split()


def test_a_nic_that_measures_no_time_shows_a_bound_or_nothing() -> None:
    bound = replace(PRIORITY, receive=PauseHistory((0.5,), "ok", 0, estimated=True))
    assert "≤50%" in row(replace(QUIET, priorities=(bound,)), "eth0")
    words = row(replace(QUIET, priorities=(replace(PRIORITY, receive=UNKNOWN, transmit=None),)), "eth0")
    assert "·" in words
    assert not any("%" in word for word in words)


def test_on_a_low_screen_the_ports_with_trips_and_pause_are_shown() -> None:
    ports = [replace(SWITCH_PORT, port=f"Ethernet{8 * number}", shares=(0.0,)) for number in range(9)]
    ports[4] = replace(ports[4], watchdog="tripped", trips=1)
    ports[8] = replace(ports[8], shares=(0.5,))
    lines = shown(later(switch=ShownSwitch("leaf-057", tuple(ports))), height=19)
    assert [line.split()[0] for line in lines if line.startswith("Ethernet")] == ["Ethernet32", "Ethernet64"]


def test_owners_are_between_priorities_and_switch_and_displace_nothing() -> None:
    lines = shown(later(owners=(SUFFERER, BYSTANDER), switch=SWITCH), height=40)
    begins = ("owner", "leaf", "Ether", "alerts")
    assert [line.split()[0] for line in lines if line.startswith(begins)] == [
        "owner",
        "leaf-057",
        "Ethernet0",
        "alerts",
    ]
    crowd = (SUFFERER,) * 9
    low = shown(later(owners=crowd, alerts=(ALERT,)), height=14)
    assert not [line for line in low if line.startswith(("owner", "slurm"))]
    assert [line for line in low if ALERT.name in line]
    for height in range(5, 40):
        scene = later(switch=SWITCH)
        crowded = shown(replace(scene, owners=crowd), height=height)
        assert ("leaf-057" in str(crowded)) == ("leaf-057" in str(shown(scene, height=height)))
        assert len(crowded) <= max(height, len(shown(later(), height=5)))
    pod = replace(SUFFERER, owner="pod/7f1d4e02-5c38-4b6a-9d10-000000000001/000000000001")
    assert row(later(owners=(pod,)), "pod/", 80)[-4:] == ["24", "2", "3.2k", "16"], "a name is shortened"


@given(
    size=st.tuples(st.integers(80, 250), st.integers(20, 60)),
    alerts=st.integers(0, 40),
    storms=st.integers(0, 256),
    notes=st.integers(0, 2),
    ports=st.integers(0, 40),
)
def test_it_fits_the_screen_and_shows_the_newest_of_each(*, size, alerts, storms, notes, ports) -> None:
    scene = later(
        alerts=(replace(ALERT, summary="x" * 300),) * alerts,
        storms=(STORM,) * storms,
        notes=("something is missing " * 20,) * notes,
        switch=ShownSwitch("leaf-057", (SWITCH_PORT,) * ports),
    )
    lines = shown(scene, *size)
    assert len(lines) <= size[1]
    assert all(len(line) <= size[0] for line in lines)
    assert not alerts or any("RocePfcStorm" in line for line in lines)
    assert not storms or any("goes on" in line for line in lines)


@given(st.lists(st.none() | st.floats(0, 1)), st.integers(1, 60))
def test_a_sparkline_has_the_given_width_and_hides_no_pause(history, width) -> None:
    text = sparkline(history, width).plain
    assert len(text) == width
    for share, bar in zip(reversed(history), reversed(text), strict=False):
        assert (bar == " ") == (share == 0)
        assert (bar == "·") == (share is None)


def test_numbers_are_short() -> None:
    values = (None, 0, 0.44, 17.2, 999.4, 3210, 45_600, 1.5e6, 9.9e10, 2e12)
    found = [short_number(value) for value in values]
    assert found == ["-", "0", "0.4", "17", "999", "3.2k", "46k", "1.5M", "99G", "2000G"]


def test_every_scenario_is_described_whole_in_80_columns() -> None:
    for scenario in SCENARIOS.values():
        scene = replace(QUIET, scenario=scenario.name, description=scenario.description, seconds=999)
        assert shown(scene, width=80)[0].rstrip().endswith("other scenarios")
        assert shown(scene, width=80)[1].rstrip() == scenario.description
