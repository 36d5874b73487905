"""From a scrape to a store in each of the tested ways, what each is known to change, and what arrives."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deploy_exposition import (
    CATALOGUE,
    CLUSTER,
    RECORDED,
    STORM,
    Frozen,
    Labels,
    Values,
)
from deploy_paths import (
    agent,
    by_otlp,
    by_remote_write,
    otlp_config,
    otlp_prometheus,
    prometheus_3,
    receiving_prometheus,
    victoria_metrics,
    vmagent,
)
from deploy_tools import wait_until

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import HISTOGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deploy_servers import Server

PLACES = {
    CATALOGUE: {"role": "gpu", "rack": "r07"},
    STORM: {"role": "gpu", "rack": "r07"},
    RECORDED: {"role": "stor", "rack": "r08"},
}
"""The labels that are derived from the instances' names."""
OF_THE_SCRAPE = re.compile(r"up|scrape_\w+")
WRITE_2 = "io.prometheus.write.v2.Request"


@contextmanager
def to_prometheus(way: Callable[..., Any], folder: Path, targets: Any, **options: Any) -> Iterator[Server]:
    """A way into a Prometheus."""
    with receiving_prometheus(folder) as store, way(folder, targets, store, **options):
        yield store


@contextmanager
def to_victoria_metrics(way: Callable[..., Any], folder: Path, targets: Any) -> Iterator[Server]:
    """A way into VictoriaMetrics."""
    with victoria_metrics(folder) as store, way(folder, targets, store):
        yield store


@contextmanager
def agent_with_remote_write_2(folder: Path, targets: Any) -> Iterator[Server]:
    """A Prometheus agent that writes the second version of remote write, which Prometheus 3 has."""
    prometheus_3()
    with to_prometheus(agent, folder, targets, message=WRITE_2) as store:
        yield store


@contextmanager
def otlp_to_prometheus(folder: Path, targets: Any, strategy: str = "") -> Iterator[Server]:
    """The collector by OTLP into Prometheus 3 with prometheus-otlp.yml."""
    otlp_prometheus()
    with receiving_prometheus(folder, otlp_config(strategy)) as store, by_otlp(folder, targets, store):
        yield store


@dataclass(frozen=True)
class Way:
    """A way from a scrape to a store."""

    start: Callable[..., Any]
    places: bool = True
    """Whether its scrape configuration derives role and rack."""
    more: tuple[tuple[str, str], ...] = ()
    """External labels."""
    apart: float = 0.0
    """The relative difference that the way makes: VictoriaMetrics keeps twelve digits, vmagent may differ in the last bit."""
    drops: frozenset[str] = frozenset()
    """Histograms that do not arrive: those of drivers have no count, and the collector's receiver drops them."""
    extra: frozenset[str] = frozenset()
    """Metrics that it adds to those of the target and of the scrape."""


REPLICA = (("replica", "a"),)
TWELVE_DIGITS = 1e-11
LAST_BIT = 1e-15
"""vmagent's own parser of numbers."""
WITHOUT_COUNT = frozenset(row.name for row in CATALOG if row.kind == HISTOGRAM and row.spellings)
WAYS = {
    "agent-prometheus": Way(lambda folder, targets: to_prometheus(agent, folder, targets), more=REPLICA),
    "agent-2-prometheus": Way(agent_with_remote_write_2, more=REPLICA),
    "agent-victoriametrics": Way(
        lambda folder, targets: to_victoria_metrics(agent, folder, targets), more=REPLICA, apart=TWELVE_DIGITS
    ),
    "vmagent-prometheus": Way(
        lambda folder, targets: to_prometheus(vmagent, folder, targets), places=False, apart=LAST_BIT
    ),
    "vmagent-victoriametrics": Way(
        lambda folder, targets: to_victoria_metrics(vmagent, folder, targets),
        places=False,
        apart=TWELVE_DIGITS,
    ),
    "collector-prometheus": Way(
        lambda folder, targets: to_prometheus(by_remote_write, folder, targets), drops=WITHOUT_COUNT
    ),
    "collector-victoriametrics": Way(
        lambda folder, targets: to_victoria_metrics(by_remote_write, folder, targets),
        apart=TWELVE_DIGITS,
        drops=WITHOUT_COUNT,
    ),
    "collector-otlp-prometheus": Way(
        otlp_to_prometheus, drops=WITHOUT_COUNT, extra=frozenset({"target_info"})
    ),
}


@dataclass(frozen=True)
class Arrived:
    """What arrived at the end of a way, and what was served at its beginning."""

    way: Way
    store: Server
    pages: Frozen

    def of(self, name: str) -> Values:
        """The samples of an instance in the store."""
        return self.store.values(f'{{__name__!="",instance="{name}"}}')

    def expected(self, name: str) -> Values:
        """The samples of its page with the labels of the target."""
        added = {"job": "roce", "instance": name, "cluster": CLUSTER, **dict(self.way.more)}
        if self.way.places:
            added |= PLACES[name]
        return {
            joined(labels, added): value
            for labels, value in self.pages.values(name).items()
            if name_of(labels).removesuffix("_bucket") not in self.way.drops
        }

    def wait(self) -> None:
        """Wait until every page was scraped and what must arrive of it is stored."""
        for name in self.pages.pages:
            wait_until(
                lambda name=name: (
                    self.store.values(f'up{{instance="{name}"}} == 1')
                    and len(self.of(name)) >= len(self.expected(name))
                ),
                f"the series of {name} are in the store",
            )


def bounds_as_numbers(values: Values) -> Values:
    """Buckets by the number of their bound: Prometheus 3 writes le="1.0" for our le="1"."""
    return {
        frozenset((key, str(float(text)) if key == "le" else text) for key, text in labels): value
        for labels, value in values.items()
    }


def joined(labels: Labels, added: dict[str, str]) -> Labels:
    """The labels of a series with those of its target, which win: `role` of a metric becomes `exported_role`."""
    kept = {f"exported_{key}" if key in added else key: text for key, text in labels}
    return frozenset((kept | added).items())


def name_of(labels: Labels) -> str:
    return dict(labels)["__name__"]
