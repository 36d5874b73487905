"""Perses, which is not Grafana, imports every board: its importer is compiled from its Go module, with the schemas of its plugins."""

import json
import subprocess

import pytest
from dashboard_contents import DASHBOARDS, Json, panels, read
from tools import cache_folder, need

pytestmark = pytest.mark.nightly
KINDS = {
    "timeseries": "TimeSeriesChart",
    "stat": "StatChart",
    "bargauge": "BarChart",
    "table": "Table",
    **dict.fromkeys(("state-timeline", "status-history"), "Markdown"),
}
"""What Perses makes of a panel. It has no states over time: it puts a note in their place."""


def described(panel: Json) -> tuple[str, str, list[str]]:
    return panel["title"], KINDS[panel["type"]], [one["expr"] for one in panel.get("targets", ())]


def imported(panel: Json) -> tuple[str, str, list[str]]:
    spec = panel["spec"]
    queries = [one["spec"]["plugin"]["spec"]["query"] for one in spec.get("queries", ())]
    return spec["display"]["name"], spec["plugin"]["kind"], queries


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_is_imported_with_its_queries(path) -> None:
    importer = need("perses_import")
    done = subprocess.run(
        [importer, cache_folder() / "perses/cue/schemas", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    board = json.loads(done.stdout)["spec"]
    assert board["display"]["name"] == read(path)["title"]
    assert sorted(map(imported, board["panels"].values())) == sorted(map(described, panels(read(path))))
