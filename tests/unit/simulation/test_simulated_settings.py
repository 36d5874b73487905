"""The simulated host can be audited completely: every setting that a real NIC of the vendor exposes is readable."""

import json
import re

import pytest

from roce_exporter.cli import main
from roce_exporter.host.simulated.world import VENDORS


def audited(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, set[str], dict[str, int]]:
    """Exit code, titles of what is wrong, and the number of settings per status."""
    code = main(["check", "settings", "--format=json", *arguments])
    document = json.loads(capsys.readouterr().out)
    wrong = {one["title"] for one in document["findings"] if one["status"] == "degraded"}
    return code, wrong, document["summary"]


def test_a_quiet_host_is_configured_correctly_and_readable(capsys) -> None:
    code, _, counts = audited(capsys, "--host.simulate=quiet", "--profile", "nvidia-lossless")
    assert (code, counts["degraded"], counts["unknown"]) == (0, 0, 0)
    assert counts["ok"] == 4 * 28


def test_a_misconfigured_host_is_found_wrong(capsys) -> None:
    code, wrong, counts = audited(capsys, "--host.simulate=misconfigured", "--profile", "nvidia-lossless")
    assert code == 1
    assert counts["degraded"] >= 6
    # Packets were sent again on three ports, which says nothing about the setting.
    assert counts["unknown"] == 3
    assert wrong >= {
        "priorities with PFC",
        "ToS of RDMA-CM connections",
        "the NIC's own pause watchdog",
        "RoCE version of RDMA-CM",
        "CNPs for marked packets",
        "trust",
    }


UNREADABLE = {"ionic": 1}
"""Linux has no DCB of ionic, so the audit cannot read its priorities, as on a real one."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_exposes_its_settings(vendor, capsys) -> None:
    code, _, counts = audited(capsys, "--host.simulate=quiet", f"--host.simulate-ports={vendor}")
    unknown = UNREADABLE.get(vendor, 0)
    assert (code, counts["degraded"], counts["unknown"]) == (3 if unknown else 0, 0, unknown)


@pytest.mark.parametrize(("vendor", "series"), [("mlx5", 19), ("bnxt", 13), ("ionic", 15), ("ice", 0)])
def test_each_vendor_has_its_own_parameters(vendor, series, capsys) -> None:
    assert (
        main(["once", "--host.simulate=quiet", f"--host.simulate-ports={vendor}", "--metrics.set=full"]) == 0
    )
    assert len(re.findall(r"^roce_dcqcn_parameter\{", capsys.readouterr().out, re.MULTILINE)) == series
