"""The reports of all hosts, as one vote."""

from __future__ import annotations

import pytest

from roce_exporter.catalog import probe as rows
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.probe.fleet import PortReport, ProbedPort, blame, port_reports
from roce_exporter.probe.vote import HOST, TOR, Component

PORT = ("mlx5_0", "1")


def scrape(sent: int, lost: int, pair: tuple[int, int] | None = None, dropped: int = 0) -> Samples:
    found = [
        (Series(rows.PORT_INFO, (*PORT, "10.0.0.1", "h1", "r1", "0")), 1),
        (Series(rows.SENT, (*PORT, "rack", "roce")), sent),
        (Series(rows.SENT, (*PORT, "fabric", "cnp")), 10),
        (Series(rows.LOST, (*PORT, "rack", "roce")), lost),
        (Series(rows.REPLIES_DROPPED, ("queue",)), dropped),
        (Series(rows.REPLIES_DROPPED, ("unknown",)), 7),
    ]
    if pair:
        of_pair = (*PORT, "h2", "40000")
        found += [(Series(rows.PAIR_SENT, of_pair), pair[0]), (Series(rows.PAIR_LOST, of_pair), pair[1])]
    return Samples(tuple(one for one, _ in found), tuple(value for _, value in found))


@pytest.mark.parametrize(
    ("before", "sent", "pairs", "dropped"),
    [
        (None, 110, (("h2", 40, 5),), 3),
        (scrape(60, 0, dropped=1), 40, (("h2", 40, 5),), 2),
        (scrape(60, 0, (30, 4)), 40, (("h2", 10, 1),), 3),
        (scrape(900, 0, (90, 1)), 100, (("h2", 40, 4),), 3),
    ],
    ids=["whole", "first-loss", "rise", "restarted"],
)
def test_a_report_is_the_rise_between_two_scrapes(
    before: Samples | None, sent: int, pairs: object, dropped: int
) -> None:
    (found,) = port_reports(before, scrape(100, 5, (40, 5), 3))
    assert found == PortReport(ProbedPort("h1", "r1", "0"), sent, pairs, dropped)


def test_a_port_that_is_not_in_the_list_reports_nothing() -> None:
    samples = Samples((Series(rows.SENT, (*PORT, "rack", "roce")),), (5,))
    assert port_reports(None, samples) == ()


def rack(
    number: int, lossy: dict[str, tuple[float, float]], dropped: float = 0, rail: str = ""
) -> list[PortReport]:
    """Four hosts of a rack, which have sent 100 probes each; some lost probes to `lossy` peers."""
    pairs = tuple((peer, *counts) for peer, counts in lossy.items())
    return [
        PortReport(
            ProbedPort(f"h{number}{one}", f"r{number}", rail),
            100,
            tuple(p for p in pairs if p[0] != f"h{number}{one}"),
            dropped,
        )
        for one in range(4)
    ]


def test_a_peer_that_many_lose_to_is_named() -> None:
    found = blame([*rack(1, {"h13": (20, 4)}), *rack(2, {"h13": (20, 5)})])
    assert [one.component for one in found] == [Component(HOST, "h13")]
    assert found[0].sent == 100 + 7 * 20


def test_ports_of_a_rail_are_told_apart() -> None:
    found = blame([*rack(1, {"h13": (20, 8)}, rail="0"), *rack(1, {}, rail="1")])
    assert [one.component for one in found] == [Component(HOST, "h13 rail 0")]


def test_a_rack_that_all_lose_to_is_its_tor() -> None:
    lossy = {f"h1{one}": (20.0, 4.0) for one in range(4)}
    found = blame([*rack(1, lossy), *rack(2, lossy), *rack(3, {})])
    assert [one.component for one in found] == [Component(TOR, "r1")]


def test_losses_that_the_queues_of_hosts_explain_name_nobody() -> None:
    assert blame(rack(1, {"h13": (20, 3)}, dropped=9)) == ()
