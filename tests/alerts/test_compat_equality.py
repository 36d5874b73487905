"""The real node_exporter and ours read one sysfs: the rules turn each one's series into those of the other."""

from collections.abc import Mapping

import pytest
import servers
from alert_promtool import OURS, THEIRS, Samples, Seen, complaint, samples_of, series
from compat_programs import ours_on, write_tree

from roce_exporter.catalog import CATALOG
from roce_exporter.migrate.foreign import foreign_metrics

pytestmark = [pytest.mark.ci, pytest.mark.usefixtures("promtool")]

EXPORTER, PREFIX = "node_exporter", "node_infiniband_"
FLAGS = ("--collector.infiniband", "--collector.uname")
SERVED_BY_BOTH = ("roce_port_", "roce_transport_", "roce_cnp_", "roce_device_info", "roce_exporter_devices")


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> tuple[Samples, Samples]:
    """The samples of ours, and of theirs that are about RDMA."""
    tree = write_tree(tmp_path_factory.mktemp("sysfs"))
    folder = tmp_path_factory.mktemp("exporter")
    with servers.node_exporter(folder, *FLAGS, f"--path.sysfs={tree}") as running:
        theirs = samples_of(running.get().decode(), THEIRS)
    kept = {one: value for one, value in theirs.items() if one[0].startswith((PREFIX, "node_uname_info"))}
    return samples_of(ours_on(tree), OURS), kept


def named(samples: Samples, name: str, target: Mapping[str, str]) -> Samples:
    """The samples of a name as another target would have them."""
    return {series(name, dict(one[1]) | target): value for one, value in samples.items() if one[0] == name}


def test_their_names_from_ours(tmp_path, pages) -> None:
    """Every series of theirs, with its labels and value."""
    ours, theirs = pages
    names = {name for name, _ in theirs if name.startswith(PREFIX)}
    assert names <= {one.name for one in foreign_metrics(EXPORTER)}
    assert len(names) > 20
    expected = {name: named(theirs, name, OURS) for name in names}
    assert complaint(tmp_path, [f"{EXPORTER}.rules.yml"], Seen(ours, expected)) == ""


def test_our_names_from_theirs(tmp_path, pages) -> None:
    """Every series of ours that theirs has the fact of, also with a second series of theirs where ours runs."""
    ours, theirs = pages
    names = {name for name, _ in theirs}
    rows = {row.name for row in CATALOG if row.labels == ("device", "port")}
    ours_of = {one.ours for one in foreign_metrics(EXPORTER) if one.name in names and one.ours in rows}
    assert len(ours_of) > 20
    expected = {name: named(ours, name, THEIRS) for name in {*ours_of, "roce_port_up", "roce_port_state"}}
    assert all(expected.values())
    files = [f"from_{EXPORTER}.rules.yml"]
    assert complaint(tmp_path, files, Seen(theirs, expected)) == ""
    both = {name: named(ours, name, OURS) for name, _ in ours if name.startswith(SERVED_BY_BOTH)}
    assert complaint(tmp_path, files, Seen({**ours, **theirs}, both)) == ""
