"""Real RDMA traffic of Soft-RoCE, on a good wire and on bad ones: the exported values are the kernel's.

By how much a bad wire moves a counter is random; that it moves, which one, and that the exporter agrees, is not.
"""

from collections.abc import Iterator

import pytest
import traffic
from daemon import Exporter, value, wait_until
from nic import run

RETRIES = "roce_transport_retries_total"
OUT_OF_SEQUENCE = "roce_transport_out_of_sequence_total"
DUPLICATES = "roce_transport_duplicate_requests_total"

TOLD = {
    "sent_pkts": "roce_port_transmit_packets_total",
    "rcvd_pkts": "roce_port_receive_packets_total",
    "rdma_sends": "roce_send_requests_sent_total",
    "rdma_recvs": "roce_send_requests_received_total",
    "completer_retry_err": RETRIES,
    "out_of_seq_request": OUT_OF_SEQUENCE,
    "duplicate_request": DUPLICATES,
    "rcvd_rnr_err": "roce_transport_rnr_naks_received_total",
    "send_rnr_err": "roce_transport_rnr_naks_sent_total",
    "ack_deferred": "roce_transport_deferred_acks_total",
    "retry_exceeded_err": "roce_transport_retries_exceeded_total",
    "link_downed": "roce_port_link_downed_total",
}


@pytest.fixture(scope="module")
def wire() -> Iterator[Exporter]:
    """Two Soft-RoCE devices, and an exporter that reads them."""
    traffic.bring_up()
    made = Exporter("--sampler.mode=off")
    yield made
    assert made.stop() == 0
    traffic.take_down()


def check_exported(exporter: Exporter) -> dict[str, float]:
    """All exported values are those of `rdma statistic` when traffic has stopped."""

    def is_quiet() -> bool:
        return traffic.printed("rxe0") == traffic.printed("rxe0") and traffic.printed(
            "rxe1"
        ) == traffic.printed("rxe1")

    wait_until(is_quiet)
    samples = exporter.scrape()
    for device in traffic.DEVICES:
        counted = traffic.printed(device)
        told = {raw: value(samples, name, device=device) for raw, name in TOLD.items()}
        assert told == {raw: counted[raw] for raw in TOLD}
    return samples


def test_packets_and_messages_are_counted(wire) -> None:
    before = wire.scrape()
    assert traffic.exchange("ib_send_bw", "-n", "200", "-s", "4096") == 0
    after = check_exported(wire)

    def grown(metric: str, device: str) -> float:
        return value(after, metric, device=device) - value(before, metric, device=device)

    assert grown("roce_send_requests_sent_total", "rxe0") >= 200
    assert grown("roce_send_requests_received_total", "rxe1") >= 200
    assert (
        grown("roce_port_transmit_packets_total", "rxe0")
        >= grown("roce_port_receive_packets_total", "rxe1")
        > 0
    )
    assert grown(OUT_OF_SEQUENCE, "rxe1") == 0


@pytest.mark.parametrize(
    ("test", "end", "how", "grows"),
    [
        ("ib_write_bw", 0, ("loss", "5%"), (("rxe0", RETRIES), ("rxe1", OUT_OF_SEQUENCE))),
        ("ib_read_bw", 1, ("loss", "5%"), (("rxe0", RETRIES), ("rxe1", DUPLICATES))),
        ("ib_write_bw", 0, ("duplicate", "10%"), (("rxe1", DUPLICATES),)),
        ("ib_write_bw", 0, ("corrupt", "5%"), (("rxe1", OUT_OF_SEQUENCE),)),
        ("ib_write_bw", 0, ("delay", "2ms", "reorder", "25%", "50%"), (("rxe1", OUT_OF_SEQUENCE),)),
    ],
    ids=["loss", "loss-of-answers", "duplication", "corruption", "reordering"],
)
def test_a_bad_wire_is_seen(wire, test, end, how, grows) -> None:
    before = wire.scrape()
    with traffic.spoilt(end, *how):
        traffic.exchange(test, "-n", "300", "-s", "4096")
    after = check_exported(wire)
    for device, metric in grows:
        assert value(after, metric, device=device) > value(before, metric, device=device), metric


def test_a_receiver_that_is_not_ready_is_seen(wire) -> None:
    before = wire.scrape()
    traffic.exchange("ib_send_bw", "-n", "300", "-s", "4096", "-r", "1")
    after = check_exported(wire)
    for device, metric in (
        ("rxe0", "roce_transport_rnr_naks_received_total"),
        ("rxe1", "roce_transport_rnr_naks_sent_total"),
    ):
        assert value(after, metric, device=device) > value(before, metric, device=device)


def test_a_peer_that_falls_silent_is_seen(wire) -> None:
    """Traffic flows, then nothing arrives any more on either side: the sender retries repeatedly."""
    before = wire.scrape()
    with traffic.flowing("ib_write_bw", "-s", "4096", "-D", "60"):
        for end in (0, 1):
            traffic.lose(end, "100%")
        wait_until(
            lambda: value(wire.scrape(), RETRIES, device="rxe0") > value(before, RETRIES, device="rxe0")
        )


def test_a_link_that_falls_is_seen(wire) -> None:
    before = wire.scrape()
    run("ip", "link", "set", "veth1", "down")
    wait_until(
        lambda: [value(wire.scrape(), "roce_port_up", device=device) for device in traffic.DEVICES] == [0, 0]
    )
    run("ip", "link", "set", "veth1", "up")
    traffic.route()
    wait_until(
        lambda: [value(wire.scrape(), "roce_port_up", device=device) for device in traffic.DEVICES] == [1, 1]
    )
    after = wire.scrape()
    for device in traffic.DEVICES:
        metric = "roce_port_link_downed_total"
        assert value(after, metric, device=device) > value(before, metric, device=device)
