"""`roce-exporter check health` from flags to output: what is printed, and the exit status."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import recorded

from roce_exporter.checks.finding import Side
from roce_exporter.checks.health.causes import CAUSES
from roce_exporter.cli.entry import main

COLUMNS = 80
ONE_PORT = "--host.simulate-ports=mlx5"
"""A simulated minute costs as much as it has ports."""

KEYS = {
    *("device", "port", "netdev", "topic", "check", "status", "side", "title", "expected", "found", "why"),
    *(
        "evidence",
        "place",
        "acts",
        "sure",
        "wrong_if",
        "against",
        "since",
        "until",
        "caused_by",
        "fix",
        "fixes",
        "runbook",
    ),
}

COUNTERS = "sys/class/infiniband/mlx5_0/ports/1/hw_counters"
DEVICE = {
    "rdma/dev.json": '[{"ifindex": 0, "ifname": "mlx5_0", "node_guid": "0200:00ff:fe00:0001", "protocol": "roce"}]',
    "rdma/link.json": '[{"ifname": "mlx5_0", "port": 1, "netdev": "eth0"}]',
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/link_layer": "Ethernet\n",
    "sys/class/infiniband/mlx5_0/hca_type": "MT4129\n",
    "ethtool/eth0.driver": "driver: mlx5_core\n",
}


def recording(root: Path, *moments: Mapping[str, str]) -> str:
    """A recorded host: in each moment the same device, and these files."""
    for number, files in enumerate(moments):
        for path, text in {**DEVICE, **files}.items():
            place = root / str(number) / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return f"--host.recording={root}"


def timeouts(*, time: float, count: int) -> dict[str, str]:
    row = {"ifname": "mlx5_0", "port": 1, "local_ack_timeout_err": count}
    return {"time": f"{time}\n", "rdma/statistic.json": json.dumps([row])}


def found(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    """The document, whose status the exit code says."""
    status = main(["check", "health", "--format=json", *flags])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == {"ok": 0, "unknown": 3}.get(document["status"], 1)
    return document


def causes_of(document: dict[str, Any]) -> list[str]:
    return [one["check"] for one in document["findings"]]


def test_json_has_the_documented_keys(capsys) -> None:
    document = found(capsys, f"--host.recording={recorded.recording('mlx5-pair')}")
    assert (document["version"], document["status"]) == (2, "degraded")
    assert set(document) == {
        "version",
        "source",
        "time",
        "status",
        "summary",
        "findings",
        "fine",
        "not_checked",
        "ports",
    }
    assert document["findings"]
    assert all(set(port) == {"device", "port", "netdev", "health", "drain"} for port in document["ports"])
    assert {port["health"] for port in document["ports"]} <= {"ok", "degraded", "failed", "unknown"}
    for one in document["findings"]:
        assert set(one) == KEYS
        assert one["side"] in {side.value for side in Side}
        assert bool(one["acts"]) is not bool(one["caused_by"])
        assert one["check"] in {cause.name for cause in CAUSES}
        assert one["evidence"]
        assert all(isinstance(text, str) for part in ("evidence", "against", "fix") for text in one[part])
    assert all(set(gap) == {"what", "device", "port", "needed"} for gap in document["not_checked"])


@pytest.mark.parametrize("name", ["mlx5-pair", "audit-tos-104", "moving", "mlx5-7.3", "bnxt", "cloud"])
def test_text_fits_the_terminal(capsys, name, monkeypatch) -> None:
    monkeypatch.chdir(recorded.RECORDINGS)
    main(["check", f"--host.recording={name}.txt"])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= COLUMNS
    assert "\nNot seen:\n" in text


def test_a_consequence_names_its_cause_and_follows_it(capsys) -> None:
    document = found(capsys, "--host.simulate=slow-receiver", ONE_PORT, "--since=3m")
    seen: set[str] = set()
    for one in document["findings"]:
        assert set(one["caused_by"]) <= seen
        seen.add(one["check"])
    assert {"pcie_congestion", "receiver_not_ready"} <= seen
    assert {one["side"] for one in document["findings"]} == {"host"}
    assert [one["acts"] for one in document["findings"] if not one["caused_by"]] == ["the host team"]
    assert [port["drain"] for port in document["ports"]] == ["after the job; it runs, slower or less safely"]


def test_storms_are_findings_and_not_log_lines(capsys) -> None:
    main(["check", "health", "--host.simulate=pfc-storm", ONE_PORT, "--since=3m"])
    printed = capsys.readouterr()
    assert "pause_storm_transmitted" in printed.out
    assert printed.err == ""


def test_nothing_wrong_in_a_part_exits_with_3(tmp_path, capsys) -> None:
    still = recording(tmp_path, timeouts(time=100, count=7), timeouts(time=115, count=7))
    assert main(["check", "health", still]) == 3
    text = capsys.readouterr().out
    assert "  ! mlx5_0/1: out_of_sequence (the driver should report it," in text
    assert text.endswith("\nUnknown: not all that is needed was seen.\n")


def test_the_recorded_times_count(tmp_path, capsys) -> None:
    """40 timeouts in 15 s are a fault of now; those of yesterday are not."""
    now = recording(tmp_path / "now", timeouts(time=100, count=0), timeouts(time=115, count=40))
    assert "ack_timeouts" in causes_of(found(capsys, now))
    moments = (timeouts(time=100, count=0), timeouts(time=115, count=40), timeouts(time=86_400, count=40))
    past = recording(tmp_path / "past", *moments, timeouts(time=86_415, count=40))
    assert causes_of(found(capsys, past)) == []


def test_only_the_last_part_counts_with_since(tmp_path, capsys) -> None:
    moments = (timeouts(time=100, count=0), timeouts(time=115, count=40), timeouts(time=130, count=40))
    host = recording(tmp_path, *moments)
    assert "ack_timeouts" in causes_of(found(capsys, host))
    assert causes_of(found(capsys, host, "--since=15s")) == []


def test_sources_that_are_read_once_a_minute_are_read_for_every_sample(tmp_path, capsys) -> None:
    module = recorded.files("mlx5-pair")["ethtool/ens1f0np0.module"]
    hot = module.replace("47.81 degrees C / 118.06 degrees F", "90.00 degrees C / 194.00 degrees F")
    moments = ({"time": "100", "ethtool/eth0.module": module}, {"time": "115", "ethtool/eth0.module": hot})
    assert "too_hot" in causes_of(found(capsys, recording(tmp_path, *moments)))


def test_a_simulated_host_needs_no_time(capsys) -> None:
    flags = ("--host.simulate=dead-peer", "--host.simulate-ports=mlx5", "--since=5m", "--interval=30s")
    assert "retries_exceeded" in causes_of(found(capsys, *flags))
    quiet = ("--host.simulate=quiet", "--host.simulate-ports=mlx5", "--since=2m")
    assert found(capsys, *quiet)["findings"] == []


def test_storms_between_two_samples_are_found(capsys) -> None:
    flags = ("--host.simulate=victim", "--host.simulate-ports=ionic", "--since=3m", "--interval=60s")
    document = found(capsys, *flags)
    assert "pause_storm_received" in causes_of(document)
    assert not any("storms between two samples" in gap["what"] for gap in document["not_checked"])


def test_bad_times_exit_with_2_and_hosts_without_devices_with_3(tmp_path, capsys) -> None:
    host = recording(tmp_path / "a", timeouts(time=115, count=0), timeouts(time=100, count=0))
    assert main(["check", "health", host]) == 2
    assert "moment 1: its time 100.000 is not after 115.000" in capsys.readouterr().err
    (tmp_path / "b/sys").mkdir(parents=True)
    (tmp_path / "b/sys/x").write_text("x")
    for topic in ("health", "settings"):
        assert main(["check", topic, f"--host.recording={tmp_path / 'b'}"]) == 3
        assert "! everything: no RDMA device is visible, or all are excluded" in capsys.readouterr().out
    assert main(["check", "setup", f"--host.recording={tmp_path / 'b'}"]) == 1


def test_a_live_host_is_sampled_twice(tmp_path, capsys) -> None:
    recording(tmp_path, {f"{COUNTERS}/local_ack_timeout_err": "5\n"})
    status = main(["check", "health", f"--path.sysfs={tmp_path}/0/sys", "--interval=0.1s", "--format=json"])
    document = json.loads(capsys.readouterr().out)
    assert document["source"] == "This host: 2 samples in 0.1 s"
    assert status == {"ok": 0, "unknown": 3}.get(document["status"], 1)


def test_a_live_host_without_a_device_is_not_sampled_again(tmp_path, capsys) -> None:
    (tmp_path / "class/infiniband").mkdir(parents=True)
    assert main(["check", "health", f"--path.sysfs={tmp_path}", "--interval=1h"]) == 3
    assert "This host: one sample." in capsys.readouterr().out


def test_what_the_text_says_once(capsys) -> None:
    """A consequence is a line of its cause; failed settings are not repeated; what is wrong comes first."""
    main(["check", "health", "--host.simulate=slow-receiver", ONE_PORT, "--since=3m"])
    text = capsys.readouterr().out
    assert "              Receivers are not ready: " in text
    assert "(receiver_not_ready)\n" not in text
    main(["check", "--host.simulate=misconfigured", "--since=1m"])
    text = capsys.readouterr().out
    assert "Settings differ from the profile" not in text
    rows = [
        line.split()[0]
        for line in text.partition("\n\n  ")[0].splitlines()
        if line.startswith(("  d", "  ok"))
    ]
    assert rows == sorted(rows)
    main(["check", "health", "--host.simulate=incast", ONE_PORT, "--since=3m"])
    assert "\n  note  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "now"), [("audit", "settings"), ("doctor", "setup settings"), ("diagnose", "health")]
)
def test_the_old_words_run_the_new_command(word, now, capsys) -> None:
    host = f"--host.recording={recorded.recording('mlx5-pair')}"
    assert main([word, host]) == 1
    old = capsys.readouterr()
    assert old.err == f"roce-exporter: {word} is deprecated; use check {now}\n"
    assert main(["check", host, *now.split()]) == 1
    assert capsys.readouterr().out == old.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["helth"], "check helth: not one of setup, settings, health, switches"),
        (["settings", "leaf1"], "check leaf1: not one of"),
        (["switches"], "give --switches.config=FILE"),
        (["settings", "switches", "--switches.config=x"], "check switches: give it alone"),
        (["setup", "health", "--prometheus=http://127.0.0.1:1"], "give one of them"),
    ],
)
def test_words_that_are_no_topics_are_one_line(words, said, capsys) -> None:
    assert main(["check", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
