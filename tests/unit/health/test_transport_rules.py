"""Rules about the transport: silence, loss, refusals, and who erred. Counts of faults as in ten that were injected into real cards."""

import pytest
from health_history import causes, history, only

from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.diagnosis import diagnose

T = "roce_transport_"
CLEAN = {f"{T}packet_sequence_errors_total": 0, f"{T}out_of_sequence_total": 0, f"{T}implied_naks_total": 0}
FAILED_REQUEST = {f"{T}requester_completion_errors_total": [0, 1]}


def rises(**amounts: float) -> dict[str, list[float]]:
    """Counters that rose by this much."""
    return {f"{T}{name}_total": [100, 100 + amount] for name, amount in amounts.items()}


def test_a_peer_that_ends_is_silent_and_no_packet_is_lost() -> None:
    """Measured: a queue pair whose peer was killed makes six timeouts, and then gives up."""
    fault = only(diagnose(history(CLEAN | FAILED_REQUEST | rises(ack_timeouts=6, retries_exceeded=1))))
    assert (fault.check, fault.side) == ("retries_exceeded", Side.PEER)
    assert "1 queue pair gave up within 60 s" in fault.evidence
    assert any("no packet is seen to get lost" in line for line in fault.evidence)
    assert fault.against == ("a path that is cut completely looks the same from here",)


DIRTY = {"roce_phy_receive_crc_errors_total": [0, 7]}


@pytest.mark.parametrize(
    ("series", "found"),
    [
        # Silence with loss is the fabric.
        (
            CLEAN | FAILED_REQUEST | rises(ack_timeouts=6, retries_exceeded=1, packet_sequence_errors=9),
            [("retries_exceeded", Side.FABRIC)],
        ),
        # Silence after a lost link is the link.
        (
            CLEAN | rises(retries_exceeded=1) | {"roce_netdev_carrier_down_total": [0, 1]},
            [("link_interrupted", Side.LINK), ("retries_exceeded", Side.LINK)],
        ),
        # A module that the driver has refused explains the link that stays down.
        (
            {"roce_port_up": [1, 0], "roce_kernel_log_events_total{event=module_power_insufficient}": [0, 1]},
            [("power_insufficient", Side.HOST), ("link_down", Side.LINK)],
        ),
        ({"roce_admin_commands_lost_total": [0, 1]}, [("driver_not_responding", Side.HOST)]),
        # A few timeouts are no fault.
        (CLEAN | rises(ack_timeouts=3), []),
        (CLEAN | rises(ack_timeouts=4), [("ack_timeouts", Side.PEER)]),
        # A receiver that is never ready is the peer.
        (
            FAILED_REQUEST | rises(rnr_naks_received=1, rnr_retries_exceeded=1),
            [("receiver_not_ready", Side.PEER)],
        ),
        # A receiver without requests is this host.
        ({"roce_out_of_buffer_total": [0, 1]}, [("receive_queue_empty", Side.HOST)]),
        ({"roce_out_of_buffer_total": [0, 1], "roce_port_receive_packets_total": [0, 100_000]}, []),
        # Requests that the peer refused, and one that this host refused.
        (FAILED_REQUEST | rises(requester_remote_access_errors=1), [("requests_refused", Side.HOST)]),
        (FAILED_REQUEST | rises(requester_remote_invalid_requests=1), [("requests_refused", Side.HOST)]),
        (rises(responder_remote_access_errors=1), [("peer_requests_refused", Side.PEER)]),
        # Measured: a wrong length, a wrong local key and a flushed queue pair only count a completion with an error.
        (FAILED_REQUEST, [("local_errors", Side.HOST)]),
        (rises(write_request_errors=18), [("local_errors", Side.HOST)]),
        # Flushed completions are no errors of programs.
        (FAILED_REQUEST | rises(requester_flushed_completions=1), []),
        # Loss at this port is not loss in the fabric.
        (rises(packet_sequence_errors=100), [("packet_loss", Side.FABRIC)]),
        (
            rises(packet_sequence_errors=100) | {"roce_phy_receive_crc_errors_total": [0, 50]},
            [("crc_errors", Side.LINK), ("packet_loss", Side.LINK)],
        ),
        (
            rises(out_of_sequence=100) | {"roce_phy_receive_discards_total": [0, 50]},
            [("port_drops", Side.HOST)],
        ),
        # Drops on receipt do not explain losses of sent packets.
        (
            rises(packet_sequence_errors=100) | {"roce_phy_receive_discards_total": [0, 50]},
            [("port_drops", Side.HOST), ("packet_loss", Side.FABRIC)],
        ),
        # What fails the link's own checksum is dropped before the invariant one is seen.
        (rises(icrc_errors=1) | DIRTY, [("crc_errors", Side.LINK), ("corruption", Side.FABRIC)]),
    ],
)
def test_facts_lead_to_causes_and_sides(series, found) -> None:
    findings = diagnose(history(series)).findings
    assert [(fault.check, fault.side) for fault in findings] == found


def test_a_receiver_that_is_never_ready_leaves_the_port_healthy() -> None:
    series = FAILED_REQUEST | rises(rnr_naks_received=1, rnr_retries_exceeded=1)
    assert only(diagnose(history(series))).status == Status.OK


LOST = "packet_sequence_errors"


