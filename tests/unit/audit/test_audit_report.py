"""`roce-exporter audit`: a table for people, JSON for scripts, and an exit code."""

from __future__ import annotations

import json

import pytest
from recorded import recording

from roce_exporter.checks.settings import Profile, as_table, load_profile
from roce_exporter.checks.settings.auditor import judge
from roce_exporter.cli import main


def run(host: str, *arguments: str) -> int:
    return main(["audit", f"--host.recording={recording(host)}", *arguments])


def test_the_exit_code_is_0_when_all_is_right_and_1_when_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("audit-trust-after", "--profile=nvidia-lossless") == 0
    assert run("audit-trust-before", "--profile=nvidia-lossless") == 1
    assert run("audit-container", "--audit.profile=nvidia-lossless") == 0, "unreadable is not wrong"


def test_the_table_has_the_fault_the_reason_and_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    run("audit-trust-before", "--profile=nvidia-lossless")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mlx5_0 port 1, ens1np0"
    (row,) = (line for line in lines if line.startswith("  WRONG"))
    assert row.split() == ["WRONG", "trust", "dscp", "pcp"]
    reason = lines.index(
        "  trust: RoCE packets without a VLAN tag get priority 0, which is lossy, unless the port trusts DSCP."
    )
    assert lines[reason + 1] == "    fix: mlnx_qos -i ens1np0 --trust dscp"
    assert lines[-1] == "profile nvidia-lossless: 18 ok, 1 wrong, 1 unreadable"
    assert "\x1b" not in "".join(lines), "no colour without a terminal"


async def test_colour_is_for_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    from test_audit_checks import GOOD  # noqa: PLC0415 - only this test needs facts without a host

    profile = load_profile("nvidia-lossless")
    verdicts = judge([GOOD], profile)
    plain, coloured = (as_table(verdicts, profile, colour=colour) for colour in (False, True))
    assert "\x1b[32m" in coloured
    for code in ("\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_json_has_all_fields_of_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("audit-tos-104", "--profile=nvidia-lossless", "--format=json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["profile"] == "nvidia-lossless"
    assert document["ok"] is False
    assert document["summary"] == {"ok": 19, "wrong": 2, "unreadable": 1}
    wrong = [one for one in document["checks"] if one["status"] == "wrong"]
    assert [one["check"] for one in wrong] == ["cm_tos", "traffic_class"]
    assert wrong[0] == {
        "device": "mlx5_0",
        "port": 1,
        "netdev": "ens1np0",
        "check": "cm_tos",
        "status": "wrong",
        "expected": "106 (DSCP 26, ECT(0))",
        "found": "104 (DSCP 26, no ECT)",
        "why": wrong[0]["why"],
        "mend": {
            "generic": "mkdir -p /sys/kernel/config/rdma_cm/mlx5_0 && "
            "echo 106 > /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
            "mlx5": "cma_roce_tos -d mlx5_0 -p 1 -t 106",
        },
    }
    assert all(one["found"] is None for one in document["checks"] if one["status"] == "unreadable")


def test_a_host_without_roce_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mlx5-multiplane") == 0
    assert capsys.readouterr().out == "profile auto: no RoCE ports on this host\n"
    assert as_table([], Profile("x"), colour=True) == "profile x: no RoCE ports on this host\n"


@pytest.mark.parametrize("command", ["audit", "once", "serve"])
def test_an_unknown_profile_is_reported_in_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = f"--host.recording={recording('audit-bnxt')}"
    assert main([command, host, "--audit.profile=nvidia"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("roce-exporter: profile nvidia: there is no such profile; give one of ")
    assert error.count("\n") == 1


def test_a_scrape_has_the_findings_of_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    host = f"--host.recording={recording('audit-roce-v1')}"
    assert main(["once", host, "--audit.profile=nvidia-lossless", "--metrics.set=full"]) == 0
    lines = capsys.readouterr().out.splitlines()
    labels = 'device="mlx5_0",port="1",netdev="ens1np0",check='
    assert f'roce_config_check_ok{{{labels}"roce_version"}} 0' in lines
    assert f'roce_config_check_ok{{{labels}"trust"}} 1' in lines
    assert f'roce_config_check_unreadable{{{labels}"adaptive_retransmission"}} 1' in lines
    assert not [line for line in lines if line.startswith("roce_config_check_ok") and "adaptive" in line]
