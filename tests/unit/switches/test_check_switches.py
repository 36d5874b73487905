"""`roce-exporter check switches`: which switches are read, what is printed, and the exit code."""

import asyncio
import json
from contextlib import nullcontext

import pytest

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO, SWITCH_QUEUE_INFO
from roce_exporter.cli import check_switches, main
from roce_exporter.cli.check_switches import _probe_all, with_all_priorities
from roce_exporter.switches.readings import ProbeReply, SwitchFact, SwitchReading, SwitchReadings
from roce_exporter.switches.targets import Discovery, SwitchesFile, SwitchTarget

CONFIGURATION = """
targets:
  leaf1: {module: sonic, address: "redis://192.0.2.1:6379"}
  leaf2: {module: sonic, address: "redis://192.0.2.2:6379"}
"""

FACTS = (
    SwitchFact(SWITCH_INFO, {"os": "sonic"}),
    SwitchFact(
        SWITCH_QUEUE_INFO, {"port": "Ethernet0", "priority": "3", "queue": "3", "priority_group": "3"}
    ),
    SwitchFact(
        SWITCH_NEIGHBOR_INFO,
        {
            "port": "Ethernet0",
            "neighbor": "gpu-001",
            "neighbor_port": "eth0",
            "port_id_kind": "name",
            "source": "lldp",
        },
    ),
)


def configured_leaf(_: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """leaf2 has no watchdog."""
    of_queue = {
        "pfcwd_sw_enable": int(target.name == "leaf1"),
        "action": 1,
        "detection_time": 400,
        "ecn": 1,
        "green_min_threshold": 250_000,
        "green_max_threshold": 500_000,
    }
    port = ("port", "Ethernet0")
    readings = (
        SwitchReading("configuration", (port, ("priority", "3")), {"pfc_enable": 1}),
        SwitchReading("configuration", (port, ("queue", "3")), of_queue),
        SwitchReading("configuration", (port, ("priority_group", "3")), {"xoff": 160_000}),
    )
    return SwitchReadings(target.name, readings, FACTS, sources=("configuration",))


@pytest.fixture
def run(switch, tmp_path):
    switch.read = configured_leaf  # type: ignore[method-assign]
    (tmp_path / "switches.yml").write_text(CONFIGURATION)

    def command(*words: str) -> int:
        return main(["check", "switches", f"--switches.config={tmp_path / 'switches.yml'}", *words])

    return command


def test_the_exit_code_is_1_when_a_setting_is_wrong_and_3_when_not_all_was_seen(run, capsys) -> None:
    assert run("--audit.profile=nvidia-lossless", "leaf1") == 3
    assert "(8 ok, 1 unknown)" in capsys.readouterr().out
    assert run("--profile=nvidia-lossless") == 1
    text = capsys.readouterr().out
    assert "leaf2 port Ethernet0" in text
    assert "    fix       pfcwd start --action drop --restoration-time 400 Ethernet0 400" in text


def test_a_terminal_shows_that_the_switches_are_read(run, monkeypatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(check_switches, "progress", lambda text: shown.append(text) or nullcontext())
    run("leaf1")
    run()
    assert shown == ["reading 1 switch", "reading 2 switches"]


def test_json_has_the_switches_that_were_named(run, capsys) -> None:
    assert run("leaf2", "--profile=nvidia-lossless", "--format=json", "leaf2") == 1
    document = json.loads(capsys.readouterr().out)
    assert {one["device"] for one in document["findings"]} == {"leaf2"}
    assert document["summary"]["degraded"] == 1
    (wrong,) = (one for one in document["findings"] if one["status"] == "degraded")
    assert {one["for"] for one in wrong["fixes"]} == {"generic", "sonic", "nxos", "eos", "cumulus"}


def test_a_switch_that_does_not_answer_is_no_clean_switch(run, switch, capsys) -> None:
    switch.faults["target"] = "connection refused"
    assert run("leaf1") == 3
    assert "  ! leaf1: connection refused\n" in capsys.readouterr().out


def test_a_source_that_fails_is_said(run, switch, capsys) -> None:
    switch.faults["lldp"] = "no reply"
    assert run("leaf1") == 3
    assert "  ! leaf1: lldp: no reply\n" in capsys.readouterr().out


def test_the_old_words_run_the_new_command(run, tmp_path, capsys) -> None:
    file = f"--config.file={tmp_path / 'switches.yml'}"
    assert main(["switches", file, "audit", "leaf2", "--profile=nvidia-lossless", "--format=table"]) == 1
    printed = capsys.readouterr()
    assert printed.err == "roce-exporter: switches audit is deprecated; use check switches\n"
    assert "leaf2 port Ethernet0" in printed.out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["leaf9"], "'leaf9' is not a target of the configuration file; it has leaf1, leaf2"),
        (["--nonsense", "leaf1"], "unrecognized arguments: --nonsense"),
        (["--profile=x"], "profile x: there is no such profile"),
    ],
)
def test_bad_words_are_one_line(run, capsys, words, line) -> None:
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_the_audit_reads_all_priorities(run, switch, capsys) -> None:
    """A switch on which PFC is off has no priority with PFC, of which metrics would say that it is off."""
    run()
    assert {visit.target.priorities for visit in switch.visits} == {"all"}


def test_targets_of_service_discovery_are_audited_over_all_priorities() -> None:
    pattern = SwitchTarget("", "sonic", "redis", "", {"redis": 6379})
    found = with_all_priorities(SwitchesFile({"leaf1": pattern}, (Discovery((), pattern),)))
    assert found.discovery[0].pattern.priorities == found.targets["leaf1"].priorities == "all"


async def test_no_more_probes_begin_than_get_a_turn() -> None:
    """The deadline of a probe begins with it: one that waits for others could end without a query."""

    class Counting:
        targets_at_once = 2
        now = most = 0

        async def probe(self, name: str, *_: object) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return name

    one = Counting()
    assert await _probe_all(one, ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
    assert one.most == 2
