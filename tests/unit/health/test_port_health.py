"""The state machine: reasons hold until they have recovered, what is not seen is not healthy, and quiet hosts are healthy."""

from dataclasses import replace
from functools import partial

import pytest
from health_history import history

from roce_exporter.catalog.named import PORT_INFO
from roce_exporter.checks.finding import NotChecked, Report, Status
from roce_exporter.checks.health.causes import NAMED
from roce_exporter.checks.health.port_health import (
    FACTS_MISSING,
    LONGEST,
    MEMORY,
    NO_HISTORY,
    NO_LINK,
    NOT_JUDGED,
    RECOVERY,
    UNKNOWN_REASONS,
    PortConditions,
    findings_document,
    health_document,
    judge,
    not_judged,
)
from roce_exporter.view.host_view import TimedSamples

KEY = ("mlx5_0", "1")
FINE = Report((), ())


def found(*causes: object, port: str = "1") -> Report:
    return Report(tuple(cause.finding("mlx5_0", port, harm=1.0) for cause in causes), ())


def at(time: float, up: float | None = 1.0, **more: float) -> tuple[TimedSamples, ...]:
    """A history of two moments that ends at this time."""
    values = {
        "roce_port_info": {(*KEY, *[""] * (len(PORT_INFO.labels) - len(KEY))): 1.0},
        **({"roce_port_up": {KEY: up}} if up is not None else {}),
    }
    return (TimedSamples(time - 15, values), TimedSamples(time, values))


def test_a_reason_holds_until_it_has_had_no_sign_for_the_recovery_time() -> None:
    ports = judge({}, at(85), found(NAMED["pcie_fatal"]))
    assert ports[KEY].health == Status.FAILED
    ports = judge(ports, at(100), found(NAMED["pcie_fatal"]))
    for time in (115, 100 + RECOVERY - 1):
        ports = judge(ports, at(time), FINE)
        assert ports[KEY].health == Status.FAILED
    ports = judge(ports, at(100 + RECOVERY), FINE)
    assert (ports[KEY].health, ports[KEY].since) == (Status.OK, 100 + RECOVERY)


def test_since_is_the_begin_of_the_health_not_of_the_last_sign() -> None:
    ports = judge({}, at(100), found(NAMED["link_down"]))
    ports = judge(ports, at(115), found(NAMED["link_down"]))
    (reason,) = ports[KEY].reasons
    assert (ports[KEY].since, reason.since, reason.last) == (100, 100, 115)


def test_a_reason_that_comes_back_needs_longer_each_time() -> None:
    ports = judge({}, at(0), found(NAMED["link_flapping"]))
    time, lasted = 0.0, []
    for _ in range(5):
        (reason,) = ports[KEY].reasons
        lasted.append(reason.recovery)
        time += reason.recovery
        assert judge(ports, at(time - 1), FINE)[KEY].health == Status.DEGRADED
        ports = judge(ports, at(time), FINE)
        assert ports[KEY].health == Status.OK
        time += 1
        ports = judge(ports, at(time), found(NAMED["link_flapping"]))
    assert lasted == [RECOVERY, 2 * RECOVERY, 4 * RECOVERY, 8 * RECOVERY, LONGEST]


def test_a_reason_is_forgotten_after_an_hour() -> None:
    ports = judge({}, at(0), found(NAMED["link_flapping"]))
    ports = judge(ports, at(MEMORY), FINE)
    assert ports[KEY].reasons == ()
    ports = judge(ports, at(MEMORY + 15), found(NAMED["link_flapping"]))
    assert ports[KEY].reasons[0].returns == 0


def test_the_worst_reason_decides() -> None:
    held = judge({}, at(0), found(NAMED["incast"], NAMED["link_down"], NAMED["link_flapping"]))[KEY]
    assert held.health == Status.FAILED
    assert len(held.holding(0)) == 3


def test_a_port_is_fit_under_the_load_of_others() -> None:
    held = judge({}, at(0), found(NAMED["incast"]))[KEY]
    assert held.health == Status.OK
    assert [one.finding.check for one in held.holding(0)] == [NAMED["incast"].name]


def test_a_fault_of_the_device_concerns_all_its_ports() -> None:
    assert judge({}, at(0), found(NAMED["link_down"], port=""))[KEY].health == Status.FAILED
    assert judge({}, at(0), found(NAMED["link_down"], port="2"))[KEY].health == Status.OK


@pytest.mark.parametrize(
    ("moments", "gaps"),
    [
        (at(0)[1:], (NO_HISTORY,)),
        (at(0, up=None), (FACTS_MISSING,)),
        (at(0, up=0.0), (NO_LINK,)),
        (history({"roce_exporter_missing_facts": 1}), (FACTS_MISSING,)),
        (history({"roce_exporter_missing_facts": 0}), ()),
        (history({"roce_exporter_source_up{source=ethtool}": 0}), (FACTS_MISSING,)),
        (history({"roce_exporter_source_up{source=transceiver}": 0}), ()),
    ],
)
def test_what_is_not_seen_is_not_healthy(moments, gaps) -> None:
    held = judge({}, moments, FINE)[KEY]
    assert held.unknown == gaps
    assert held.health == (Status.UNKNOWN if gaps else Status.OK)