@pytest.mark.parametrize(
    ("lost", "packets", "found"),
    [
        (0, 1e6, []),
        (10, 1e6, []),  # 1e-5 of 16,667 packets per second
        (11, 1e6, ["packet_loss"]),
        (9, 100, []),  # too few to mean anything
        (10, 100, ["packet_loss"]),
        (10, 20_000, []),  # few packets need a larger share
        (10, None, ["packet_loss"]),
    ],
)
def test_loss_is_a_share_of_the_packets(lost, packets, found) -> None:
    passed = {} if packets is None else {"roce_port_transmit_packets_total": [0, packets]}
    assert causes(diagnose(history(rises(**{LOST: lost}) | passed))) == found


def test_corruption_behind_a_clean_link_is_the_fabric() -> None:
    clean = {"roce_phy_receive_crc_errors_total": 7}
    fault = only(diagnose(history(rises(icrc_errors=1) | clean)))
    assert (fault.check, fault.side) == ("corruption", Side.FABRIC)
    assert "the link's own checksum is clean" in fault.evidence


SILENT = {"roce_transport_ack_timeouts_total": [0, 30], "roce_transport_retries_exceeded_total": [0, 2]}


@pytest.mark.parametrize(
    ("series", "said"),
    [
        (
            {
                "roce_probe_pair_lost_total{peer=10.0.0.7,source_port=49152}": [0, 12],
                "roce_probe_pair_sent_total{peer=10.0.0.7,source_port=49152}": [0, 12],
            },
            "probes to 10.0.0.7 are not answered (12 of 12 lost)",
        ),
        (
            {
                "roce_owner_connections{owner=nvmf,peer=10.0.0.9}": [4, None],
                "roce_owner_connections{owner=nvmf,peer=10.0.0.8}": 4,
                "roce_owner_connections{owner=nvmf,peer=10.0.0.6}": 4,
            },
            "connections of nvmf to 10.0.0.9 ended meanwhile",
        ),
        (
            {"roce_owner_connections{owner=nvmf,peer=10.0.0.8}": 4},
            "the only peer with connections of RDMA-CM is 10.0.0.8",
        ),
        (
            {"roce_owner_transport_ack_timeouts_total{owner=train/worker-0}": [0, 30]},
            "train/worker-0: 30 acknowledgement timeouts within 60 s",
        ),
    ],
)
def test_a_silent_peer_is_named_where_it_is_known(series, said) -> None:
    fault = next(
        one for one in diagnose(history({**SILENT, **series})).findings if one.check == "retries_exceeded"
    )
    assert [one for one in fault.evidence if "10.0.0" in one or "worker" in one] == [said]


def test_probes_that_are_mostly_answered_name_no_peer() -> None:
    lost = {
        "roce_probe_pair_lost_total{peer=10.0.0.7,source_port=49152}": [0, 3],
        "roce_probe_pair_sent_total{peer=10.0.0.7,source_port=49152}": [0, 12],
    }
    assert not any(
        "10.0.0.7" in said for one in diagnose(history({**SILENT, **lost})).findings for said in one.evidence
    )


def test_the_place_of_a_port_has_its_rail_and_its_switch_port() -> None:
    known = {
        "roce_probe_port_info{address=10.0.0.1,host=gpu-7,rack=r12,rail=3}": 1,
        "roce_netdev_info{mac=02:00:00:00:00:07,hostname=gpu-7}": 1,
        "roce_switch_lldp_neighbor_info{device=leaf-07,port=Ethernet48,neighbor_mac=02:00:00:00:00:07}": 1,
        "roce_switch_lldp_neighbor_info{device=leaf-08,port=Ethernet4,neighbor_mac=02:00:00:00:00:99}": 1,
    }
    fault = diagnose(history({**SILENT, **known})).findings[0]
    assert fault.place == "rail 3, rack r12, switch leaf-07 Ethernet48"


def test_what_iwarp_sends_again_is_lost() -> None:
    """RoCE by go-back-N sends a hundred packets again for one that is lost, TCP that one."""
    again = {
        "roce_transport_retransmitted_packets_total": [0, 500],
        "roce_port_transmit_packets_total": [0, 1e6],
    }
    assert causes(diagnose(history(again))) == []
    iwarp = again | {"roce_device_info": None, "roce_device_info{protocol=iw}": 1.0}
    assert causes(diagnose(history(iwarp)))[0] == "packet_loss"


@pytest.mark.parametrize(
    ("last", "received", "side"), [(2, 0, Side.PEER), (7, 0, Side.HOST), (7, 65_000, Side.PEER)]
)
def test_calm_siblings_name_a_card_only_if_it_is_seen_to_go_on_and_receives_little(
    last, received, side
) -> None:
    """A moment each 65 s: what begins and ends somewhere within two neighbouring intervals can have taken one minute."""
    series: dict[str, object] = {"roce_device_info": None}
    for card in range(4):
        device = f"{{device=mlx5_{card}}}"
        series |= {
            f"roce_device_info{{device=mlx5_{card},model=x}}": 1,
            f"roce_port_info{device}": 1,
            f"roce_port_up{device}": 1,
            f"roce_port_transmit_packets_total{device}": [65_000 * place for place in range(11)],
            f"roce_port_receive_packets_total{device}": [
                (65_000 if card else received) * place for place in range(11)
            ],
            f"{T}retries_exceeded_total{device}": [
                0 if card else min(max(place - 3, 0), last) for place in range(11)
            ],
        }
    fault = only(diagnose(history(series, seconds=650, moments=11)))
    assert (fault.check, fault.side) == ("retries_exceeded", side)
    doubt = "this card is at fault if it gives up towards several peers"
    assert (doubt in fault.against) == (last > 2 and side is Side.PEER)
