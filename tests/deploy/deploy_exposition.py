"""Pages of metrics that do not change, so that what a store received can be compared with them value by value.

One page has every row of the catalogue. The others are what real daemons served at one moment: a simulated host with a storm, and
a recorded one. The scraper chooses the format, as it does with the exporter.
"""

from __future__ import annotations

import threading
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from deploy_daemon import running
from deploy_tools import COMMAND, ROOT, fetch, wait_until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, Row
from roce_exporter.exposition import Format, Renderer, negotiate
from roce_exporter.normalise.series import Samples, Series

if TYPE_CHECKING:
    from collections.abc import Iterator

Labels = frozenset[tuple[str, str]]
Values = dict[Labels, float]
Page = dict[Format, str]

CATALOGUE, STORM, RECORDED = "gpu-r07-n01", "gpu-r07-n02", "stor-r08-n01"
"""The instances, whose names say role and rack."""
CLUSTER = "fabric-a"
ODD = 'Zürich "1"\\ 東京'
"""A label value with all that formats escape, and with letters outside ASCII."""
BOUNDS = ("0.001", "0.5", "1", "2.5", "+Inf")


def series_of(row: Row, number: int) -> Iterator[tuple[Series, int | float]]:
    """Series of a row with made labels and values, which no other row has."""
    if row.kind != HISTOGRAM:
        labels = tuple(f"{label} {number}" for label in row.labels[:-1]) + (ODD,) * bool(row.labels)
        yield Series(row, labels), 2**40 + 1009 * number if row.kind == COUNTER else number + 0.125
        return
    labels = tuple(f"{label} {number}" for label in row.labels[:-1])
    for place, bound in enumerate(BOUNDS):
        yield Series(row, (*labels, bound), "_bucket"), number * 10 + place
    if row.spellings:
        return  # the sum of a driver's histogram is not known, and OpenMetrics has no count without a sum
    yield Series(row, (*labels, ""), "_sum"), number + 0.25
    yield Series(row, (*labels, ""), "_count"), number * 10 + len(BOUNDS) - 1


def catalogue(without: str = "") -> Page:
    """Every row of the catalogue, or all but one."""
    found = [
        one for number, row in enumerate(CATALOG) if row.name != without for one in series_of(row, number)
    ]
    samples = Samples(tuple(series for series, _ in found), tuple(value for _, value in found))
    renderer = Renderer()
    ends = {Format.OPENMETRICS: "# EOF\n"}
    return {form: renderer.render([samples], form).decode() + ends.get(form, "") for form in Format}


def served(url: str) -> Page:
    """What a daemon serves now, once per format. Values of two formats differ."""
    page = {}
    for form in Format:
        request = urllib.request.Request(url, headers={"Accept": form.value.partition("; charset")[0]})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Content-Type"] == form.value
            page[form] = answer.read().decode()
    return page


def served_by_daemons() -> dict[str, Page]:
    """What two daemons serve with all metrics: one has seen a storm, one reads a recording with an FEC histogram."""
    flags = {
        STORM: ("--host.simulate=pfc-storm", "--host.simulate-seed=25", "--sampler.mode=fixed"),
        RECORDED: (f"--host.recording={ROOT / 'tests/recordings/mlx5-7.3.txt'}",),
    }
    with ExitStack() as stack:
        urls = {
            name: stack.enter_context(running([str(COMMAND)], flags=[*given, "--metrics.set=full"])).url
            for name, given in flags.items()
        }
        for url in urls.values():
            wait_until(lambda url=url: fetch(f"{url}/-/ready"), f"{url} ready")
        wait_until(
            lambda: "roce_pfc_pause_episode_seconds_count" in fetch(f"{urls[STORM]}/metrics"),
            "pauses are counted",
        )
        return {name: served(f"{url}/metrics") for name, url in urls.items()}


@dataclass
class Frozen:
    """A server of pages, and the format in which each was scraped last."""

    pages: dict[str, Page]
    server: ThreadingHTTPServer
    scraped: dict[str, Format] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server.server_port}"

    def targets(self) -> list[dict[str, object]]:
        """The pages as file discovery wants them."""
        return [
            {
                "targets": [self.address],
                "labels": {"instance": name, "cluster": CLUSTER, "__metrics_path__": f"/{name}"},
            }
            for name in self.pages
        ]

    def values(self, name: str) -> Values:
        """The samples of a page by their labels, as prometheus_client reads them from the format that was scraped."""
        form = self.scraped[name]
        parse = parse_openmetrics if form is Format.OPENMETRICS else parse_text
        return {
            frozenset({**sample.labels, "__name__": sample.name}.items()): float(sample.value)
            for family in parse(self.pages[name][form])
            for sample in family.samples
        }


@contextmanager
def frozen(pages: dict[str, Page]) -> Iterator[Frozen]:
    """Serve pages on loopback."""

    class Scrape(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            form = negotiate(self.headers.get("Accept", ""))
            body = state.pages[name][form].encode()
            state.scraped[name] = form
            self.send_response(200)
            self.send_header("Content-Type", form.value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Scrape) as server:
        state = Frozen(dict(pages), server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield state
        server.shutdown()
