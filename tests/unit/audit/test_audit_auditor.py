"""The series of the audit: 0, 1 or none at all, a fingerprint, and no work while nothing changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed import audited, observe
from recorded import recording
from test_audit_checks import GOOD

from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.checks.settings.auditor import COMPARED, comparable, fingerprint
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.model import DeviceReadings, Gid, Reading
from roce_exporter.normalise.series import Samples, Value


async def devices_of(host: str) -> tuple[DeviceReadings, ...]:
    _, (seen,) = await observe(load_recording(recording(host)))
    return seen.snapshot.devices


def named(samples: Samples, row: str) -> dict[tuple[str, ...], Value]:
    return {
        series.labels: value
        for series, value in zip(samples.series, samples.values, strict=True)
        if series.row.name == row
    }


async def test_a_check_is_1_or_0_and_absent_if_it_is_not_possible() -> None:
    samples = audited(Auditor(load_profile("nvidia-lossless")), await devices_of("audit-container"))
    ok = named(samples, "roce_config_check_ok")
    unreadable = named(samples, "roce_config_check_unreadable")
    assert ok["mlx5_0", "1", "ens1np0", "trust"] == 1
    assert unreadable["mlx5_0", "1", "ens1np0", "cm_tos"] == 1
    assert not ok.keys() & unreadable.keys()
    samples = audited(Auditor(load_profile("nvidia-lossless")), await devices_of("audit-trust-before"))
    assert named(samples, "roce_config_check_ok")["mlx5_0", "1", "ens1np0", "trust"] == 0


async def test_no_series_is_duplicated_on_a_host_with_several_member_ports() -> None:
    for host in ("mlx5-lag", "mlx5-pair", "gpu16", "audit-drift", "cloud", "hns-qedr"):
        series = audited(Auditor(load_profile("auto")), await devices_of(host)).series
        assert len(set(series)) == len(series)


async def test_infiniband_and_iwarp_are_not_audited() -> None:
    samples = audited(Auditor(load_profile("nvidia-lossless")), await devices_of("mlx5-multiplane"))
    assert samples.series == ()
    samples = audited(Auditor(load_profile("nvidia-lossless")), await devices_of("softroce"))
    assert {series.labels[0] for series in samples.series} == {"rxe0"}


def changed(found: DeviceReadings, source: str, name: str, value: int) -> DeviceReadings:
    def other(reading: Reading) -> Reading:
        if reading.source != source or name not in reading.names:
            return reading
        values = list(reading.values)
        values[reading.names.index(name)] = value
        return replace(reading, values=tuple(values))

    return replace(found, readings=tuple(map(other, found.readings)))


async def test_it_is_evaluated_again_only_when_a_setting_changed() -> None:
    (found,) = await devices_of("audit-trust-after")
    auditor = Auditor(load_profile("nvidia-lossless"))
    first = audited(auditor, [found])
    assert audited(auditor, [found]) is first
    for source, name in (("dcb", "pfc_requests_3"), ("dcb", "pfc_indications_3"), ("configuration", "age")):
        moved = changed(found, source, name, 12345)
        assert moved != found
        assert audited(auditor, [moved]) is first, f"{name} is no setting"
    after = audited(auditor, [changed(found, "dcb", "pfc_enabled_3", 0)])
    assert named(after, "roce_config_check_ok")["mlx5_0", "1", "ens1np0", "pfc"] == 0
    assert audited(auditor, []).series == ()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("pause", "receive"),
        ("settings", "pfc_prevention_timeout"),
        ("port", "mtu"),
        ("link", "speed"),
        ("pcie", "current_link_width"),
        ("configuration", "cm_tos"),
        ("configuration", "reaction_enabled_3"),
    ],
)
async def test_a_change_of_every_evaluated_setting_is_noticed(source, name) -> None:
    (found,) = await devices_of("audit-trust-after")
    auditor = Auditor(load_profile("nvidia-lossless"))
    before = audited(auditor, [found])
    assert audited(auditor, [changed(found, source, name, 8)]) is not before


async def test_equally_set_ports_have_equal_fingerprints_and_others_do_not() -> None:
    samples = audited(Auditor(load_profile("auto")), await devices_of("audit-drift"))
    prints = {labels[0]: value for labels, value in named(samples, "roce_config_fingerprint").items()}
    assert prints["mlx5_0"] == prints["mlx5_1"] != prints["mlx5_2"]


def test_a_fingerprint_is_the_same_on_every_host() -> None:
    """It must survive a restart and a new Python: otherwise every upgrade would look like drift."""
    assert (
        fingerprint({"mtu": 4200, "pfc": (3,)})
        == fingerprint({"pfc": (3,), "mtu": 4200})
        == 7_681_871_549_746
    )


@given(st.dictionaries(st.sampled_from(sorted(COMPARED)), st.integers(0, 9)))
def test_a_fingerprint_is_exact_as_a_float(settings) -> None:
    number = fingerprint(settings)
    assert int(float(number)) == number
    assert 0 <= number < 1 << 48


def test_identity_and_location_are_not_in_the_fingerprint() -> None:
    other = replace(
        GOOD,
        device="mlx5_7",
        port=2,
        netdev="eth9",
        pci="0000:99:00.0",
        speed=12_500_000_000,
        gids=(Gid(3, "RoCE v2", "eth9", "192.0.2.9"),),
        dscp_priority={48: 6, 26: 3},
    )
    assert fingerprint(comparable(other)) == fingerprint(comparable(GOOD))
    assert fingerprint(comparable(replace(GOOD, cm_tos=104))) != fingerprint(comparable(GOOD))
