"""What must not change a verdict: Hypothesis draws hosts of both tables and changes that make no difference to them."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING

import pytest
from built_host import FOREIGN, incident_history, load_incidents
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from roce_exporter.catalog import INDEX
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import KEPT
from roce_exporter.view.host_view import TimedSamples
from roce_exporter.view.remote import read_matrix

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.view.host_view import History, LabelValues

    Change = Callable[[str, LabelValues, float, int], tuple[LabelValues, float]]

pytestmark = pytest.mark.ci

HOSTS = {
    one.id: one
    for one in (*load_incidents(), *(one for one in load_incidents(FOREIGN) if one.batch in (7, 8)))
}
STATES = (
    "carrier_down_total",
    "carrier_up_total",
    "link_down_events_total",
    "link_downed_total",
    "read_errors_total",
)
"""Ends of the names of counters whose value means something, not only their rise: a link that never was up."""

RISING = {"mstlink-1845-usual-ber"}
"""Open: a usual rate of corrected errors, after a time in which the counter stood still, is taken for a rising one."""

Found = set[tuple[str, str, str]]
draws = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
hosts = st.sampled_from(sorted(HOSTS))
unbroken = st.sampled_from(sorted(one.id for one in HOSTS.values() if not one.gone))
"""Without a driver that is loaded again: its counters begin at 0, whatever they were before."""
plain = st.sampled_from(
    sorted(
        one.id
        for one in HOSTS.values()
        if (one.moments, one.apart, one.ports) == (21, 30.0, 2) and not one.other_truth
    )
)


@cache
def history_of(host: str) -> History:
    return asyncio.run(incident_history(HOSTS[host]))


def found(history: History, *, heads: bool = False) -> Found:
    """With `heads` without the consequences of other findings."""
    return {
        (one.device, one.check, one.side.value)
        for one in diagnose(history).findings
        if one.is_wrong and not (heads and one.caused_by)
    }


@cache
def found_on(host: str) -> Found:
    return found(history_of(host))


def changed(history: History, change: Change) -> History:
    return tuple(
        TimedSamples(
            moment.time,
            {
                name: dict(change(name, labels, value, number) for labels, value in series.items())
                for name, series in moment.values.items()
            },
        )
        for number, moment in enumerate(history)
    )


def is_counter(name: str) -> bool:
    row = INDEX.named[name]
    return row.kind == "counter" and not name.endswith(STATES)


@draws
@given(hosts, st.permutations(["a", "z"]))
def test_names_mean_nothing(host, names) -> None:
    def renamed(name: str, labels: LabelValues, value: float, _: int) -> tuple[LabelValues, float]:
        row = INDEX.named[name]
        return tuple(
            f"{names[int(text[-1]) % 2]}{text}" if label in ("device", "netdev") and text else text
            for label, text in zip(row.labels, labels, strict=True)
        ), value

    wanted = {(f"{names[int(device[-1]) % 2]}{device}", *rest) for device, *rest in found_on(host)}
    assert found(changed(history_of(host), renamed)) == wanted


@draws
@given(unbroken, st.integers(1, 2**40))
def test_counters_begin_anywhere(host, more) -> None:
    def higher(name: str, labels: LabelValues, value: float, _: int) -> tuple[LabelValues, float]:
        return labels, value + more if is_counter(name) else value

    assert found(changed(history_of(host), higher)) == found_on(host)


@draws
@given(hosts, st.integers(1, 20))
def test_a_calm_time_before_changes_nothing(host, moments) -> None:
    """But for errors that are corrected, whose trend is a consequence of those that are not."""
    assume(host not in RISING)
    history = history_of(host)
    first = history[0]
    before = tuple(TimedSamples(first.time - 30 * (moments - n), first.values) for n in range(moments))
    assert found(before + history, heads=True) == found(history, heads=True)


@draws
@given(hosts, st.sets(st.integers(1, 18), max_size=4))
def test_moments_that_are_missing_change_no_side(host, missing) -> None:
    """A cause may get another name: what fell between two samples far apart is less sure."""
    history = tuple(one for number, one in enumerate(history_of(host)) if number not in missing)
    assert {(device, side) for device, _, side in found(history)} == {
        (d, side) for d, _, side in found_on(host)
    }


@draws
@given(plain, plain)
def test_two_hosts_in_one_have_the_findings_of_both(host, other) -> None:
    """The cards of another host, most of them with a fault; cards of one kind are compared with each other, so of these only one without a fault."""
    is_alike = HOSTS[host].driver == HOSTS[other].driver
    assume(not is_alike or HOSTS[other].kind != "fault")

    def added(values: dict[str, dict[LabelValues, float]]) -> dict[str, dict[LabelValues, float]]:
        taken: dict[str, dict[LabelValues, float]] = {}
        for name, series in values.items():
            row = INDEX.named[name]
            if "device" not in row.labels:
                continue
            for labels, value in series.items():
                if not is_alike or labels[row.labels.index("device")].endswith("_1"):
                    new = tuple(
                        f"x{text}" if label in ("device", "netdev") and text else text
                        for label, text in zip(row.labels, labels, strict=True)
                    )
                    taken.setdefault(name, {})[new] = value
        return taken

    both = tuple(
        TimedSamples(
            one.time,
            {name: {**one.values.get(name, {}), **more.get(name, {})} for name in {*one.values, *more}},
        )
        for one, two in zip(history_of(host), history_of(other), strict=True)
        if (more := added(two.values)) is not None
    )
    assert found(both) == found_on(host) | {(f"x{device}", *rest) for device, *rest in found_on(other)}


@draws
@given(hosts)
def test_prometheus_and_the_daemon_see_the_same(host) -> None:
    history = history_of(host)
    result: dict[tuple[str, LabelValues], list[list[object]]] = {}
    for moment in history:
        for name, series in moment.values.items():
            for labels, value in series.items():
                result.setdefault((name, labels), []).append([moment.time, repr(value)])
    rows = [
        {
            "metric": {
                "__name__": name,
                **{k: v for k, v in zip(INDEX.named[name].labels, labels, strict=True) if v},
            },
            "values": values,
        }
        for (name, labels), values in result.items()
    ]
    assert found(read_matrix({"resultType": "matrix", "result": rows}).history) == found_on(host)
    kept = tuple(
        TimedSamples(one.time, {k: v for k, v in one.values.items() if k in KEPT}) for one in history
    )
    assert found(kept) == found_on(host)


@draws
@given(
    st.sampled_from(
        sorted(name for name, one in HOSTS.items() if one.kind == "fault" and one.rates and not one.open)
    ),
    st.integers(2, 4),
)
def test_a_stronger_fault_is_never_less_severe(host, times) -> None:
    """Errors, pause and stalls of the faulty port rise faster; its traffic does not."""
    first = history_of(host)[0]

    def stronger(name: str, labels: LabelValues, value: float, _: int) -> tuple[LabelValues, float]:
        row = INDEX.named[name]
        begin = first.values.get(name, {}).get(labels)
        if row.kind != "counter" or row.usual != 0 or begin is None:
            return labels, value
        return labels, begin + times * (value - begin)

    worst = max(one.status for one in diagnose(history_of(host)).findings)
    assert max(one.status for one in diagnose(changed(history_of(host), stronger)).findings) >= worst
