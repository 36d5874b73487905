"""`check setup`: what a host's samples, privileges, clock and Prometheus mean for whether it can be watched."""

import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from http_answers import answering
from prometheus_client.utils import floatToGoString

from roce_exporter.checks.finding import Finding, NotChecked, Status
from roce_exporter.checks.setup import (
    check_clock,
    check_local,
    check_privileges,
    check_samples,
    check_samples_arrive,
    check_targets,
)
from roce_exporter.cli import check
from roce_exporter.cli.entry import main
from roce_exporter.host.kernel.privileges import (
    TIMEX_BYTES,
    ClockState,
    Privileges,
    decode_clock_state,
    effective_capabilities,
    hides_processes,
    read_clock_state,
    read_privileges,
)
from roce_exporter.model import Device, Netdev, Port
from roce_exporter.net import NetError
from roce_exporter.view.host_view import TimedSamples, View
from roce_exporter.view.remote import LocalScrapes, parse_scrapes

ROOT = Path(__file__).parents[2]

ALL = Privileges(
    1000,
    frozenset({"CAP_NET_ADMIN", "CAP_NET_RAW"}),
    hidden_processes=False,
    host_processes=True,
    kernel_log=True,
    debugfs=True,
    uverbs=True,
)
NOTHING = Privileges(
    1000,
    frozenset(),
    hidden_processes=True,
    host_processes=False,
    kernel_log=False,
    debugfs=False,
    uverbs=False,
)

