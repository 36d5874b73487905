"""Recorded hosts, each with one fault: the audit finds exactly that fault."""

from pathlib import Path

import pytest
from observed import observe
from recorded import recording

from roce_exporter.checks.finding import Finding, Status
from roce_exporter.checks.settings import audit, load_profile
from roce_exporter.host.recorded.recorded import load_recording

LONG_CABLES = "extends: nvidia-lossless\ncable_metres: 100\n"
SHORT_CABLES = "extends: nvidia-lossless\ncable_metres: 7\n"

FINDINGS = [
    ("trust-before", "nvidia-lossless", {"trust"}),
    ("trust-after", "nvidia-lossless", set()),
    ("tos-104", "nvidia-lossless", {"cm_tos", "traffic_class"}),
    ("tos-104", "pfc-only", set()),
    ("pfc-two", "nvidia-lossless", {"pfc"}),
    ("peer-mask", "pfc-only", {"peer_pfc"}),
    ("peer-mask", "nvidia-lossless", {"peer_pfc", "dcbx"}),
    ("tclass-empty", "nvidia-lossless", {"traffic_class"}),
    ("roce-v1", "nvidia-lossless", {"roce_version"}),
    ("no-v2-gid", "nvidia-lossless", {"gid"}),
    ("mtu-1500", "nvidia-lossless", {"mtu"}),
    ("cable-100m", "nvidia-lossless", set()),
    ("cable-100m", SHORT_CABLES, set()),
    ("cable-100m", LONG_CABLES, {"cable_length", "headroom"}),
    ("half-dcqcn", "nvidia-lossless", {"reaction_point"}),
    ("half-dcqcn", "pfc-only", {"reaction_point"}),
    ("dcbx-firmware", "nvidia-lossless", {"dcbx"}),
    ("global-pause", "nvidia-lossless", {"global_pause"}),
    ("watchdog-8s", "nvidia-lossless", {"pfc_prevention"}),
    ("inbox", "nvidia-lossless", set()),
    ("container", "nvidia-lossless", set()),
    ("ionic", "amd-pollara", set()),
    ("trust-after", "lossy", {"pfc"}),
]
"""Host, profile (its name, or the text of a site's own), and the checks that fail; tests/golden/findings.tsv has those of the profile `auto`."""


async def audited(host: str, profile: str, folder: Path) -> tuple[Finding, ...]:
    if "\n" in profile:
        (folder / "site.yml").write_text(profile)
        profile = str(folder / "site.yml")
    _, (seen,) = await observe(load_recording(recording(f"audit-{host}")))
    return audit(seen.snapshot.devices, load_profile(profile))


def failed(verdicts: tuple[Finding, ...], device: str = "") -> set[str]:
    return {one.check for one in verdicts if one.is_wrong and (not device or one.device == device)}


def unreadable(verdicts: tuple[Finding, ...]) -> set[str]:
    return {one.check for one in verdicts if one.status is Status.UNKNOWN}


@pytest.mark.parametrize(("host", "profile", "findings"), FINDINGS)
async def test_a_host_gives_its_findings_and_no_other(host, profile, findings, tmp_path) -> None:
    verdicts = await audited(host, profile, tmp_path)
    assert failed(verdicts) == findings
    assert any(one.status is Status.OK for one in verdicts), "nothing was checked"


@pytest.mark.parametrize("host", sorted({host for host, _, _ in FINDINGS} - {"inbox", "container", "ionic"}))
async def test_all_else_can_be_read_on_these_hosts(host, tmp_path) -> None:
    """So the table above cannot pass for lack of facts. The absence of retransmissions proves nothing."""
    assert unreadable(await audited(host, "nvidia-lossless", tmp_path)) <= {"adaptive_retransmission"}


async def test_bnxt_has_a_cnp_priority_and_a_refresh_interval_that_may_be_0(tmp_path) -> None:
    verdicts = await audited("bnxt", "broadcom-thor2", tmp_path)
    assert failed(verdicts, "bnxt_re0") == set()
    assert failed(verdicts, "bnxt_re1") == {"statistics_refresh"}
    assert unreadable(verdicts) == {"trust"}, "recordings have no trust, which is only in DCB's own table"
    verdicts = await audited("bnxt", "nvidia-lossless", tmp_path)
    assert failed(verdicts, "bnxt_re0") == {"cnp_mapping", "cnp_strict", "cnp_priority"}


OF_OFED = {"traffic_class", "notification_point", "reaction_point", "adaptive_retransmission"}


@pytest.mark.parametrize(
    ("host", "absent"),
    [
        ("inbox", OF_OFED),  # debugfs of the in-tree mlx5 has the DSCP of CNPs
        ("container", {*OF_OFED, "cm_tos", "cnp_dscp", "cnp_priority", "roce_version"}),  # for root alone
    ],
)
async def test_what_a_host_does_not_show_is_unreadable(host, absent, tmp_path) -> None:
    assert unreadable(await audited(host, "nvidia-lossless", tmp_path)) == absent


async def test_a_port_with_other_settings_than_its_neighbours_is_found(tmp_path) -> None:
    verdicts = await audited("drift", "auto", tmp_path)
    (wrong,) = (one for one in verdicts if one.is_wrong)
    assert (wrong.check, wrong.device) == ("consistency", "mlx5_2")
    assert wrong.found == "differs in MTU, priorities with PFC"
    assert wrong.expected == "as ens1np0 of mlx5_0"
