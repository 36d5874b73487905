"""FEC of a port: the kernel's bins become a Prometheus histogram, those of lanes stay unchanged."""

from __future__ import annotations

from roce_exporter.exposition import Format, Renderer
from roce_exporter.model import Device, DeviceReadings, Port, Reading
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.sources.fec import fec_numbers

KERNEL = {
    "uncorrectable_blocks": 4,
    "fec_symbols_err_0": 445,
    "fec_symbols_err_0_lane_0": 345,
    "fec_symbols_err_0_lane_1": 100,
    "fec_symbols_err_1_to_3": 12,
    "fec_symbols_err_4_to_15": 2,
}


def test_bins_of_the_port_add_up_and_totals_stay() -> None:
    assert fec_numbers(KERNEL) == {
        "uncorrectable_blocks": 4,
        "codewords_le_0": 445,
        "codewords_le_3": 457,
        "codewords_le_15": 459,
        "codewords_le_+Inf": 459,
        "lane_0_codewords_0_to_0": 345,
        "lane_1_codewords_0_to_0": 100,
    }


def test_without_bins_there_is_no_histogram() -> None:
    assert fec_numbers({"corrected_blocks": 123}) == {"corrected_blocks": 123}


def test_the_exposition_has_buckets_in_their_order() -> None:
    numbers = fec_numbers(KERNEL)
    device = Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet"),))
    reading = Reading("fec", "mlx5_0", 1, tuple(numbers), tuple(numbers.values()), (), "eth0")
    normaliser = Normaliser()
    samples = normaliser.normalise(DeviceReadings(device, (reading,)))
    text = Renderer().render((samples,), Format.OPENMETRICS).decode()
    where = 'device="mlx5_0",port="1",netdev="eth0"'
    assert [
        line
        for line in text.splitlines()
        if line.startswith(("roce_phy_fec_codeword_", "roce_phy_fec_lane_"))
    ] == [
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="0"}} 445',
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="3"}} 457',
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="15"}} 459',
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="+Inf"}} 459',
        f'roce_phy_fec_lane_codewords_total{{{where},lane="0",low="0",high="0"}} 345',
        f'roce_phy_fec_lane_codewords_total{{{where},lane="1",low="0",high="0"}} 100',
    ]
    assert normaliser.plans["mlx5_0"].unmapped == ()
