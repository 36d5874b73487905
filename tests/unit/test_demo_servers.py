"""The configuration of Prometheus and Alertmanager, their processes, and the alerts that they report."""

import contextlib
import os
import sys
from pathlib import Path

import pytest
import yaml
from http_answers import answering
from waiting import until

from roce_exporter.demo import servers
from roce_exporter.demo.servers import describe_exit, fetch_alerts, monitoring_servers, parse_alerts, running
from roce_exporter.net import NetError

ROOT = Path(__file__).parents[2]


class TestConfiguration:
    def test_prometheus_scrapes_and_evaluates_every_second(self) -> None:
        config = servers.prometheus_config("127.0.0.1:1", None, "127.0.0.1:2")
        assert config["global"]["scrape_interval"] == config["global"]["evaluation_interval"] == "1s"
        assert config["rule_files"] == ["roce.rules.yml"]
        assert config["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:1"]
        assert config["alerting"]["alertmanagers"] == [{"static_configs": [{"targets": ["127.0.0.1:2"]}]}]
        bare = servers.prometheus_config("127.0.0.1:1", None, None)
        assert "alerting" not in bare
        assert [job["job_name"] for job in bare["scrape_configs"]] == ["roce"]

    def test_all_rules_are_evaluated_every_second(self) -> None:
        """Their own groups have intervals of a minute and more, and no alert waits a minute, nor that on lossy paths."""
        text = (ROOT / "alerts/roce.rules.yml").read_text()
        written, ours = yaml.safe_load(servers.evaluated_often(text)), yaml.safe_load(text)
        assert [group.pop("interval") for group in ours["groups"] if "interval" in group]
        rules = [rule for group in ours["groups"] for rule in group["rules"]]
        assert [rule.pop("for") for rule in rules if rule.get("for") == "1m"]
        assert [rule.pop("for") for rule in rules if rule.get("alert") == "RocePathLoss"] == ["10m"]
        assert written == ours

    def test_the_demo_sends_no_notifications(self) -> None:
        """Our routing is kept. Of a receiver only the name is kept: no secrets, no SMTP hosts."""
        routes = {
            "global": {"smtp_smarthost": "mail.example.com:25"},
            "templates": ["*.tmpl"],
            "route": {"receiver": "tickets", "routes": [{"receiver": "pager"}]},
            "inhibit_rules": [{"equal": ["instance"]}],
            "receivers": [
                {"name": "tickets", "email_configs": [{"to": "team@example.com"}]},
                {"name": "pager", "webhook_configs": [{"url": "https://example.com/"}]},
            ],
        }
        assert servers.alertmanager_config(yaml.safe_dump(routes)) == {
            "route": routes["route"],
            "inhibit_rules": routes["inhibit_rules"],
            "receivers": [{"name": "tickets"}, {"name": "pager"}],
        }

    def test_both_listen_on_loopback_only_and_keep_their_data_in_the_folder(self) -> None:
        folder, address = Path("/somewhere"), servers.free_address()
        assert address.startswith("127.0.0.1:")
        for command in (
            servers.prometheus_command("prometheus", folder, address),
            servers.alertmanager_command("alertmanager", folder, address),
        ):
            assert f"--web.listen-address={address}" in command
            assert any("storage" in flag and str(folder) in flag for flag in command)
        assert "--cluster.listen-address=" in servers.alertmanager_command("a", folder, address)


def alert(name: str, state: str, **labels: str) -> dict[str, object]:
    return {"labels": {"alertname": name, **labels}, "annotations": {}, "state": state}


class TestAlerts:
    def test_firing_alerts_come_first_then_the_most_severe(self) -> None:
        alerts = [
            alert("A", "pending", severity="critical"),
            alert("B", "firing", severity="info"),
            alert("C", "firing", severity="house"),
            alert("D", "firing", severity="critical"),
            alert("E", "firing"),
        ]
        found = parse_alerts({"alerts": alerts})
        assert [one.name for one in found] == ["D", "B", "E", "C", "A"]
        assert (found[2].severity, found[2].summary) == ("", "")

    async def test_alerts_are_read_over_http_and_anything_else_is_an_error(self) -> None:
        with answering(lambda _: (200, {"status": "success", "data": {"alerts": []}})) as prometheus:
            address = prometheus.url.removeprefix("http://")
            assert await fetch_alerts(address) == ()
            prometheus.reply = lambda _: (503, "starting")
            with pytest.raises(NetError, match="503"):
                await fetch_alerts(address)
        with pytest.raises(NetError, match=r"."):
            await fetch_alerts(address)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


