"""The tables of docs/migration.md are current, and what says whether an expression has its data is right."""

import pytest
from migration_tables import DOCUMENT, document
from migration_uses import ALL, BOARDS, NOTHING, PARTLY, SOURCES, alerts, given, level, panels

OLD, NEW, ETHTOOL, RDMA, POOL = SOURCES
CNP, BYTES, PAUSE, DISCARDS = (
    "roce_cnp_sent_total",
    "roce_port_receive_bytes_total",
    "roce_pfc_receive_pause_seconds_total",
    "roce_phy_receive_discards_total",
)


def test_the_tables_are_current() -> None:
    """Rewrite them with `python tests/alerts/migration_tables.py`."""
    assert DOCUMENT.read_text() == document()


def test_there_is_a_lot_to_judge() -> None:
    assert len(alerts()) > 30
    assert all(len(list(panels(place))) > 10 for place in BOARDS)
    assert [len(given(source)) > 25 for source in SOURCES] == [True] * 5


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"rate({CNP}[5m]) > 0", ALL),
        (f"sum by (instance) ({CNP}) / sum by (instance) ({PAUSE})", NOTHING),
        (f"{CNP} or {PAUSE}", PARTLY),
        (f"{CNP} or {BYTES}", ALL),
        (f"{CNP} unless {PAUSE}", PARTLY),
        (f"{PAUSE} unless {CNP}", NOTHING),
        (f"{CNP} and {BYTES}", ALL),
        ('{__name__=~"roce_cnp_.+"}', ALL),
        ('{__name__="roce_pfc_receive_pause_seconds_total"}', NOTHING),
        ("vector(1) * 2", ALL),
        ("nothing_of_ours", NOTHING),
    ],
)
def test_an_expression_has_its_data(expression, expected) -> None:
    """On node_exporter without `ethtool`."""
    assert level(NEW, expression) == expected


def test_hw_counters_are_in_newer_versions_only() -> None:
    assert (level(OLD, CNP), level(NEW, CNP), level(OLD, BYTES)) == (NOTHING, ALL, ALL)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{PAUSE} and {DISCARDS}", ALL),
        (f"{PAUSE} and {BYTES}", NOTHING),
        (f"{PAUSE} * on (instance, device) group_left () {BYTES}", NOTHING),
        (f"{PAUSE} * on (instance) group_left () sum by (instance) ({BYTES})", ALL),
        (f"sum by (instance) ({PAUSE}) / sum by (instance) ({BYTES})", ALL),
        (f"sum without (port) ({PAUSE}) / {BYTES}", NOTHING),
        (f"{PAUSE} or {BYTES}", ALL),
    ],
)
def test_an_unknown_rdma_device_joins_with_no_known_one(expression, expected) -> None:
    assert level(ETHTOOL, expression) == expected
    assert level(RDMA, expression) == ALL


def test_a_recorded_name_is_followed() -> None:
    name = "port_direction:roce_transport_loss:ratio_rate5m"
    assert (level(NEW, name), level(OLD, name), level(POOL, name)) == (ALL, NOTHING, NOTHING)
