"""Public dashboards on other exporters' names: each query over theirs and its translation over ours give the same values.

The real exporters and ours read one sysfs of files, whose counters move between nine scrapes. The samples are stored with times 15 s
apart, so that rates do not depend on when the test ran.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from alerts.compat_programs import COUNTERS, HW_COUNTERS, needed, serving, write_tree
from deploy_blocks import backfill, on_blocks
from deploy_daemon import running
from deploy_tools import COMMAND, fetch, wait_until
from prometheus_client.parser import text_string_to_metric_families
from public_panels import PANELS, Panel

from roce_exporter.migration.promql_labels import UntranslatedError
from roce_exporter.migration.promql_names import names_of
from roce_exporter.migration.promql_translation import translate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deploy_servers import Labels, Server

pytestmark = pytest.mark.ci

BEGIN = 1_767_225_600
INTERVAL = 15
SCRAPES = 9
END = BEGIN + (SCRAPES - 1) * INTERVAL
VALUES = {"instance": ".*", "device": ".*", "port": ".*", "node": ".*", "interval": "1m", "topn": "5"}
VARIABLE = re.compile(r"\$(\w+)")
PROGRAMS = {
    "node_exporter": ("node_exporter", "--path.sysfs="),
    "node_exporter_debian": ("node_exporter", "--path.sysfs="),
    "rdma_exporter": ("rdma_exporter", "--sysfs-root="),
}
FLAGS = {
    "node_exporter": (
        "--collector.disable-defaults",
        "--collector.infiniband",
        "--web.listen-address={address}",
    ),
    "rdma_exporter": ("--listen-address={address}",),
}


def move(tree: Path) -> None:
    """Add a number of its own to each counter of each port."""
    for device, port in enumerate(sorted((tree / "class/infiniband").iterdir()), 1):
        for folder, names in (("counters", COUNTERS), ("hw_counters", HW_COUNTERS)):
            for place, name in enumerate(names, 1):
                file = port / "ports/1" / folder / name
                step = device * (7 * place + (3 if folder == "counters" else 5))
                file.write_text(f"{int(file.read_text()) + step}\n")


def lines_of(text: str, job: str, moment: int) -> Iterator[str]:
    """The samples of an exposition with the labels of a target and a time."""
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = {**one.labels, "job": job, "instance": "host1"}
            written = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if value)
            yield f"{one.name}{{{written}}} {one.value!r} {moment}"


class Stored(NamedTuple):
    """A Prometheus with the samples of one exporter and of ours."""

    exporter: str
    newest: bool
    server: Server

    def values(self, query: str, job: str, only: tuple[str, ...] = ()) -> dict[Labels, float]:
        """The result of a query of a dashboard whose variables select everything of a job, without the job, or by some labels."""
        text = VARIABLE.sub(lambda match: {**VALUES, "job": job}[match[1]], query)
        left_out = {"job", "__name__"}
        return {
            frozenset(
                (key, text) for key, text in labels if (key in only if only else key not in left_out)
            ): value
            for labels, value in self.server.values(text, END).items()
        }


@pytest.fixture(scope="module", params=PROGRAMS)
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """One of the real exporters after the other, next to ours."""
    exporter, root = PROGRAMS[request.param]
    program = needed(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    tree = write_tree(folder / "sysfs")
    lines: list[str] = []
    with ExitStack() as stack:
        theirs = stack.enter_context(serving(program, *FLAGS[exporter], f"{root}{tree}", folder=folder))
        flags = [f"--path.sysfs={tree}", "--metrics.set=full", "--sampler.mode=off"]
        ours = stack.enter_context(running([str(COMMAND)], flags=flags)).url
        wait_until(lambda: fetch(f"{ours}/-/ready") and fetch(f"http://{theirs}/metrics"), "both serve")
        for number in range(SCRAPES):
            moment = BEGIN + number * INTERVAL
            lines += lines_of(fetch(f"http://{theirs}/metrics"), "theirs", moment)
            lines += lines_of(fetch(f"{ours}/metrics"), "ours", moment)
            move(tree)
    backfill(folder, "scraped", lines)
    with on_blocks(folder) as server:
        yield Stored(exporter, request.param != "node_exporter_debian", server)


def translated(panel: Panel) -> str:
    """The query by our names.

    Raises:
        UntranslatedError: it has no translation.
    """
    found = translate(panel.query, names_of((panel.exporter,)))
    assert found is not None, panel
    return found.text


def title(panel: Panel) -> str:
    return f"{panel.title}: {panel.query[:60]}"


@pytest.mark.parametrize("panel", [one for one in PANELS if one.lost], ids=title)
def test_what_is_lost_says_why(panel: Panel) -> None:
    with pytest.raises(UntranslatedError, match=re.escape(panel.lost)):
        translated(panel)


@pytest.mark.parametrize("panel", [one for one in PANELS if not one.lost], ids=title)
def test_a_translated_panel_shows_the_same(stored: Stored, panel: Panel) -> None:
    if panel.exporter != stored.exporter:
        pytest.skip(f"not a panel of {stored.exporter}")
    theirs = stored.values(panel.query, "theirs", panel.labels)
    if not panel.in_files:
        assert theirs == {}
        return
    if not theirs and not stored.newest:
        pytest.skip("node_exporter 1.5.0 does not have the name")
    ours = stored.values(translated(panel), "ours", panel.labels)
    assert theirs
    assert ours == pytest.approx(theirs, rel=1e-9)