PAGE = """\
Recording tests/recordings/mlx5-lag.txt: one sample.

mlx5_bond_0
  degraded  Another firmware is stored than runs (fw.version 22.41.1000
            instead of 22.39.2048)
  ok        mlx5_core, MT4125, MT_0000000359, firmware 22.39.2048,
            0000:5e:00.0

  Another firmware is stored than runs (fw.version 22.41.1000 instead of
  22.39.2048) (firmware)
    at fault  this host
    fix       reboot, or reset the firmware as the vendor describes

mlx5_bond_0 port 1 (ens2f0np0), mlx5_bond_0 port 1 (ens2f1np1)
  ok  up, 100 Gbit/s
  ok  the pause watchdog has its default, 0.1 s

this host
  ok  every port reports the facts that its driver must report

1 degraded, 6 ok.
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["check", "setup", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def statuses(items: Iterable[Finding | NotChecked], check: str) -> list[Status]:
    return [item.status for item in items if isinstance(item, Finding) and item.check == check]


def test_the_page_of_a_recorded_host(capsys, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    assert run(capsys, "--host.recording=tests/recordings/mlx5-lag.txt") == (1, PAGE, "")


def test_a_simulated_host_without_problems_is_fit(capsys) -> None:
    status, page, _ = run(capsys, "--host.simulate=quiet")
    assert (status, "degraded" in page) == (0, False)
    status, page, _ = run(capsys, "--host.simulate=quiet", "--device.include=none")
    assert (status, "Every RDMA device is excluded (4 of them)" in page) == (1, True)


def test_json_has_every_result(capsys) -> None:
    status, text, _ = run(capsys, "--host.simulate=misconfigured", "--format=json")
    document = json.loads(text)
    assert (status, document["status"]) == (1, "degraded")
    (wrong,) = (one for one in document["findings"] if one["status"] == "degraded")
    assert (wrong["device"], wrong["port"], wrong["netdev"]) == ("mlx5_1", "1", "eth1")
    assert wrong["title"] == "The pause watchdog acts only after 8 s"
    assert wrong["fix"] == ["ethtool --set-tunable eth1 pfc-prevention-tout 100"]
    assert run(capsys, "--host.simulate=misconfigured", "--failed")[1].count("\n") < 15


def host(values: Mapping[str, Mapping[tuple[str, ...], float]], **facts: Any) -> list[Finding | NotChecked]:
    port = Port(1, "Ethernet", (Netdev("eth0", "port"),))
    device = Device("mlx5_0", **({"driver": "mlx5_core", "dialect": "mlx5", "ports": (port,)} | facts))
    return list(check_samples(View((TimedSamples(0.0, values),)), [device]))


UP = {"roce_link_up": {("mlx5_0", "1", "eth0"): 1.0}}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"roce_link_up": {("mlx5_0", "1", "eth0"): 0.0}}, "mlx5_0/1: The link is down"),
        (
            {"roce_config_pfc_prevention_timeout_seconds": {("mlx5_0", "1", "eth0"): 0.0}},
            "mlx5_0/1: The pause watchdog is off: a stuck host pauses its switch without limit",
        ),
        (
            {"roce_exporter_source_up": {(one, "mlx5_0", "eth0"): 0.0 for one in ("link", "fec")}},
            "mlx5_0/: Failing sources of eth0, whose series are missing: link, fec",
        ),
        (
            {"roce_exporter_missing_facts": {("mlx5_0", "1", "cnp_sent"): 1.0, ("mlx5_0", "1", "x"): 0.0}},
            "mlx5_0/1: Facts that the driver must report are missing: cnp_sent",
        ),
        (
            {"roce_devlink_health_state": {("mlx5_0", "fw"): 1.0, ("mlx5_0", "tx"): 0.0}},
            "mlx5_0/: The driver's health reporter fw reports an error",
        ),
        (
            {"roce_exporter_quarantined_files": {("counters", "mlx5_0", ""): 2.0}},
            "mlx5_0/: Files that keep failing: 2 of counters",
        ),
    ],
)
def test_what_needs_attention(values, text) -> None:
    """One fault, one result; without it there is none."""
    healthy, wrong = (
        [one for one in host(found) if isinstance(one, Finding) and one.is_wrong]
        for found in (UP, UP | values)
    )
    assert (healthy, [f"{one.device}/{one.port}: {one.title}" for one in wrong]) == ([], [text])
    assert wrong[0].fix


def test_equal_versions_wait_for_nothing() -> None:
    """A component that only runs, or is only stored, says nothing about a reset."""
    series = {
        ("mlx5_0", "running", "fw.version", "1"): 1.0,
        ("mlx5_0", "stored", "fw.version", "1"): 1.0,
        ("mlx5_0", "fixed", "fw.psid", "x"): 1.0,
        ("mlx5_0", "stored", "fw.bundle", "9"): 1.0,
    }
    found = host(UP | {"roce_devlink_info": series})
    assert not [one for one in found if isinstance(one, Finding) and one.is_wrong]


def test_a_host_without_devices_an_unknown_driver_and_a_port_without_a_network_device() -> None:
    for modules, fix in (
        (["mlx5_core"], "rdma link; mlx5_core is loaded"),
        (["ext4"], "no driver of an RDMA NIC is loaded: `lspci -nn`"),
        (None, "rdma link; load the driver's RDMA module"),
    ):
        (found,) = check_samples(View((TimedSamples(0.0, {}),)), [], modules)
        assert (found.status, found.fix[0][: len(fix)]) == (Status.DEGRADED, fix)
        assert "--path.sysfs" in found.fix[0], "modules are those of the kernel, devices those of a container"
    assert statuses(host(UP, dialect=""), "devices") == [Status.DEGRADED]
    alone = host({}, ports=(Port(1, "Ethernet"),))
    assert statuses(alone, "devices") == [Status.OK, Status.DEGRADED]


def test_each_missing_privilege_says_what_it_adds() -> None:
    """Not one of them makes a host unfit: they only add."""
    full, bare = tuple(check_privileges(ALL)), tuple(check_privileges(NOTHING))
    assert statuses(full, "privileges") == [Status.OK] * 8
    assert statuses(bare, "privileges") == [Status.OK]
    assert all(
        isinstance(gap, NotChecked) and "is missing (" in gap.what and not gap.needed for gap in bare[1:]
    )
    root = next(iter(check_privileges(ALL._replace(user=0))))
    assert isinstance(root, Finding)
    assert "`runuser -u roce-exporter -- roce-exporter check setup`" in root.title
    assert len(tuple(check_privileges(ALL._replace(uverbs=None)))) == len(full) - 1


def test_capabilities_by_their_numbers() -> None:
    assert effective_capabilities("CapPrm:\tffffffffffffffff\nCapEff:\t0000000400003000\n") == {
        "CAP_NET_ADMIN",
        "CAP_NET_RAW",
        "CAP_SYSLOG",
    }
    assert effective_capabilities("") == frozenset()


MOUNT = "{} 1 0:22 / {} rw,nosuid - proc proc {}\n"


@pytest.mark.parametrize(
    ("mountinfo", "hidden"),
    [
        (MOUNT.format(22, "/proc", "rw"), False),
        (MOUNT.format(22, "/proc", "rw,hidepid=2"), True),
        (MOUNT.format(22, "/proc", "rw,gid=5,hidepid=invisible"), True),
        (MOUNT.format(22, "/proc", "rw,hidepid=off"), False),
        (MOUNT.format(22, "/proc", "rw") + MOUNT.format(23, "/proc", "rw,hidepid=ptraceable"), True),
        (MOUNT.format(22, "/other/proc", "rw,hidepid=2"), False),
        ("", False),
    ],
)
def test_a_proc_that_hides_processes(mountinfo, hidden) -> None:
    assert hides_processes(mountinfo) is hidden


def test_privileges_of_a_prepared_root(tmp_path) -> None:
    """Files that are missing are privileges that are missing, except a kernel log without restriction."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/self/status").write_text("CapEff:\t0000000000001000\n")
    (tmp_path / "proc/self/mountinfo").write_text(MOUNT.format(22, "/proc", "rw,hidepid=2"))
    (tmp_path / "proc/sys/kernel/dmesg_restrict").write_text("1\n")
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    (tmp_path / "dev/infiniband/uverbs0").write_text("")
    expected = Privileges(
        os.geteuid(),
        frozenset({"CAP_NET_ADMIN"}),
        hidden_processes=True,
        host_processes=False,
        kernel_log=False,
        debugfs=False,
        uverbs=True,
    )
    assert read_privileges(tmp_path) == expected
    (tmp_path / "proc/self/status").write_text("CapEff:\t0000000400080000\n")
    found = read_privileges(tmp_path)
    assert (found.hidden_processes, found.kernel_log) == (False, True)


