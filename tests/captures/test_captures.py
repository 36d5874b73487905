"""What real machines reported, read as a recording and as a sysfs tree, against values computed by hand.

`facts/` holds the paths, names and values as tables; README.md lists where each was published.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from observed import exposition, samples

from roce_exporter.kernel.live import LiveKernel
from roce_exporter.recording.recorded import load_recording

FACTS = Path(__file__).parent / "facts"

IB = "sys/class/infiniband"

Files = dict[str, str]
"""Path below the recording, and content."""


def rows(name: str) -> list[list[str]]:
    """The lines of a table, without its header."""
    _, *lines = (FACTS / name).read_text().splitlines()
    return [line.split("\t") for line in lines]


def tree(name: str) -> Files:
    """The files below /sys/class/infiniband; those that the kernel refused to read are missing."""
    return {f"{IB}/{path}": f"{value}\n" for path, value in rows(f"{name}.sysfs.tsv")}


def statistics(name: str) -> Files:
    """What `rdma -j statistic` prints."""
    ports: dict[tuple[str, str], dict[str, object]] = {}
    for device, port, counter, value in rows(f"{name}.statistic.tsv"):
        named = ports.setdefault((device, port), {"ifindex": 0, "ifname": device, "port": int(port)})
        named[counter] = int(value)
    return {"rdma/statistic.json": json.dumps(list(ports.values()))}


def resources(devices: tuple[str, ...], **counts: int) -> Files:
    """What `rdma -j resource` prints, with the same counts for each device."""
    return {
        "rdma/resource.json": json.dumps(
            [{"ifindex": index, "ifname": name} | counts for index, name in enumerate(devices)]
        )
    }


def plant(root: Path, files: Files) -> None:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)


async def shown_as_recording(root: Path, files: Files) -> dict[str, str]:
    plant(root, files)
    return samples(await exposition(load_recording(str(root))))


async def shown_both_ways(root: Path, files: Files) -> dict[str, str]:
    """The samples, the same whether the files are a recording or the sysfs of this host."""
    recorded = await shown_as_recording(root, files)
    live = samples(await exposition(LiveKernel(str(root / "sys"))))
    assert live == recorded
    return recorded


def named(shown: dict[str, str], device: str, port: str = "1") -> dict[str, str]:
    """The values of one port by metric, of the metrics that have no other label."""
    end = f'{{device="{device}",port="{port}"}}'
    return {series.removesuffix(end): value for series, value in shown.items() if series.endswith(end)}


def assert_holds(shown: dict[str, str], expected: dict[str, int]) -> None:
    """Compared as text: 64-bit integers must not lose their last digits."""
    assert {name: shown.get(name) for name in expected} == {
        name: str(value) for name, value in expected.items()
    }


async def test_a_roce_lag_of_a_gpu_host(tmp_path: Path) -> None:
    shown = await shown_both_ways(tmp_path, tree("mlx5_bond_0_gpu_host"))
    port = named(shown, "mlx5_bond_0")
    assert_holds(
        port,
        {
            "roce_port_receive_bytes_total": 922159499729932,
            "roce_port_transmit_bytes_total": 921770677727356,
            "roce_port_receive_packets_total": 317548853677,
            "roce_port_transmit_packets_total": 315487941081,
            "roce_port_receive_unicast_packets_total": 317548853677,
            "roce_port_receive_errors_total": 14,
            "roce_port_receive_switch_relay_errors_total": 1,
            "roce_port_excessive_buffer_overruns_total": 15,
            "roce_port_transmit_wait_ticks_total": 2489603687,
            "roce_port_link_downed_total": 0,
            "roce_port_speed_bytes_per_second": 25000000000,
            "roce_port_state": 4,
            "roce_port_physical_state": 5,
            "roce_port_up": 1,
            "roce_write_requests_received_total": 3809045607,
            "roce_read_requests_received_total": 9187392,
            "roce_dct_connects_received_total": 422237,
            "roce_transport_adaptive_retransmits_total": 3,
            "roce_transport_out_of_sequence_total": 0,
            "roce_transport_icrc_errors_total": 0,
        },
    )
    assert "roce_cnp_sent_total" not in port, "this host has no congestion counters: absent is not 0"
    assert "roce_ecn_marked_packets_total" not in port
    assert shown['roce_exporter_unmapped_names{device="mlx5_bond_0"}'] == "0"
    assert shown['roce_exporter_read_errors_total{source="counters",device="mlx5_bond_0"}'] == "0"
    info = next(series for series in shown if series.startswith("roce_device_info"))
    assert 'firmware="32.38.3056",board="MT_0000000884",model="MT41692"' in info
    assert 'protocol="roce"' in info


async def test_a_roce_lag_that_telegraf_saw(tmp_path: Path) -> None:
    shown = await shown_both_ways(tmp_path, tree("mlx5_bond_0_telegraf"))
    port = named(shown, "mlx5_bond_0")
    assert_holds(
        port,
        {
            "roce_port_receive_bytes_total": 138400741012,
            "roce_port_transmit_bytes_total": 341515586352,
            "roce_port_receive_packets_total": 34914071,
            "roce_port_transmit_packets_total": 82002535,
            "roce_write_requests_received_total": 19000,
            "roce_read_requests_received_total": 6000,
            "roce_cnp_sent_total": 0,
            "roce_cnp_handled_total": 0,
            "roce_cnp_ignored_total": 0,
            "roce_ecn_marked_packets_total": 0,
        },
    )
    assert "roce_port_up" not in port, "telegraf did not send the state"
    assert shown['roce_exporter_unmapped_names{device="mlx5_bond_0"}'] == "0"


async def test_a_connectx_4_of_an_infiniband_host(tmp_path: Path) -> None:
    shown = await shown_both_ways(tmp_path, tree("mlx5_0_connectx_4"))
    assert_holds(
        named(shown, "mlx5_0"),
        {
            "roce_port_receive_bytes_total": 72505381512,
            "roce_port_transmit_bytes_total": 11523046035392,
            "roce_port_receive_packets_total": 541889824,
            "roce_port_transmit_packets_total": 10907922116,
            "roce_port_speed_bytes_per_second": 3125000000,
            "roce_transport_duplicate_requests_total": 41,
            "roce_transport_ack_timeouts_total": 131,
            "roce_transport_out_of_sequence_total": 1,
            "roce_transport_packet_sequence_errors_total": 1,
            "roce_transport_requester_completion_errors_total": 3481,
            "roce_transport_requester_flushed_completions_total": 80,
            "roce_transport_responder_completion_errors_total": 8109,
            "roce_transport_responder_flushed_completions_total": 4708,
            "roce_transport_adaptive_retransmits_total": 99,
            "roce_transport_adaptive_retransmit_timeouts_total": 4,
            "roce_transport_slow_restart_cnps_total": 131,
            "roce_read_requests_received_total": 175528982,
            "roce_write_requests_received_total": 742114,
        },
    )
    info = next(series for series in shown if series.startswith("roce_device_info"))
    assert 'protocol="ib"' in info
    assert 'node_guid="0a7f:bc12:45ef:d23b"' in info
    assert shown['roce_exporter_unmapped_names{device="mlx5_0"}'] == "0"


async def test_a_connectx_3_with_two_ports(tmp_path: Path) -> None:
    shown = await shown_both_ways(tmp_path, tree("mlx4_0_connectx_3"))
    for port, expected in (
        ("1", (8884894436, 106036453180, 87169372, 85734114, 3599)),
        ("2", (9841747136, 106161427560, 89332064, 88622850, 3846)),
    ):
        names = (
            "roce_port_receive_bytes_total",
            "roce_port_transmit_bytes_total",
            "roce_port_receive_packets_total",
            "roce_port_transmit_packets_total",
            "roce_port_transmit_wait_ticks_total",
        )
        assert_holds(named(shown, "mlx4_0", port), dict(zip(names, expected, strict=True)))
        assert f'roce_port_info{{device="mlx4_0",port="{port}",link_layer="InfiniBand",lag="false"}}' in shown
        assert "roce_port_receive_unicast_packets_total" not in named(shown, "mlx4_0", port)


async def test_omni_path_is_tolerated_and_labelled(tmp_path: Path) -> None:
    """No RoCE at all, and yet no reason to stumble: its ports count as ports do."""
    shown = await shown_both_ways(tmp_path, tree("hfi1_0_omni_path"))
    assert_holds(
        named(shown, "hfi1_0"),
        {
            "roce_port_receive_bytes_total": 1380366808104,
            "roce_port_transmit_bytes_total": 1094233306172,
            "roce_port_receive_packets_total": 638036947,
            "roce_port_transmit_packets_total": 568318856,
            "roce_port_speed_bytes_per_second": 12500000000,
            "roce_port_up": 1,
        },
    )
    assert 'roce_port_info{device="hfi1_0",port="1",link_layer="InfiniBand",lag="false"}' in shown
    info = next(series for series in shown if series.startswith("roce_device_info"))
    assert 'board="HPE 100Gb 1-port OP101 QSFP28 x16 PCIe Gen3 with Intel Omni-Path Adapter"' in info
    assert 'firmware="1.27.0"' in info
    assert shown['roce_exporter_source_up{source="counters",device="hfi1_0"}'] == "1"
    assert 'roce_exporter_source_up{source="hw_counters",device="hfi1_0"}' not in shown, "it has none"


async def test_not_available_gives_no_sample_and_is_no_error(tmp_path: Path) -> None:
    shown = await shown_both_ways(tmp_path, tree("i40iw0"))
    assert named(shown, "i40iw0") == {
        "roce_port_up": "1",
        "roce_port_state": "4",
        "roce_port_physical_state": "5",
        "roce_port_speed_bytes_per_second": "1250000000",
    }
    assert shown['roce_exporter_unreadable_values{source="counters",device="i40iw0"}'] == "17"
    assert shown['roce_exporter_read_errors_total{source="counters",device="i40iw0"}'] == "0"


async def test_soft_roce_of_a_6_12_kernel(tmp_path: Path) -> None:
    shown = await shown_both_ways(tmp_path, tree("rxe0_linux_6_12"))
    assert named(shown, "rxe0") == {
        "roce_port_up": "1",
        "roce_port_state": "4",
        "roce_port_physical_state": "5",
        "roce_port_speed_bytes_per_second": "1250000000",
        "roce_port_receive_packets_total": "0",
        "roce_port_transmit_packets_total": "0",
        "roce_port_transmit_errors_total": "0",
        "roce_port_link_downed_total": "0",
        "roce_transport_out_of_sequence_total": "0",
        "roce_transport_packet_sequence_errors_total": "0",
        "roce_transport_retries_total": "0",
        "roce_transport_retries_exceeded_total": "0",
        "roce_transport_duplicate_requests_total": "0",
        "roce_transport_deferred_acks_total": "0",
        "roce_transport_rnr_naks_received_total": "0",
        "roce_transport_rnr_naks_sent_total": "0",
        "roce_transport_rnr_retries_exceeded_total": "0",
        "roce_send_requests_received_total": "0",
        "roce_send_requests_sent_total": "0",
    }, "one series for each of the fifteen counters, none for lifespan, and the state"
    gids = [series for series in shown if series.startswith("roce_gid_info")]
    assert gids == [
        'roce_gid_info{device="rxe0",port="1",index="0",type="RoCE v2",netdev="veth0",address="fe80::b0f5:53ff:fe4b:62d5"}',
        'roce_gid_info{device="rxe0",port="1",index="1",type="RoCE v2",netdev="veth0",address="10.77.0.1"}',
    ], "the empty slots, whose type and netdev answer EINVAL, are left out"
    assert 'roce_port_info{device="rxe0",port="1",link_layer="Ethernet",netdev="veth0",lag="false"}' in shown


async def test_pollara_by_rdma_json(tmp_path: Path) -> None:
    shown = await shown_as_recording(tmp_path, statistics("ionic_pollara"))
    assert_holds(
        named(shown, "ionic_1"),
        {
            "roce_port_receive_bytes_total": 3087001744,
            "roce_port_transmit_bytes_total": 3489656928,
            "roce_port_receive_packets_total": 49221925,
            "roce_port_transmit_packets_total": 32852846,
            "roce_transport_duplicate_responses_total": 34,
            "roce_cnp_sent_total": 0,
            "roce_ecn_marked_packets_total": 0,
        },
    )
    assert shown["roce_exporter_devices"] == "3"
    for device in ("ionic_1", "rocep68s0", "rocep132s0"):
        assert shown[f'roce_exporter_unmapped_names{{device="{device}"}}'] == "0"
        assert len(named(shown, device)) == len(named(shown, "ionic_1"))


async def test_soft_roce_after_retransmissions_by_rdma_json(tmp_path: Path) -> None:
    objects = {"pd": 2, "cq": 2, "qp": 2, "cm_id": 0, "mr": 1, "ctx": 1, "srq": 0}
    files = statistics("rxe_linux_6_12") | resources(("rxe0", "rxe1"), **objects)
    shown = await shown_as_recording(tmp_path, files)
    assert_holds(
        named(shown, "rxe0"),
        {
            "roce_port_transmit_packets_total": 112682,
            "roce_port_receive_packets_total": 19322,
            "roce_transport_rnr_naks_received_total": 58,
            "roce_transport_packet_sequence_errors_total": 19,
            "roce_transport_deferred_acks_total": 18900,
            "roce_transport_retries_total": 787,
            "roce_port_link_downed_total": 1,
            "roce_send_requests_sent_total": 2713,
            "roce_send_requests_received_total": 112,
        },
    )
    assert_holds(
        named(shown, "rxe1"),
        {
            "roce_transport_duplicate_requests_total": 660,
            "roce_transport_out_of_sequence_total": 138,
            "roce_transport_rnr_naks_sent_total": 58,
            "roce_port_receive_packets_total": 30874,
        },
    )
    for device in ("rxe0", "rxe1"):
        assert_holds(
            shown,
            {f'roce_resource_{kind}{{device="{device}"}}': count for kind, count in objects.items()},
        )


@pytest.mark.parametrize(
    "name",
    [
        "mlx5_bond_0_gpu_host",
        "mlx5_bond_0_telegraf",
        "mlx5_0_connectx_4",
        "mlx4_0_connectx_3",
        "hfi1_0_omni_path",
        "i40iw0",
    ],
)
async def test_as_many_counters_as_files(name: str, tmp_path: Path) -> None:
    """Every counter file that holds a number becomes one series, and every series has such a file."""
    files = tree(name)
    numbers = [
        place
        for place, content in files.items()
        if re.search(r"/(hw_)?counters/(?!lifespan)", place) and content.strip().isdecimal()
    ]
    shown = await shown_both_ways(tmp_path, files)
    counters = [series for series in shown if re.match(r"roce_(?!exporter).*_total\{", series)]
    assert len(counters) == len(numbers)
