"""A series never changes its raw name while the device stays, whichever names come and go, in whatever order.

A new choice would show two hardware counters as one, and their difference as a reset or a burst.
"""

from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.catalog import CATALOG, DIALECTS, INDEX
from roce_exporter.catalog.row import ANY, COUNTER, COUNTERS, HW_COUNTERS, Row, Spelling
from roce_exporter.model import Device, DeviceReadings, Port, Reading
from roce_exporter.normalise.normaliser import Normaliser

RawName = tuple[str, str]
"""Source and name."""

Values = dict[RawName, int]


def spoken(row: Row, dialect: str) -> list[Spelling]:
    """The spellings of a row that apply to a device of this dialect, in order of preference."""
    return [
        spelling
        for spelling in row.spellings
        if spelling.dialect in (dialect, ANY)
        and spelling.source in (HW_COUNTERS, COUNTERS)
        and not any(INDEX.left_out(dialect, spelling.source, raw) for raw in spelling.raw)
    ]


def raw_names(spelling: Spelling) -> list[RawName]:
    return [(spelling.source, name) for name in spelling.raw]


def contested(dialect: str) -> list[RawName]:
    """Raw names of rows for which a device of this dialect may have several."""
    return sorted(
        {
            name
            for row in CATALOG
            if len(spoken(row, dialect)) > 1
            for spelling in spoken(row, dialect)
            for name in raw_names(spelling)
        }
    )


CONTESTED = {dialect: names for dialect in DIALECTS if len(names := contested(dialect)) > 1}


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[Values]]:
    """A dialect and, per collection, values under names in some order. All names have different values."""
    dialect = draw(st.sampled_from(sorted(CONTESTED)))
    names = CONTESTED[dialect]
    subsets = draw(st.lists(st.lists(st.sampled_from(names), unique=True), min_size=2, max_size=8))
    return dialect, [
        {name: (names.index(name) + 1) * 1_000_000 + moment for name in subset}
        for moment, subset in enumerate(subsets)
    ]


def readings(values: Values, first: int) -> tuple[Reading, ...]:
    """As the sources return them: part of the hardware counters by netlink, the rest and the port counters by sysfs."""
    of_driver = [(name, value) for (source, name), value in values.items() if source == HW_COUNTERS]
    of_port = [(name, value) for (source, name), value in values.items() if source == COUNTERS]
    parts = ((HW_COUNTERS, of_driver[:first]), (HW_COUNTERS, of_driver[first:]), (COUNTERS, of_port))
    return tuple(
        Reading(source, "d", 1, tuple(name for name, _ in part), tuple(value for _, value in part))
        for source, part in parts
    )


def make_device(dialect: str, incarnation: int = 1) -> Device:
    return Device("d", "", dialect, incarnation=incarnation, ports=(Port(1, "Ethernet"),))


def expected(dialect: str, history: list[Values]) -> list[dict[str, int]]:
    """The rule in its simplest form: at its first sample a row takes the first spelling that is complete, and keeps it."""
    kept: dict[str, Spelling] = {}
    shown = []
    for values in history:
        now = {}
        for row in CATALOG:
            whole = [one for one in spoken(row, dialect) if all(raw in values for raw in raw_names(one))]
            if whole and kept.setdefault(row.name, whole[0]) in whole:
                spelling = kept[row.name]
                now[row.name] = sum(values[raw] for raw in raw_names(spelling)) * spelling.times
        shown.append(now)
    return shown


@given(histories(), st.integers(0, 4))
def test_a_series_shows_one_raw_counter_while_the_device_stays(drawn, first) -> None:
    dialect, history = drawn
    normaliser, device = Normaliser(), make_device(dialect)
    shown = []
    for values in history:
        samples = normaliser.normalise(DeviceReadings(device, readings(values, first)))
        shown.append(
            {
                series.row.name: value
                for series, value in zip(*samples, strict=True)
                if series.row.kind == COUNTER
            }
        )
    assert shown == expected(dialect, history)


def test_a_new_incarnation_chooses_again() -> None:
    """Each spelling of each contested row in turn, after each removal and reinsertion of the device."""
    assert len(CONTESTED) > 3
    for dialect, names in CONTESTED.items():
        normaliser = Normaliser()
        for incarnation, name in enumerate(names):
            values = {name: 7}
            samples = normaliser.normalise(
                DeviceReadings(make_device(dialect, incarnation), readings(values, 1))
            )
            shown = {series.row.name: value for series, value in zip(*samples, strict=True)}
            (want,) = expected(dialect, [values])
            assert {row: shown.get(row) for row in want} == want