def timex(status: int, error: int) -> bytes:
    """`struct timex` of a 64-bit machine, constructed from include/uapi/linux/timex.h."""
    return struct.pack("=IxxxxqqqqI", 0, 0, 0, error, 0, status).ljust(TIMEX_BYTES, b"\0")


def test_the_clock() -> None:
    assert decode_clock_state(timex(0x2001, 1500)) == ClockState(True, 0.0015)
    assert decode_clock_state(timex(0x40, 16_000_000)) == ClockState(False, 16.0)
    clocks = [check_clock(ClockState(True, 0.0015)), check_clock(ClockState(False, 16.0))]
    assert statuses(clocks, "clock") == [Status.OK, Status.DEGRADED]
    assert check_clock(None, "no such call") == NotChecked("the state of the clock: no such call")
    assert read_clock_state().most_error >= 0


STARTED = 1764259200.12
EXPOSITION = (
    'roce_exporter_build_info{python="3.11",version="1"} 1.0\n'
    'roce_exporter_http_requests_total{code="404",path="/metrics"} 9.0\n'
    'roce_exporter_http_requests_total{code="200",path="/metrics"} 240.0\n'
    f"process_start_time_seconds {floatToGoString(STARTED)}\n"
)


def test_scrapes_of_the_exporter_of_this_host() -> None:
    found = parse_scrapes(EXPOSITION)
    assert found == LocalScrapes(240, STARTED)
    item = check_local(found, "http://x", STARTED + 3600)
    assert (
        item.title
        == "The exporter at http://x has been scraped 240 times since it started 60 min ago, one every 15 s"
    )
    once = check_local(LocalScrapes(1, 0.0), "http://x", STARTED).title
    assert once == "The exporter at http://x has been scraped 1 time since it started"
    assert parse_scrapes("process_start_time_seconds 1..2\n").start == 0.0
    none = check_local(parse_scrapes('roce_exporter_build_info{version="1"} 1\n'), "http://x", 0.0)
    assert (none.status, none.title) == (
        Status.DEGRADED,
        "The exporter at http://x has not been scraped since it started",
    )


def target(instance: str, health: str = "up", **more: str) -> dict[str, Any]:
    labels = {"instance": instance, "job": "roce"}
    return {"labels": labels, "health": health, "lastScrape": "2026-11-22T12:00:00Z", **more}


def targets(*active: dict[str, Any]) -> dict[str, Any]:
    return {"activeTargets": list(active)}


