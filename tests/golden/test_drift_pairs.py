"""One host, recorded under an old and a new kernel, is the same series with the same values.

The recordings `drift-*-6.12` and `drift-*-7.3` are one machine each with the same counts; only the kernel's names
differ. Values that a kernel cannot report at all are listed here by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from observed import observe, samples

from roce_exporter.exposition import Format
from roce_exporter.recording.recorded import load_recording

RECORDINGS = Path(__file__).parent.parent / "recordings"


class Pair(NamedTuple):
    """Metrics that only the old kernel has, and those that only the new one has."""

    gone: set[str]
    new: set[str]


PACING = {f"roce_doorbell_pacing_{what}_total" for what in ("alerts", "completions", "reschedules")}
UNICAST = {f"roce_port_{way}_unicast_packets_total" for way in ("receive", "transmit")}
PAIRS = {
    "bnxt": Pair(gone=PACING, new=UNICAST),
    "irdma": Pair(gone=set(), new=set()),
    "rxe": Pair(gone=set(), new={f"roce_port_{way}_bytes_total" for way in ("receive", "transmit")}),
}

OF_EXPORTER = ("roce_exporter_", "process_", "python_")


async def shown(host: str) -> dict[str, str]:
    exporter, (observation,) = await observe(load_recording(str(RECORDINGS / host)), 1)
    found = samples(exporter.render(observation, Format.TEXT))
    return {series: value for series, value in found.items() if not series.startswith(OF_EXPORTER)}


def metric(series: str) -> str:
    return series.partition("{")[0]


@pytest.mark.parametrize("host", PAIRS)
async def test_the_old_and_the_new_kernel_yield_the_same_series(host: str) -> None:
    old, new = await shown(f"drift-{host}-6.12"), await shown(f"drift-{host}-7.3")
    assert {metric(series) for series in old.keys() - new.keys()} == PAIRS[host].gone
    assert {metric(series) for series in new.keys() - old.keys()} == PAIRS[host].new
    assert len(old.keys() & new.keys()) > 12
    assert {series: old[series] for series in old.keys() & new.keys()} == {
        series: new[series] for series in old.keys() & new.keys()
    }


async def test_broadcoms_own_driver_yields_them_too() -> None:
    """Its nine counters that are never written are not included."""
    of_kernel, own = await shown("drift-bnxt-7.3"), await shown("drift-bnxt-own")
    data = {
        f"roce_port_{way}_data_{unit}_total"
        for way in ("receive", "transmit")
        for unit in ("bytes", "packets")
    }
    assert {metric(series) for series in of_kernel.keys() - own.keys()} == UNICAST | data
    assert {metric(series) for series in own.keys() - of_kernel.keys()} == PACING
    assert not [
        series for series in own if "slow_restart" in series or "icrc" in series or "ignored" in series
    ]


async def test_the_counters_of_a_pma_with_zeros_are_not_shown() -> None:
    found = {metric(series) for series in await shown("drift-bnxt-7.3")}
    assert not found & {
        "roce_port_symbol_errors_total",
        "roce_port_transmit_wait_ticks_total",
        "roce_port_link_downed_total",
        "roce_port_receive_constraint_errors_total",
    }


async def test_pollaras_current_firmware_shows_the_main_error_counters() -> None:
    """Timeouts and retransmissions, before connections fail."""
    found = await shown("drift-ionic")
    port = 'device="ionic_0",port="1"'
    assert found[f"roce_transport_ack_timeouts_total{{{port}}}"] == "1547"
    assert found[f"roce_transport_retransmitted_packets_total{{{port}}}"] == "173663"
    assert found[f"roce_transport_retransmitted_bytes_total{{{port}}}"] == "711324104"
    assert found[f"roce_transport_retries_exceeded_total{{{port}}}"] == "2"
    assert {metric(series) for series in found} >= {
        "roce_collective_ack_timeouts_total",
        "roce_collective_retransmitted_packets_total",
        "roce_collective_out_of_sequence_total",
        "roce_port_receive_discards_total",
    }


async def test_a_mlx4_without_sysfs_is_recognised_by_its_network_driver() -> None:
    found = await shown("drift-mlx4")
    assert (
        found['roce_pfc_receive_frames_total{device="mlx4_0",port="1",netdev="ens2",priority="3"}'] == "204"
    )