class TestChildren:
    async def test_a_child_is_ended_by_sigterm_though_the_block_fails(self, tmp_path) -> None:
        with contextlib.suppress(ZeroDivisionError):
            async with running("child", ["sleep", "60"], tmp_path / "log") as child:
                assert child.alive
                assert alive(child.process.pid)
                raise ZeroDivisionError
        assert child.process.returncode == -15
        assert not alive(child.process.pid)

    async def test_a_child_that_ignores_sigterm_is_killed(self, tmp_path) -> None:
        log = tmp_path / "log"
        async with running("child", [sys.executable, "-c", STUBBORN], log, end_seconds=0.2) as child:
            await until(log.read_text)
        assert child.process.returncode == -9

    @pytest.mark.parametrize(
        ("script", "text"),
        [
            (
                "echo first; echo the disk is full >&2; exit 3",
                "ended with code 3; the rest goes on: the disk is full",
            ),
            ("echo fine; kill -9 $$", "was ended by SIGKILL; the rest goes on"),
        ],
    )
    async def test_an_exit_is_described(self, tmp_path, script, text) -> None:
        """With its last line of output, but not if it was killed."""
        async with running("prometheus", ["sh", "-c", script], tmp_path / "log") as child:
            await child.process.wait()
            assert not child.alive
            assert describe_exit(child) == f"prometheus {text}"


def install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path, monkeypatch) -> Path:
    """An empty PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def work(tmp_path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


class TestMonitoringServers:
    async def test_without_prometheus_a_note_says_so(self, programs, work) -> None:
        async with monitoring_servers("127.0.0.1:1", work) as found:
            assert found.notes == ["prometheus is not on the PATH: no alerts here until it is installed"]
            assert found.addresses == []
            assert await found.alerts() is None

    @pytest.mark.parametrize("name", ["alertmanager", "prometheus-alertmanager"])
    async def test_installed_servers_are_started(self, programs, work, name) -> None:
        for program in ("prometheus", name):
            install(programs, program, "exec /bin/sleep 60")
        async with monitoring_servers("127.0.0.1:1", work) as found:
            assert [address.name for address in found.addresses] == ["alertmanager", "prometheus"]
            assert await found.alerts() == (), "no reply yet"
            pids = [child.process.pid for child in found.alive]
            config = yaml.safe_load((work / "prometheus.yml").read_text())
            alertmanager = found.addresses[0].url.removeprefix("http://").rstrip("/")
            assert config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] == [alertmanager]
            assert [alive(pid) for pid in pids] == [True, True]
        assert [alive(pid) for pid in pids] == [False, False]

    async def test_a_crash_is_noted_once_and_the_rest_goes_on(self, programs, work) -> None:
        install(programs, "alertmanager", "exec /bin/sleep 60")
        install(programs, "prometheus", "echo no space left on device; exit 1")
        async with monitoring_servers("127.0.0.1:1", work) as found:
            await found.alive[-1].process.wait()
            assert [await found.alerts(), await found.alerts()] == [None, None]
            assert found.notes == ["prometheus ended with code 1; the rest goes on: no space left on device"]
            assert [child.name for child in found.alive] == ["alertmanager"]

    async def test_a_program_that_cannot_be_started_is_noted(self, programs, work) -> None:
        program = programs / "prometheus"
        program.write_bytes(b"\x7fELF no program")
        program.chmod(0o755)
        async with monitoring_servers("127.0.0.1:1", work) as found:
            assert found.notes[-1] == f"{program} cannot be started: Exec format error; the rest goes on"
            assert await found.alerts() is None

    async def test_a_missing_alertmanager_is_noted(self, programs, work) -> None:
        install(programs, "prometheus", "exec /bin/sleep 60")
        async with monitoring_servers("127.0.0.1:1", work) as found:
            assert found.notes == ["alertmanager is not on the PATH: alerts are not grouped or muted"]
        assert "alerting" not in yaml.safe_load((work / "prometheus.yml").read_text())
