"""What other settings of the collector and of Prometheus do to names and labels: why the shipped files set what they set."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from deploy_exposition import (
    CATALOGUE,
    Values,
    catalogue,
    frozen,
)
from deploy_paths import (
    by_otlp,
    by_remote_write,
    otlp_config,
    otlp_prometheus,
    prometheus_3,
    receiving_prometheus,
    write_targets,
)
from deploy_tools import wait_until
from deploy_ways import OF_THE_SCRAPE, Arrived, Way, name_of, to_prometheus

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import HISTOGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from deploy_servers import Server

pytestmark = pytest.mark.nightly

# ---- what other settings would do


@contextmanager
def catalogue_through(way: Callable[[Path, Any], Any], folder: Path) -> Iterator[Arrived]:
    with frozen({CATALOGUE: catalogue()}) as given, way(folder, given.targets()) as store:
        wait_until(lambda: store.values("up == 1"), "a scrape is in the store")
        found = Arrived(Way(way), store, given)
        wait_until(lambda: len(found.of(CATALOGUE)) >= len(CATALOG), "the series are in the store")
        yield found


def renamed(found: Arrived) -> dict[str, str]:
    """Our metrics that have another name at the end, with that name: found by the value, which is unique but for buckets."""
    served = by_value(found.pages.values(CATALOGUE))
    stored = by_value(found.of(CATALOGUE))
    return {name: stored.get(value, "") for value, name in served.items() if stored.get(value) != name}


def by_value(values: Values) -> dict[float, str]:
    names = ((value, name_of(labels)) for labels, value in values.items())
    return {
        value: name
        for value, name in names
        if not name.endswith("_bucket") and not OF_THE_SCRAPE.fullmatch(name)
    }


SETTING = "exporters::prometheus_remote_write::"


def with_settings(*settings: str) -> Callable[[Path, Any], Any]:
    """The collector by remote write, with other settings than the shipped ones."""
    return lambda folder, targets: to_prometheus(by_remote_write, folder, targets, settings=settings)


def test_remote_write_without_suffixes_keeps_names(tmp_path: Path) -> None:
    strategy = f"{SETTING}translation_strategy: UnderscoreEscapingWithoutSuffixes"
    with catalogue_through(with_settings(strategy), tmp_path) as found:
        assert renamed(found) == {}


def test_remote_write_with_suffixes_renames(tmp_path: Path) -> None:
    """The default adds a unit that is not one word of the name."""
    strategy = f"{SETTING}translation_strategy: UnderscoreEscapingWithSuffixes"
    with catalogue_through(with_settings(strategy), tmp_path) as found:
        assert "roce_port_speed_bytes_per_second" in renamed(found)


def test_trimmed_suffixes_lose_what_names_say(tmp_path: Path) -> None:
    """`trim_metric_suffixes` of the receiver: no _total, no units."""
    with catalogue_through(
        with_settings("receivers::prometheus::trim_metric_suffixes: true"), tmp_path
    ) as found:
        lost = renamed(found)
    assert lost["roce_port_receive_bytes_total"] == "roce_port_receive"


def test_scope_labels_would_name_the_version_of_the_collector(tmp_path: Path) -> None:
    with catalogue_through(with_settings(f"{SETTING}disable_scope_info: false"), tmp_path) as found:
        labels = {key for one in found.of(CATALOGUE) for key, _ in one}
    assert labels >= {"otel_scope_name", "otel_scope_version"}


@pytest.mark.parametrize("scheme", ["underscores", "dots", "values", "allow-utf-8"])
def test_prometheus_3_scrapes_the_same_names_with_every_escaping(tmp_path: Path, scheme: str) -> None:
    """The scraper says in its Accept header how names beyond ASCII are to be escaped; ours have none."""
    prometheus_3()
    with frozen({CATALOGUE: catalogue()}) as given:
        place = write_targets(tmp_path, given.targets())
        job = {"job_name": "roce", "file_sd_configs": [{"files": [str(place)]}]}
        job |= {"metric_name_escaping_scheme": scheme, "scrape_interval": "1s", "scrape_timeout": "1s"}
        with receiving_prometheus(tmp_path, {"scrape_configs": [job]}) as store:
            wait_until(lambda: store.values("up == 1"), "a scrape is in the store")
            found = Arrived(Way(catalogue_through), store, given)
            assert renamed(found) == {}


# ---- native histograms


NATIVE = "--enable-feature=native-histograms"
"""Before 3.8 Prometheus stores native histograms only with this flag."""


@contextmanager
def native_by_otlp(folder: Path, targets: Any) -> Iterator[Server]:
    """Prometheus makes native histograms of what it receives by OTLP."""
    otlp_prometheus()
    config = otlp_config()
    config["otlp"]["convert_histograms_to_nhcb"] = True
    with receiving_prometheus(folder, config, NATIVE) as store, by_otlp(folder, targets, store):
        yield store


@contextmanager
def native_by_remote_write(folder: Path, targets: Any) -> Iterator[Server]:
    """The collector makes native histograms."""
    setting = (f"{SETTING}convert_explicit_histograms_to_nhcb: true",)
    with (
        receiving_prometheus(folder, None, NATIVE) as store,
        by_remote_write(folder, targets, store, settings=setting),
    ):
        yield store


@pytest.mark.parametrize("way", [native_by_otlp, native_by_remote_write], ids=["otlp", "remote-write"])
def test_histograms_become_native_with_the_same_counts(tmp_path: Path, way: Callable[..., Any]) -> None:
    """With custom buckets; the classic series are not stored then."""
    prometheus_3()
    with frozen({CATALOGUE: catalogue()}) as given, way(tmp_path, given.targets()) as store:
        wait_until(lambda: store.values('roce_port_up{job="roce"}'), "a scrape is in the store")
        served = {name_of(labels): value for labels, value in given.values(CATALOGUE).items()}
        for row in CATALOG:
            if row.kind == HISTOGRAM and not row.spellings:
                (count,) = store.values(f"histogram_count({row.name})").values()
                (total,) = store.values(f"histogram_sum({row.name})").values()
                assert {f"{row.name}_count": count, f"{row.name}_sum": total}.items() <= served.items()
        assert store.values('{__name__=~"roce_.+_bucket"}') == {}
