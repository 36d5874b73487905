"""Rules about the transport: silence, loss, refusals, and who erred. Counts of faults as in ten that were injected into real cards."""

import pytest
from health_history import causes, history, only, rows_of, shown

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


FAULTS = """
reactions alone, which GPU-initiated queue pairs leave = cnp_handled_total 0 10; transport_slow_restart_cnps_total 0 => retransmissions_uncounted@peer: 10 reactions to congestion within 60 s on a port that sends next to nothing: no timeout and no retransmission of a queue pair that the port counts: but what this port sent meanwhile is not seen
the same on a port that sends = cnp_handled_total 0 10; transport_slow_restart_cnps_total 0; port_transmit_packets_total 0 900 =>
reactions that it made for queue pairs that it counts = cnp_handled_total 0 10; transport_slow_restart_cnps_total 0 10 =>
silence with loss is the fabric = transport_packet_sequence_errors_total 100 109; transport_out_of_sequence_total 0; transport_implied_naks_total 0; transport_requester_completion_errors_total 0 1; transport_ack_timeouts_total 100 106; transport_retries_exceeded_total 100 101 => retries_exceeded@fabric
silence after a lost link is the link = transport_packet_sequence_errors_total 0; transport_out_of_sequence_total 0; transport_implied_naks_total 0; transport_retries_exceeded_total 100 101; netdev_carrier_down_total 0 1 => link_interrupted@link | retries_exceeded@link
a module that the driver has refused explains the link that stays down = port_up 1 0; kernel_log_events_total{event=module_power_insufficient} 0 1 => power_insufficient@host | link_down@link
commands without a reply = admin_commands_lost_total 0 1 => driver_not_responding@host
a few timeouts are no fault = transport_packet_sequence_errors_total 0; transport_out_of_sequence_total 0; transport_implied_naks_total 0; transport_ack_timeouts_total 100 103 =>
more timeouts are the peer = transport_packet_sequence_errors_total 0; transport_out_of_sequence_total 0; transport_implied_naks_total 0; transport_ack_timeouts_total 100 104 => ack_timeouts@peer: 4 acknowledgement timeouts within 60 s: no packet is seen to get lost: what arrives at the peer is in order: but a path that is cut completely looks the same from here
a receiver that is never ready is the peer = transport_requester_completion_errors_total 0 1; transport_rnr_naks_received_total 100 101; transport_rnr_retries_exceeded_total 100 101 => receiver_not_ready@peer: 1 queue pair gave up on a receiver that was never ready within 60 s: 1 NAK for lack of a receive request within 60 s
the same of a driver that counts the failed requests alone = transport_requester_completion_errors_total 0 1; transport_rnr_naks_received_total 100 108 => receiver_not_ready@peer: 8 NAKs for lack of a receive request within 60 s: 1 work request failed meanwhile
a receiver without requests is this host = out_of_buffer_total 0 1 => receive_queue_empty@host
a receiver that seldom lacks requests = out_of_buffer_total 0 1; port_receive_packets_total 0 100000 =>
a request that the peer refused = transport_requester_completion_errors_total 0 1; transport_requester_remote_access_errors_total 100 101 => requests_refused@host
a request that the peer found invalid = transport_requester_completion_errors_total 0 1; transport_requester_remote_invalid_requests_total 100 101 => requests_refused@host
a request that this host refused = transport_responder_remote_access_errors_total 100 101 => peer_requests_refused@peer
a wrong length, a wrong local key and a flushed queue pair only count a completion with an error (measured) = transport_requester_completion_errors_total 0 1 => local_errors@host: 1 work request failed within 60 s that no NAK and no retry explains
writes that failed = transport_write_request_errors_total 100 118 => local_errors@host: 18 work requests failed within 60 s that no NAK and no retry explains
flushed completions are no errors of programs = transport_requester_completion_errors_total 0 1; transport_requester_flushed_completions_total 100 101 =>
loss that this host's packets met = transport_packet_sequence_errors_total 100 200 => packet_loss@fabric: 100 sent packets or their responses were lost within 60 s (an unknown share)
loss at this port is not loss in the fabric = transport_packet_sequence_errors_total 100 200; phy_receive_crc_errors_total 0 50 => crc_errors@link | packet_loss@link
the gap behind drops of this port = transport_out_of_sequence_total 100 200; phy_receive_discards_total 0 50 => port_drops@host
drops on receipt do not explain losses of sent packets = transport_packet_sequence_errors_total 100 200; phy_receive_discards_total 0 50 => port_drops@host | packet_loss@fabric
what fails the link's own checksum is dropped before the invariant one is seen = transport_icrc_errors_total 100 101; phy_receive_crc_errors_total 0 7 => crc_errors@link | corruption@fabric
responses that were lost = transport_implied_naks_total 100 200 => packet_loss@fabric
packets in another order = transport_out_of_sequence_total 0 5000; port_receive_packets_total 0 1e6 => packet_loss@fabric: 5,000 received packets were out of sequence within 60 s (0.5 %): but switches that spray packets reorder them without loss
losses and symbol errors = transport_packet_sequence_errors_total 100 200; phy_symbol_errors_total 0 50 => link_errors@link | packet_loss@link: 100 sent packets or their responses were lost within 60 s (an unknown share): 50 symbol errors of this link
losses and blocks that were lost = transport_packet_sequence_errors_total 100 200; phy_fec_uncorrectable_blocks_total 0 50 => link_errors@link | packet_loss@link: 100 sent packets or their responses were lost within 60 s (an unknown share): 50 blocks of this link could not be corrected
a wrong invariant CRC behind a clean link = transport_icrc_errors_total 0 1; phy_receive_crc_errors_total 7 => corruption@fabric: 1 packet with a wrong invariant CRC within 60 s: the link's own checksum is clean
"""


