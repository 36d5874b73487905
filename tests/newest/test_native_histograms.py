"""Prometheus 3 stores our classic histograms as native histograms with custom buckets if configured to convert them."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import servers
from recorded import recording
from waiting import wait_until

RECORDING = recording("mlx5-7.3")


class Prometheus(servers.Running):
    """A Prometheus 3 that scrapes the same exporters twice: as job `classic`, and as job `native`."""

    def wait_for(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression as soon as it has some."""
        return wait_until(lambda: self.query(expression))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("native")
    with ExitStack() as running:
        targets = [
            running.enter_context(servers.exporter(place, "--metrics.set=full", *flags)).address
            for place, *flags in (
                (folder, "--host.simulate=pfc-storm", "--sampler.mode=fixed"),
                (folder / "recorded", f"--host.recording={RECORDING}"),
            )
        ]
        jobs = [
            {
                "job_name": job,
                "convert_classic_histograms_to_nhcb": job == "native",
                "static_configs": [{"targets": targets}],
            }
            for job in ("classic", "native")
        ]
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}
        flag = "--enable-feature=native-histograms"
        found = running.enter_context(servers.prometheus(folder, config, flag))
        yield Prometheus(found.process, found.address, found.log_file)


EPISODES = "roce_pfc_pause_episode_seconds"
WHERE = "on (instance, netdev, priority, direction)"


def test_pause_episodes_are_native_histograms_that_agree_with_the_classic_ones(prometheus) -> None:
    """Count, sum and the share below a bound: the same in both forms, at one moment without a pause between the scrapes."""
    count = f'histogram_count({EPISODES}{{job="native"}}) == {WHERE} {EPISODES}_count{{job="classic"}}'
    total = f'histogram_sum({EPISODES}{{job="native"}}) == {WHERE} {EPISODES}_sum{{job="classic"}}'
    fast = (
        f'round(histogram_fraction(0, 0.4, {EPISODES}{{job="native"}}) * histogram_count({EPISODES}{{job="native"}})) '
        f'== {WHERE} {EPISODES}_bucket{{job="classic", le="0.4"}}'
    )
    assert prometheus.wait_for(f"({count} > 0) and {WHERE} ({total}) and {WHERE} ({fast})")


def test_native_buckets_are_ours_and_classic_series_are_not_stored(prometheus) -> None:
    (found, *_) = prometheus.wait_for(f'{EPISODES}{{job="native"}} and histogram_count({EPISODES}) > 0')
    uppers = {float(upper) for _, _, upper, _ in found["histogram"][1]["buckets"]}
    assert uppers <= {
        0.0001,
        0.00025,
        0.0005,
        0.001,
        0.0025,
        0.005,
        0.01,
        0.025,
        0.05,
        0.1,
        0.2,
        0.4,
        1,
        2.5,
        5,
    } | {float("inf")}
    assert prometheus.query(f'{EPISODES}_bucket{{job="native"}}') == []


def test_a_quantile_is_the_same_in_both_forms(prometheus) -> None:
    native = f'histogram_quantile(0.5, {EPISODES}{{job="native"}})'
    classic = f'histogram_quantile(0.5, {EPISODES}_bucket{{job="classic"}})'
    assert prometheus.wait_for(f"abs({native} - {WHERE} {classic}) < 0.001")


def test_an_fec_histogram_without_a_sum_is_converted_too(prometheus) -> None:
    (count,) = prometheus.wait_for('histogram_count(roce_phy_fec_codeword_errors{job="native"})')
    assert float(count["value"][1]) == 9982172523
