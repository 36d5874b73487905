"""Readings of switches become samples by the catalogue, in base units, with one spelling per series."""

from roce_exporter.catalog import CATALOG, SWITCH_SYSTEMS
from roce_exporter.catalog.named import SWITCH_PORT_INFO
from roce_exporter.introspection.debug import series_text
from roce_exporter.normalise.series import Samples
from roce_exporter.switches.interpretation import MOST_ABSENT, Interpreter
from roce_exporter.switches.readings import SwitchFact, SwitchReading, SwitchReadings

PORT = (("port", "Ethernet0"),)
PAUSE = "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"
SAI = "SAI_PORT_STAT_PFC_3_ON2OFF_RX_PKTS"
ESTIMATE = "EST_PORT_STAT_PFC_3_ON2OFF_RX_PKTS"
TRANSITIONS = 'roce_switch_pfc_receive_transitions_total{device="leaf1",port="Ethernet0",priority="3"}'


def readings(*values: dict[str, int | None], facts: tuple[SwitchFact, ...] = ()) -> SwitchReadings:
    return SwitchReadings("leaf1", tuple(SwitchReading("port_counters", PORT, one) for one in values), facts)


def as_text(samples: Samples) -> dict[str, object]:
    return dict(zip(map(series_text, samples.series), samples.values, strict=True))


def test_facts_come_first_and_have_the_value_1() -> None:
    fact = SwitchFact(SWITCH_PORT_INFO, {"port": "Ethernet0", "alias": "etp1"})
    found = Interpreter("sonic").samples("leaf1", readings({SAI: 7}, facts=(fact, fact)))
    assert list(as_text(found).items()) == [
        ('roce_switch_port_info{device="leaf1",port="Ethernet0",alias="etp1"}', 1),
        (TRANSITIONS, 7),
    ]


def test_the_preferred_spelling_wins_whatever_the_order() -> None:
    for values in ({SAI: 7, ESTIMATE: 9}, {ESTIMATE: 9, SAI: 7}):
        assert as_text(Interpreter("sonic").samples("leaf1", readings(values))) == {TRANSITIONS: 7}


def test_a_chosen_spelling_is_not_replaced_by_another() -> None:
    interpreter = Interpreter("sonic")
    assert as_text(interpreter.samples("leaf1", readings({ESTIMATE: 9}))) == {TRANSITIONS: 9}
    assert as_text(interpreter.samples("leaf1", readings({ESTIMATE: 10, SAI: 2}))) == {TRANSITIONS: 10}
    assert as_text(interpreter.samples("leaf1", readings({SAI: 3}))) == {}


def test_the_series_are_the_same_object_while_names_do_not_change() -> None:
    interpreter = Interpreter("sonic")
    first = interpreter.samples("leaf1", readings({SAI: 1}))
    second = interpreter.samples("leaf1", readings({SAI: 2}))
    assert second.series is first.series
    assert second.values == (2,)
    assert interpreter.samples("leaf2", readings({SAI: 2})).series is not first.series
    assert as_text(interpreter.samples("leaf1", readings({SAI: 2}, {PAUSE: 0}))).keys() >= {TRANSITIONS}


def test_every_spelling_of_a_switch_has_one_raw_name_and_finds_its_row() -> None:
    spellings = [(row, one) for row in CATALOG for one in row.spellings if one.dialect in SWITCH_SYSTEMS]
    assert len(spellings) > 50
    for row, one in spellings:
        (raw,) = one.raw
        places = {label: f"the {label}" for label in row.labels}
        reading = SwitchReading(
            one.source, tuple(places.items()), {raw.format(**dict.fromkeys(places, "3")): 7}
        )
        found = Interpreter(one.dialect).samples("leaf1", SwitchReadings("leaf1", (reading,)))
        assert [series.row for series in found.series] == [row]
        assert found.values == (7 * one.times / one.per,)


def test_what_a_switch_no_longer_has_is_forgotten() -> None:
    interpreter = Interpreter("sonic")
    for number in range(3 * MOST_ABSENT // 100):
        renamed = tuple(
            SwitchReading("port_counters", (("port", f"Ethernet{number}/{port}"),), {SAI: 1})
            for port in range(100)
        )
        interpreter.samples("leaf1", SwitchReadings("leaf1", renamed))
    assert 0 < len(interpreter.absent) <= MOST_ABSENT


def test_switches_of_one_kind_share_a_plan_and_those_with_a_history_do_not() -> None:
    one, other, old = Interpreter("sonic"), Interpreter("sonic"), Interpreter("sonic")
    old.samples("leaf3", readings({ESTIMATE: 9}))
    found = [
        of.samples(name, readings({ESTIMATE: 9, SAI: 7})) for of, name in ((one, "leaf1"), (other, "leaf2"))
    ]
    assert one._plan is other._plan
    assert [as_text(samples) for samples in found] == [
        {TRANSITIONS: 7},
        {TRANSITIONS.replace("leaf1", "leaf2"): 7},
    ]
    assert as_text(old.samples("leaf3", readings({ESTIMATE: 9, SAI: 7}))) == {
        TRANSITIONS.replace("leaf1", "leaf3"): 9
    }