@pytest.mark.parametrize(("series", "found"), rows_of(FAULTS))
def test_facts_lead_to_causes_and_sides(series, found) -> None:
    assert shown(diagnose(history(series)), found) == found


@pytest.mark.parametrize(
    ("series", "found", "against"),
    [
        (rises(requester_remote_access_errors=4, responder_remote_access_errors=0), "requests_refused", 0),
        (
            rises(requester_remote_access_errors=4, responder_remote_access_errors=4),
            "peer_requests_refused",
            0,
        ),
        (rises(requester_remote_invalid_requests=4, responder_remote_access_errors=0), "requests_refused", 1),
    ],
    ids=["it refuses nothing", "it refuses as many", "nothing says it"],
)
def test_naks_without_a_direction_are_one_finding(series, found, against) -> None:
    mana = series | {"roce_device_info": None, "roce_device_info{driver=mana}": 1}
    fault = only(diagnose(history(mana)))
    assert (fault.check, len(fault.against)) == (found, against)
    others = diagnose(history(series)).findings
    assert len(others) == 1 + (found == "peer_requests_refused"), "a driver that says the direction"


def test_a_receiver_that_is_never_ready_leaves_the_port_healthy() -> None:
    series = FAILED_REQUEST | rises(rnr_naks_received=1, rnr_retries_exceeded=1)
    assert only(diagnose(history(series))).status == Status.OK


@pytest.mark.parametrize(
    ("naks", "packets", "is_found"),
    [
        (10, 1e6, False),
        (11, 1e6, True),
        (9, 100, False),
        (10, 100, True),
        (11, None, False),
        (601, None, True),
    ],
)
def test_how_often_receivers_are_not_ready_is_a_share_of_the_packets(naks, packets, is_found) -> None:
    series = rises(rnr_naks_received=naks) | {"roce_port_transmit_packets_total": [0, packets]}
    assert causes(diagnose(history(series))) == ["receiver_not_ready"] * is_found


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
            {
                "roce_owner_connections{owner=nvmf,peer=10.0.0.9}": [4, None],
                "roce_owner_connections{owner=nvmf,peer=10.0.0.8}": 4,
            },
            "connections of nvmf to 10.0.0.9 ended meanwhile; the only peer with connections of RDMA-CM is 10.0.0.8",
        ),
        (
            {
                "roce_owner_transport_ack_timeouts_total{owner=train/worker-0}": [0, 30],
                "roce_owner_transport_ack_timeouts_total{owner=train/worker-1}": 7,
            },
            "train/worker-0: 30 acknowledgement timeouts within 60 s",
        ),
    ],
)
def test_a_silent_peer_is_named_where_it_is_known(series, said) -> None:
    fault = next(
        one for one in diagnose(history({**SILENT, **series})).findings if one.check == "retries_exceeded"
    )
    assert "; ".join(one for one in fault.evidence if "10.0.0" in one or "worker" in one) == said


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
