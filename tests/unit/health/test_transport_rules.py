"""Rules about the transport: silence, loss, refusals, and who erred. Counts of faults as in ten that were injected into real cards."""

from __future__ import annotations

import pytest
from health_history import causes, history, only

from roce_exporter.health.diagnosis import diagnose
from roce_exporter.health.port_fault import Health, Side

T = "roce_transport_"
CLEAN = {f"{T}packet_sequence_errors_total": 0, f"{T}out_of_sequence_total": 0, f"{T}implied_naks_total": 0}
FAILED_REQUEST = {f"{T}requester_completion_errors_total": [0, 1]}


def rises(**amounts: float) -> dict[str, list[float]]:
    """Counters that rose by this much."""
    return {f"{T}{name}_total": [100, 100 + amount] for name, amount in amounts.items()}


def test_a_peer_that_ends_is_silent_and_no_packet_is_lost() -> None:
    """Measured: a queue pair whose peer was killed makes six timeouts, and then gives up."""
    fault = only(diagnose(history(CLEAN | FAILED_REQUEST | rises(ack_timeouts=6, retries_exceeded=1))))
    assert (fault.cause.name, fault.side) == ("retries_exceeded", Side.PEER)
    assert "1 queue pairs gave up within 60 s" in fault.evidence
    assert any("no packet is seen to get lost" in line for line in fault.evidence)
    assert fault.against == ("a path that is cut completely looks the same from here",)


def test_silence_with_loss_is_the_fabric() -> None:
    lossy = rises(ack_timeouts=6, retries_exceeded=1, packet_sequence_errors=9)
    fault = diagnose(history(CLEAN | FAILED_REQUEST | lossy)).findings[0]
    assert (fault.cause.name, fault.side) == ("retries_exceeded", Side.FABRIC)


def test_silence_after_a_lost_link_is_the_link() -> None:
    series = CLEAN | rises(retries_exceeded=1) | {"roce_netdev_carrier_down_total": [0, 1]}
    faults = {fault.cause.name: fault.side for fault in diagnose(history(series)).findings}
    assert faults == {"link_interrupted": Side.LINK, "retries_exceeded": Side.LINK}


def test_a_few_timeouts_are_no_fault() -> None:
    assert causes(diagnose(history(CLEAN | rises(ack_timeouts=3)))) == []
    assert causes(diagnose(history(CLEAN | rises(ack_timeouts=4)))) == ["ack_timeouts"]


def test_a_receiver_that_is_never_ready_is_the_peer() -> None:
    series = FAILED_REQUEST | rises(rnr_naks_received=1, rnr_retries_exceeded=1)
    fault = only(diagnose(history(series)))
    assert (fault.cause.name, fault.side, fault.cause.health) == (
        "receiver_not_ready",
        Side.PEER,
        Health.HEALTHY,
    )


def test_a_receiver_without_requests_is_this_host() -> None:
    fault = only(diagnose(history({"roce_out_of_buffer_total": [0, 1]})))
    assert (fault.cause.name, fault.side) == ("receive_queue_empty", Side.HOST)
    many = {"roce_out_of_buffer_total": [0, 1], "roce_port_receive_packets_total": [0, 100_000]}
    assert causes(diagnose(history(many))) == []


@pytest.mark.parametrize("name", ["requester_remote_access_errors", "requester_remote_invalid_requests"])
def test_a_request_that_the_peer_refused(name: str) -> None:
    fault = only(diagnose(history(FAILED_REQUEST | rises(**{name: 1}))))
    assert (fault.cause.name, fault.side) == ("requests_refused", Side.HOST)


def test_a_request_that_this_host_refused_is_the_peers() -> None:
    fault = only(diagnose(history(rises(responder_remote_access_errors=1))))
    assert (fault.cause.name, fault.side) == ("peer_requests_refused", Side.PEER)


def test_a_failure_that_no_nak_explains_is_local() -> None:
    """Measured: a wrong length, a wrong local key and a flushed queue pair only count a completion with an error."""
    fault = only(diagnose(history(FAILED_REQUEST)))
    assert (fault.cause.name, fault.side) == ("local_errors", Side.HOST)


def test_flushed_completions_are_no_errors_of_programs() -> None:
    assert causes(diagnose(history(FAILED_REQUEST | rises(requester_flushed_completions=1)))) == []


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
def test_loss_is_a_share_of_the_packets(lost: float, packets: float | None, found: list[str]) -> None:
    passed = {} if packets is None else {"roce_port_transmit_packets_total": [0, packets]}
    assert causes(diagnose(history(rises(**{LOST: lost}) | passed))) == found


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("roce_port_up", Side.FABRIC),
        ("roce_phy_receive_crc_errors_total", Side.LINK),
        ("roce_phy_receive_discards_total", Side.HOST),
    ],
)
def test_loss_at_this_port_is_not_loss_in_the_fabric(name: str, side: Side) -> None:
    own = {} if name == "roce_port_up" else {name: [0, 50]}
    faults = {fault.cause.name: fault for fault in diagnose(history(rises(**{LOST: 100}) | own)).findings}
    assert faults["packet_loss"].side == side


def test_corruption_behind_a_clean_link_is_the_fabric() -> None:
    clean = {"roce_phy_receive_crc_errors_total": 7}
    fault = only(diagnose(history(rises(icrc_errors=1) | clean)))
    assert (fault.cause.name, fault.side) == ("corruption", Side.FABRIC)
    assert "the link's own checksum is clean" in fault.evidence
    dirty = {"roce_phy_receive_crc_errors_total": [0, 7]}
    found = diagnose(history(rises(icrc_errors=1) | dirty)).findings
    assert [(fault.cause.name, fault.side) for fault in found] == [
        ("crc_errors", Side.LINK),
        ("corruption", Side.LINK),
    ]
