"""Counters that `ethtool -S` printed on real machines: each has a series or a reason, with values computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from observed import exposition, observe, samples

from roce_exporter.recording.recorded import load_recording

FACTS = Path(__file__).parent / "facts"

DRIVERS = {
    "mlx5": "mlx5_core",
    "bnxt": "bnxt_en",
    "ice": "ice",
    "i40e": "i40e",
    "ena": "ena",
    "ionic": "ionic",
}


def record(folder: Path, capture: str) -> str:
    """Write a recorded host with one RDMA device over the captured network device; return its path."""
    (folder / "rdma").mkdir()
    (folder / "ethtool").mkdir()
    link = [{"ifindex": 0, "ifname": "dev0", "port": 1, "netdev": "eth0"}]
    (folder / "rdma/link.json").write_text(json.dumps(link))
    _, *lines = (FACTS / f"{capture}.ethtool.tsv").read_text().splitlines()
    printed = "".join("     {}: {}\n".format(*line.split("\t")) for line in lines)
    (folder / "ethtool/eth0.stats").write_text(f"NIC statistics:\n{printed}")
    (folder / "ethtool/eth0.driver").write_text(f"driver: {DRIVERS[capture]}\nversion: 6.12\n")
    return str(folder)


async def shown(folder: Path, capture: str) -> dict[str, str]:
    found = samples(await exposition(load_recording(record(folder, capture))))
    return {name: value for name, value in found.items() if not name.startswith("roce_exporter_")}


def series(metric: str, **labels: str) -> str:
    pairs = {"device": "dev0", "port": "1", "netdev": "eth0"} | labels
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in pairs.items()) + "}"


@pytest.mark.parametrize("capture", DRIVERS)
async def test_every_name_has_a_row_or_a_reason(tmp_path: Path, capture: str) -> None:
    exporter, _ = await observe(load_recording(record(tmp_path, capture)))
    assert exporter.normaliser.plans["dev0"].unmapped == ()


EXPECTED = {
    "mlx5": {
        series("roce_phy_receive_bytes_total"): "2202570777997",
        series("roce_phy_transmit_packets_total"): "896117891",
        series("roce_priority_transmit_bytes_total", priority="0"): "2662454044895",
        series("roce_global_pause_receive_frames_total"): "0",
        series("roce_global_pause_receive_seconds_total"): "0.0",
        series("roce_priority_receive_bytes_total", priority="3"): "0",
        series("roce_pcie_write_stalled_ratio"): "0.0",
        series("roce_link_down_events_total"): "0",
        series("roce_pfc_receive_frames_total", priority="3"): None,
    },
    "bnxt": {
        series("roce_phy_receive_discards_total"): "49337",
        series("roce_phy_receive_packets_total"): "662257056500",
        series("roce_phy_transmit_bytes_total"): "770394433789550",
        series("roce_phy_line_bytes_total"): "577687185962088.0",
        series("roce_buffer_threshold_passed_total"): "417",
        series("roce_pfc_receive_frames_total", priority="7"): "0",
        series("roce_pfc_transmit_pause_seconds_total", priority="0"): "0.0",
        series("roce_pfc_watchdog_trips_total"): "0",
        series("roce_pfc_receive_all_frames_total"): "0",
    },
    "ice": {
        series("roce_phy_receive_bytes_total"): "848255752",
        series("roce_phy_transmit_bytes_total"): "74057390445",
        series("roce_pfc_receive_xoff_frames_total", priority="3"): "0",
        series("roce_global_pause_transmit_xon_frames_total"): "0",
        series("roce_pfc_receive_pause_seconds_total", priority="3"): None,
        series("roce_pfc_receive_frames_total", priority="3"): None,
    },
    "i40e": {
        series("roce_phy_receive_bytes_total"): "30388004820195",
        series("roce_phy_transmit_bytes_total"): "55878809901817",
        series("roce_pfc_transmit_xoff_frames_total", priority="0"): "0",
        series("roce_phy_local_faults_total"): "0",
    },
    "ena": {
        series("roce_phy_receive_bytes_total"): None,
        series("roce_pfc_receive_frames_total", priority="3"): None,
    },
    "ionic": {
        series("roce_phy_receive_bytes_total"): "75542062581996",
        series("roce_phy_transmit_bytes_total"): "103623222172110",
        series("roce_phy_receive_packets_total"): "69867940032",
        series("roce_pfc_receive_all_frames_total"): "0",
        series("roce_priority_receive_packets_total", priority="7"): "0",
    },
}


@pytest.mark.parametrize("capture", EXPECTED)
async def test_series_have_the_values_computed_by_hand(tmp_path: Path, capture: str) -> None:
    found = await shown(tmp_path, capture)
    expected = EXPECTED[capture]
    assert {name: found.get(name) for name in expected} == expected
