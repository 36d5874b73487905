"""The real node_exporter and rdma_exporter and ours read one sysfs: the rules turn each one's series into those of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from compat_programs import needed, ours_on, page_of, write_tree
from compat_samples import OURS, THEIRS, Samples, complaint, samples_of, series

from roce_exporter.catalog import CATALOG
from roce_exporter.migration.foreign import foreign_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("promtool")]

NODE = (
    "--collector.disable-defaults",
    "--collector.infiniband",
    "--collector.uname",
    "--web.listen-address={address}",
)
PROGRAMS = {
    "node_exporter": ("node_exporter", ("node_exporter",), NODE, "--path.sysfs="),
    "node_exporter of Debian": (
        "node_exporter",
        ("node_exporter_debian", "prometheus-node-exporter"),
        NODE,
        "--path.sysfs=",
    ),
    "rdma_exporter": ("rdma_exporter", ("rdma_exporter",), ("--listen-address={address}",), "--sysfs-root="),
}
PREFIX = {"node_exporter": "node_infiniband_", "rdma_exporter": "rdma_"}
NOT_COUNTERS = ("scrape_errors_total", "scrape_collector_success")
"""Ends of names about rdma_exporter itself."""
LOST = ("link_width", "link_speed", "phys_state")
"""Labels of `rdma_port_info` that ours does not have as text."""

SERVED_BY_BOTH = ("roce_port_", "roce_transport_", "roce_cnp_", "roce_device_info", "roce_exporter_devices")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("sysfs"))


@pytest.fixture(scope="module")
def ours(tree: Path) -> Samples:
    return samples_of(ours_on(tree), OURS)


@pytest.fixture(scope="module", params=PROGRAMS)
def theirs(
    request: pytest.FixtureRequest, tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Samples]:
    exporter, programs, flags, root = PROGRAMS[request.param]
    page = page_of(needed(*programs), *flags, f"{root}{tree}", folder=tmp_path_factory.mktemp("exporter"))
    found = samples_of(page, THEIRS)
    kept = {
        one: value
        for one, value in found.items()
        if one[0].startswith((PREFIX[exporter], "node_uname_info")) and not one[0].endswith(NOT_COUNTERS)
    }
    return exporter, kept


def named(samples: Samples, name: str, target: Mapping[str, str], *, less: tuple[str, ...] = ()) -> Samples:
    """The samples of a name as another target would have them, without some labels."""
    return {
        series(name, {label: text for label, text in one[1] if label not in less} | target): value
        for one, value in samples.items()
        if one[0] == name
    }


def test_their_names_from_ours(tmp_path: Path, ours: Samples, theirs: tuple[str, Samples]) -> None:
    """Every series of theirs, with its labels and value."""
    exporter, samples = theirs
    names = {name for name, _ in samples if name.startswith(PREFIX[exporter])}
    translated = {one.name for one in foreign_metrics(exporter)}
    assert names <= translated
    assert len(names) > 20
    expected = {name: named(samples, name, OURS, less=LOST) for name in names}
    assert complaint(tmp_path, [f"{exporter}.rules.yml"], ours, expected) == ""


def test_our_names_from_theirs(tmp_path: Path, ours: Samples, theirs: tuple[str, Samples]) -> None:
    """Every series of ours that theirs has the fact of, with the labels and the value that ours serves."""
    exporter, samples = theirs
    names = {name for name, _ in samples}
    rows = {row.name for row in CATALOG if row.labels == ("device", "port")}
    ours_of = {one.ours for one in foreign_metrics(exporter) if one.name in names and one.ours in rows}
    assert len(ours_of) > 20
    expected = {name: named(ours, name, THEIRS) for name in {*ours_of, "roce_port_up", "roce_port_state"}}
    assert all(expected.values())
    assert complaint(tmp_path, [f"from_{exporter}.rules.yml"], samples, expected) == ""


def test_no_second_series_where_ours_runs(tmp_path: Path, ours: Samples, theirs: tuple[str, Samples]) -> None:
    """Both exporters run on the host: only ours gives the series."""
    exporter, samples = theirs
    names = sorted({name for name, _ in ours if name.startswith(SERVED_BY_BOTH)})
    expected = {name: named(ours, name, OURS) for name in names}
    assert complaint(tmp_path, [f"from_{exporter}.rules.yml"], {**ours, **samples}, expected) == ""
