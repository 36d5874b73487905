"""Public dashboards on other exporters' names: each query over theirs and its translation over ours give the same values.

The real node_exporter and ours read one sysfs of files, whose counters move between nine scrapes. The samples are stored with times
15 s apart, so that rates do not depend on when the test ran. What rdma_exporter shows is constructed: no package has it.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import servers
from alerts.compat_programs import COUNTERS, HW_COUNTERS, write_tree
from deploy_servers import backfill, on_blocks
from prometheus_client.parser import text_string_to_metric_families
from public_panels import PANELS, Panel
from servers import Running, Values

from roce_exporter.migrate.promql_names import UntranslatedError, names_of
from roce_exporter.migrate.translation import translate

BEGIN = 1_767_225_600
INTERVAL = 15
SCRAPES = 9
END = BEGIN + (SCRAPES - 1) * INTERVAL
VALUES = {"instance": ".*", "device": ".*", "port": ".*", "node": ".*", "interval": "1m", "topn": "5"}
VARIABLE = re.compile(r"\$(\w+)")
OF_NEWER = re.compile(r"node_infiniband_(np|rp|out_of|local_ack)_")
"""Names that node_exporter 1.5.0, Debian 12's, does not have."""


def counters(tree: Path) -> Iterator[tuple[str, Path]]:
    """Each device with each file of its counters."""
    for device in sorted((tree / "class/infiniband").iterdir()):
        for folder, names in (("counters", COUNTERS), ("hw_counters", HW_COUNTERS)):
            for name in names:
                yield device.name, device / "ports/1" / folder / name


def move(tree: Path) -> None:
    """Add a number of its own to each counter of each port."""
    for place, (_, file) in enumerate(counters(tree), 1):
        file.write_text(f"{int(file.read_text()) + 7 * place}\n")


def rdma_exporter_on(tree: Path) -> str:
    """What rdma_exporter shows of it, constructed: its names are those of the files."""
    lines = [f'rdma_port_info{{device="mlx5_{number}",port="1"}} 1' for number in (0, 1)]
    for device, file in counters(tree):
        lines.append(f'rdma_{file.name}_total{{device="{device}",port="1"}} {file.read_text().strip()}')
    return "\n".join((*lines, ""))


def lines_of(text: str, job: str, moment: int) -> Iterator[str]:
    """The samples of an exposition with the labels of a target and a time."""
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            labels = {**one.labels, "job": job, "instance": "host1"}
            written = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if value)
            yield f"{one.name}{{{written}}} {one.value!r} {moment}"


@contextmanager
def stored(exporter: str, folder: Path) -> Iterator[Running]:
    """A Prometheus with the samples of an exporter and of ours, on one tree."""
    tree = write_tree(folder / "sysfs")
    with ExitStack() as stack:
        theirs = None
        if exporter != "rdma_exporter":
            flags = ("--collector.infiniband", f"--path.sysfs={tree}")
            theirs = stack.enter_context(servers.node_exporter(folder, *flags, program=exporter))
        flags = (
            f"--path.sysfs={tree}",
            "--metrics.set=full",
            "--sampler.mode=off",
            "--collect.min-interval=0.001",
        )
        ours = stack.enter_context(servers.exporter(folder, *flags))
        lines: list[str] = []
        for moment in range(BEGIN, END + 1, INTERVAL):
            text = theirs.get().decode() if theirs else rdma_exporter_on(tree)
            lines += lines_of(text, "theirs", moment)
            lines += lines_of(ours.get().decode(), "ours", moment)
            move(tree)
    backfill(folder, "scraped", lines)
    with on_blocks(folder) as server:
        yield server


def values(server: Running, query: str, job: str, only: tuple[str, ...] = ()) -> Values:
    """The result of a query of a dashboard whose variables select everything of a job, without the job, or by some labels."""
    text = VARIABLE.sub(lambda match: {**VALUES, "job": job}[match[1]], query)
    return {
        frozenset(
            (key, text) for key, text in labels if (key in only if only else key not in ("job", "__name__"))
        ): value
        for labels, value in server.values(text, time=END).items()
    }


def translated(panel: Panel) -> str:
    """The query by our names.

    Raises:
        UntranslatedError: it has no translation.
    """
    found = translate(panel.query, names_of((panel.exporter,)))
    assert found is not None, panel
    return found.text


def test_what_is_lost_says_why() -> None:
    lost = [panel for panel in PANELS if panel.lost]
    assert len(lost) >= 10
    for panel in lost:
        with pytest.raises(UntranslatedError, match=re.escape(panel.lost)):
            translated(panel)


@pytest.mark.ci
@pytest.mark.parametrize(
    "exporter",
    ["node_exporter", pytest.param("node_exporter_newest", marks=pytest.mark.nightly), "rdma_exporter"],
)
def test_a_translated_panel_shows_the_same(exporter, tmp_path) -> None:
    compared = 0
    with stored(exporter, tmp_path) as server:
        for panel in PANELS:
            if panel.lost or panel.exporter != exporter.removesuffix("_newest"):
                continue
            ours = translated(panel)
            if not panel.in_files or (exporter == "node_exporter" and OF_NEWER.search(panel.query)):
                continue
            theirs = values(server, panel.query, "theirs", panel.labels)
            assert theirs, panel.query
            found = values(server, ours, "ours", panel.labels)
            assert found == pytest.approx(theirs, rel=1e-9), panel.query
            compared += 1
    assert compared >= 15
