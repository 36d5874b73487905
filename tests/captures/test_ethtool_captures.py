"""What `ethtool -S` printed on real machines: every name is a series or left out with a reason, by hand-worked numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from observed import exposition, observe, samples

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.recording.recorded import load_recording

CAPTURES = Path(__file__).parents[3] / "shared/captures/ethtool"

pytestmark = pytest.mark.skipif(not CAPTURES.exists(), reason="no captures beside the checkout")

DRIVERS = {
    "ethq_mlx5_core": "mlx5_core",
    "ethq_bnxt_en": "bnxt_en",
    "ethq_ice": "ice",
    "ethq_i40e": "i40e",
    "ethq_ena": "ena",
    "ionic_enp132s0": "ionic",
    "ionic_enp132s0v0": "ionic",
}


def record(folder: Path, capture: str) -> str:
    """A recorded host with one RDMA device over the network device that the capture is of."""
    (folder / "rdma").mkdir()
    (folder / "ethtool").mkdir()
    link = [{"ifindex": 0, "ifname": "dev0", "port": 1, "netdev": "eth0"}]
    (folder / "rdma/link.json").write_text(json.dumps(link))
    (folder / "ethtool/eth0.stats").write_text((CAPTURES / f"{capture}.txt").read_text())
    (folder / "ethtool/eth0.driver").write_text(f"driver: {DRIVERS[capture]}\nversion: 6.12\n")
    return str(folder)


async def shown(folder: Path, capture: str) -> dict[str, str]:
    found = samples(await exposition(load_recording(record(folder, capture))))
    return {name: value for name, value in found.items() if not name.startswith("roce_exporter_")}


def series(metric: str, **labels: str) -> str:
    pairs = {"device": "dev0", "port": "1", "netdev": "eth0"} | labels
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in pairs.items()) + "}"


@pytest.mark.parametrize("capture", DRIVERS)
async def test_no_name_is_without_a_row_or_a_reason(tmp_path: Path, capture: str) -> None:
    exporter, _ = await observe(load_recording(record(tmp_path, capture)))
    assert exporter.normaliser.plans["dev0"].unmapped == ()


EXPECTED = {
    "ethq_mlx5_core": {
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
    "ethq_bnxt_en": {
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
    "ethq_ice": {
        series("roce_phy_receive_bytes_total"): "848255752",
        series("roce_phy_transmit_bytes_total"): "74057390445",
        series("roce_pfc_receive_xoff_frames_total", priority="3"): "0",
        series("roce_global_pause_transmit_xon_frames_total"): "0",
        series("roce_pfc_receive_pause_seconds_total", priority="3"): None,
        series("roce_pfc_receive_frames_total", priority="3"): None,
    },
    "ethq_i40e": {
        series("roce_phy_receive_bytes_total"): "30388004820195",
        series("roce_phy_transmit_bytes_total"): "55878809901817",
        series("roce_pfc_transmit_xoff_frames_total", priority="0"): "0",
        series("roce_phy_local_faults_total"): "0",
    },
    "ethq_ena": {
        series("roce_phy_receive_bytes_total"): None,
        series("roce_pfc_receive_frames_total", priority="3"): None,
    },
    "ionic_enp132s0": {
        series("roce_phy_receive_bytes_total"): "75542062581996",
        series("roce_phy_transmit_bytes_total"): "103623222172110",
        series("roce_phy_receive_packets_total"): "69867940032",
        series("roce_pfc_receive_all_frames_total"): "0",
        series("roce_priority_receive_packets_total", priority="7"): "0",
    },
    "ionic_enp132s0v0": {
        series("roce_phy_receive_bytes_total"): "75542062592239",
    },
}


@pytest.mark.parametrize("capture", EXPECTED)
async def test_the_series_are_those_worked_out_by_hand(tmp_path: Path, capture: str) -> None:
    found = await shown(tmp_path, capture)
    expected = EXPECTED[capture]
    assert {name: found.get(name) for name in expected} == expected


NAME_LISTS = {"Pollara": "ionic", "Thor2": "bnxt_re", "Cx7": "mlx5"}


def test_the_name_lists_of_three_vendors_map_completely() -> None:
    dialect, lost, seen = "", [], 0
    for line in (CAPTURES / "stat_names_thor2_pollara_cx7.txt").read_text().split():
        for vendor, name in NAME_LISTS.items():
            if line.startswith(vendor):
                dialect = name
        if line.islower() and "_" in line and not line.endswith("_regex"):
            seen += 1
            if not (INDEX.claimed(dialect, ETHTOOL, line) or INDEX.left_out(dialect, ETHTOOL, line)):
                lost.append((dialect, line))
    assert lost == []
    assert seen > 200
