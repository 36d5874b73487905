"""The simulated host can be audited completely: every setting that a real NIC of the vendor exposes is readable."""

from __future__ import annotations

import re

import pytest

from roce_exporter.cli import main
from roce_exporter.host.simulated import VENDORS


def audited(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, dict[str, int]]:
    """Exit code, table, and the number of settings per verdict."""
    code = main(["audit", *arguments])
    table = capsys.readouterr().out
    counts = re.findall(r"(\d+) (ok|wrong|unreadable)", table.splitlines()[-1])
    return code, table, {verdict: int(number) for number, verdict in counts}


def test_a_quiet_host_is_configured_correctly_and_readable(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, counts = audited(capsys, "--host.simulate=quiet", "--profile", "nvidia-lossless")
    assert (code, counts["wrong"], counts["unreadable"]) == (0, 0, 0)
    assert counts["ok"] == 4 * 28


def test_a_misconfigured_host_is_found_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    code, table, counts = audited(capsys, "--host.simulate=misconfigured", "--profile", "nvidia-lossless")
    assert code == 1
    assert counts["wrong"] >= 6
    assert counts["unreadable"] == 0
    for setting in (
        "priorities with PFC",
        "ToS of RDMA-CM connections",
        "the NIC's own pause watchdog",
        "RoCE version of RDMA-CM",
        "CNPs for marked packets",
        "trust",
    ):
        assert re.search(rf"WRONG +{re.escape(setting)} ", table), setting


UNREADABLE = {"ionic": 1}
"""Linux has no DCB of ionic, so the audit cannot read its priorities, as on a real one."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_exposes_its_settings(vendor: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, counts = audited(capsys, "--host.simulate=quiet", f"--host.simulate-ports={vendor}")
    assert (code, counts["wrong"]) == (0, 0)
    assert counts["unreadable"] == UNREADABLE.get(vendor, 0)


@pytest.mark.parametrize(("vendor", "series"), [("mlx5", 19), ("bnxt", 13), ("ionic", 15), ("ice", 0)])
def test_each_vendor_has_its_own_parameters(
    vendor: str, series: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["once", "--host.simulate=quiet", f"--host.simulate-ports={vendor}", "--metrics.set=full"]) == 0
    )
    assert len(re.findall(r"^roce_dcqcn_parameter\{", capsys.readouterr().out, re.MULTILINE)) == series