@pytest.mark.parametrize(
    ("data", "instance", "expected"),
    [
        (targets(target("gpu-001:10123"), target("gpu-002:10123")), "", [Status.OK]),
        (targets(target("gpu-001.example.org:10123")), "", [Status.OK]),
        (targets(target("10.0.0.7:10123"), target("10.0.0.8:10123")), "10.0.0.7:10123", [Status.OK]),
        (targets(target("gpu-001:10123", "down", lastError="refused")), "", [Status.DEGRADED]),
        (targets(target("gpu-001:10123", "unknown")), "", [Status.UNKNOWN]),
        (targets(target("gpu-0012:10123")), "", [Status.DEGRADED]),
        (targets(), "", [Status.DEGRADED]),
    ],
)
def test_the_targets_of_prometheus(data, instance, expected) -> None:
    found = check_targets(data, instance, "gpu-001.local", "http://p:9090")
    assert [one.status if isinstance(one, Finding) else Status.UNKNOWN for one in found] == expected


@pytest.mark.parametrize("data", [None, [], {}, {"activeTargets": 3}])
def test_another_reply_is_not_a_list_of_targets(data) -> None:
    with pytest.raises(NetError, match="not a list of targets"):
        list(check_targets(data, "", "gpu-001", "http://p:9090"))
    found = [check_samples_arrive({"result": result}, "a").status for result in ([{}], [])]
    assert found == [Status.OK, Status.DEGRADED]


class Served:
    """An exporter and a Prometheus in one: what is found by path."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.found: dict[str, object] = {}

    def __call__(self, path: str) -> tuple[int, object]:
        body = self.found.get(path.partition("?")[0])
        if isinstance(body, str):
            return 200, body.encode()
        return (404, b"") if body is None else (200, {"status": "success", "data": body})


@pytest.fixture
def server() -> Iterator[Served]:
    with answering(lambda _: (404, b"")) as answers:
        answers.reply = served = Served(answers.url)
        yield served


def test_this_host_in_prometheus(capsys, server) -> None:
    """The instance is found by the host's name: that of a simulated host is known."""

    def fit(*active: dict[str, Any], **more: object) -> tuple[int, str]:
        server.found = {"/api/v1/targets": targets(*active), **more}
        return run(capsys, "--host.simulate=quiet", f"--prometheus={server.url}")[:2]

    up = {"/api/v1/query": {"result": [{"value": [0, "4"]}]}}
    status, page = fit(target("gpu-001:10123"), **up)
    assert (status, page.count("gpu-001:10123")) == (0, 2)
    status, page = fit(target("other:10123"))
    assert (status, "none with the name 'gpu-001'" in " ".join(page.split())) == (1, True)
    status, page = fit(target("gpu-001:10123", "down", lastError="refused"))
    assert (status, page.count("  degraded  ")) == (1, 1), "a target that is down is not queried for samples"
    server.found = {}
    assert run(capsys, "--host.simulate=quiet", f"--prometheus={server.url}") == (
        2,
        "",
        f"roce-exporter: Prometheus at {server.url}: HTTP 404: there is no API of Prometheus at this path; check the path of the URL\n",
    )


def test_this_host_with_its_exporter(capsys, server, monkeypatch) -> None:
    monkeypatch.setattr(check, "read_privileges", lambda: ALL)
    monkeypatch.setattr(check, "read_clock_state", lambda: ClockState(True, 0.001))
    server.found = {"/metrics": EXPOSITION}
    page = run(capsys, f"--target={server.url}")[1].replace("\n" + " " * 12, " ")
    assert "CAP_NET_ADMIN: available" in page
    assert "The clock is synchronised, at most 1 ms wrong" in page
    assert f"The exporter at {server.url} has been scraped 240 times" in page
    server.found = {}
    page = run(capsys, f"--target={server.url}")[1].replace("\n" + " " * 12, " ")
    assert f"No exporter responds at {server.url}\n" in page
    assert "why       HTTP 404: check the port and path of the URL\n" in page


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--target=10123"],
            "--target: must begin with http:// or https:// and a host; write http://HOST:10123",
        ),
        (["--prometheus=nonsense", "--host.simulate=quiet"], "--prometheus: must begin with http://"),
    ],
)
def test_bad_flags_are_one_line(capsys, flags, said) -> None:
    status, page, error = run(capsys, *flags)
    assert (status, page) == (2, "")
    assert said in error
    assert error.count("\n") == 1
