"""The simulated host can be audited completely: every setting that a real NIC of the vendor exposes is readable."""

import json
import re

import pytest

from roce_exporter.cli import main
from roce_exporter.host.simulated.world import VENDORS

UNREADABLE = {"ionic": 1}
"""Linux has no DCB of ionic, so the audit cannot read its priorities, as on a real one."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_exposes_its_settings(vendor, capsys) -> None:
    code = main(
        ["check", "settings", "--format=json", "--host.simulate=quiet", f"--host.simulate-ports={vendor}"]
    )
    counts = json.loads(capsys.readouterr().out)["summary"]
    unknown = UNREADABLE.get(vendor, 0)
    assert (code, counts["degraded"], counts["unknown"]) == (3 if unknown else 0, 0, unknown)


@pytest.mark.parametrize(("vendor", "series"), [("mlx5", 19), ("bnxt", 13), ("ionic", 15), ("ice", 0)])
def test_each_vendor_has_its_own_parameters(vendor, series, capsys) -> None:
    assert (
        main(["once", "--host.simulate=quiet", f"--host.simulate-ports={vendor}", "--metrics.set=full"]) == 0
    )
    assert len(re.findall(r"^roce_dcqcn_parameter\{", capsys.readouterr().out, re.MULTILINE)) == series