def test_rules_that_fail_leave_reasons_and_say_nothing_of_the_rest() -> None:
    ports = judge({}, at(0), found(NAMED["link_down"])) | {("mlx5_1", "1"): judge({}, at(0), FINE)[KEY]}
    ports = not_judged(ports, 15)
    assert ports[KEY].health == Status.FAILED
    assert (ports["mlx5_1", "1"].health, ports["mlx5_1", "1"].unknown) == (Status.UNKNOWN, (NOT_JUDGED,))


def test_a_link_that_was_lost_has_failed_until_it_is_up() -> None:
    """The history, an hour long, forgets that the port was up."""
    ports = judge({}, at(0), found(NAMED["link_down"]))
    for time in range(15, 3 * 3600, 15):
        ports = judge(ports, at(time, up=0.0), FINE)
        assert ports[KEY].health == Status.FAILED
    ports = judge(ports, at(time + 15), FINE)
    assert ports[KEY].health == Status.DEGRADED  # its end is seen; until it has recovered
    assert judge(ports, at(time + RECOVERY), FINE)[KEY].health == Status.OK


def test_a_port_that_was_never_up_does_not_fail_with_time() -> None:
    ports = judge({}, at(0, up=0.0), FINE)
    assert judge(ports, at(15, up=0.0), FINE)[KEY].health == Status.UNKNOWN


def test_a_device_that_vanished_has_failed_for_a_day() -> None:
    """The history forgets the device itself."""
    nothing = (TimedSamples(0, {}),)
    ports = judge({}, at(0), found(NAMED["device_vanished"], port=""))
    for time in range(60, 86_400, 60):
        ports = judge(ports, (*nothing, TimedSamples(time, {})), FINE)
        assert ports[KEY].health == Status.FAILED
    ports = judge(ports, (*nothing, TimedSamples(86_400, {})), FINE)
    assert KEY not in ports


def test_a_port_that_no_moment_has_is_forgotten() -> None:
    ports = judge({}, at(0), found(NAMED["link_flapping"]))
    assert judge(ports, (TimedSamples(15, {}), TimedSamples(30, {})), FINE) == {}


def test_the_documents_have_each_field_by_its_name() -> None:
    """Whole, because scripts of operators read them."""
    down, other = NAMED["link_down"], ("mlx5_1", "1")
    first = replace(down.finding("mlx5_0", "1", ("a",), harm=1.0), caused_by=("link_flapping",))
    ports = judge({}, at(100), Report((first,), ())) | {other: PortConditions((), Status.OK, 7.0, ())}
    report = Report((first,), (NotChecked("optics"),), fine=("settings",))
    assert health_document(ports, report, 100.0, 101.0, 15.0) == {
        "version": 1,
        "time": 101.0,
        "interval_seconds": 15.0,
        "health": "failed",
        "summary": "mlx5_0/1 failed: link_down (link)",
        "ports": [
            {
                "device": "mlx5_0",
                "port": "1",
                "health": "failed",
                "since": 100,
                "reasons": [
                    {
                        "reason": "link_down",
                        "place": first.place,
                        "health": "failed",
                        "side": "link",
                        "title": first.title,
                        "likely": first.why,
                        "since": 100,
                        "last_sign": 100,
                        "evidence": ["a"],
                        "sure": first.sure,
                        "wrong_if": first.wrong_if,
                        "against": [*first.against, "can follow from link_flapping"],
                        "next": list(first.fix),
                        "runbook": first.runbook,
                    }
                ],
            },
            {"device": "mlx5_1", "port": "1", "health": "healthy", "since": 7.0, "reasons": []},
        ],
        "fine": ["settings"],
        "unseen": ["optics"],
    }
    assert first.title
    found = findings_document(ports, report, 100.0, 101.0, 15.0)
    assert (found["interval_seconds"], found["source"], found["time"]) == (15.0, "this host", 101.0)
    assert [one["check"] for one in found["findings"]] == ["link_down"]
    assert found["ports"] == [
        {"device": "mlx5_0", "port": "1", "status": "failed", "since": 100},
        {"device": "mlx5_1", "port": "1", "status": "ok", "since": 7.0},
    ]


def test_the_summary_counts_healthy_ports_and_says_that_none_is_judged() -> None:
    fine, unknown = (
        PortConditions((), Status.OK, 7.0, ()),
        PortConditions((), Status.UNKNOWN, 7.0, (NO_LINK,)),
    )
    document = partial(health_document, report=FINE, at=9.0, judged=9.0, interval=15.0)
    assert document({KEY: fine, ("mlx5_1", "1"): unknown})["summary"] == "1 of 2 ports healthy"
    assert document({})["summary"] == "no ports judged"
    (port,) = document({KEY: unknown})["ports"]
    assert port["reasons"] == [{"reason": NO_LINK, "health": "unknown", "title": UNKNOWN_REASONS[NO_LINK]}]
