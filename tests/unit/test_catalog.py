"""The table: it refuses contradictions, has every driver's names, and needs one row per counter."""

import runpy
from dataclasses import replace

import pytest
from catalog_rows import counter, gauge, netdev_counter, spelt

from roce_exporter.catalog import CATALOG, INDEX, CatalogError, check, drivers, kernel_events, left_out, table
from roce_exporter.catalog.row import (
    ANY,
    COUNTERS,
    ETHTOOL,
    GAUGE,
    HISTOGRAM,
    HW_COUNTERS,
    LEAN,
    NETDEV_LABELS,
    STANDARD,
    MetricSet,
    Row,
    Spelling,
)
from roce_exporter.catalog.table import FOLDER, TABLES, read

GOOD = counter("roce_good_total", "events", "Good.", spelt("mlx5", HW_COUNTERS, "good"))
PAUSE = spelt("mlx5", ETHTOOL, "rx_prio{priority}_pause")


def pause(*labels: str, spelling: Spelling = PAUSE) -> tuple[Row]:
    return (netdev_counter("roce_pause_total", "frames", "Pause.", spelling, labels=labels),)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((GOOD, GOOD), "roce_good_total: is listed twice"),
        (
            (GOOD, replace(GOOD, name="roce_other_total")),
            "roce_other_total: 'good' of mlx5 .* claimed by roce_good_total",
        ),
        (
            (GOOD, counter("roce_any_total", "events", "Any.", spelt(ANY, HW_COUNTERS, "good"))),
            "roce_any_total: 'good' of .* claimed by roce_good_total",
        ),
        ((replace(GOOD, name="good_total"),), "good_total: is not a valid metric name"),
        ((replace(GOOD, name="roce_Good_total"),), "is not a valid metric name"),
        ((replace(GOOD, name="roce_good"),), "must end in _total if and only if"),
        ((gauge("roce_good_total", "events", "Good."),), "must end in _total if and only if"),
        ((replace(GOOD, help=" "),), "has no help"),
        ((replace(GOOD, unit=""),), "has no help or no unit"),
        ((replace(GOOD, labels=("Device",)),), "has a bad label name"),
        ((replace(GOOD, kind="untyped"),), "unknown kind 'untyped'"),
        (
            (counter("roce_x_total", "events", "X.", spelt("mlx6", HW_COUNTERS, "x")),),
            "has a spelling of the unknown dialect mlx6",
        ),
        (
            (counter("roce_x_total", "events", "X.", spelt("mlx5", HW_COUNTERS)),),
            "a spelling without a raw name",
        ),
        (pause(*NETDEV_LABELS), "other labels than its spelling rx_prio{priority}_pause gives"),
        (pause("device", "port", "priority"), "other labels than its spelling"),
        (pause("device", "port", "priority", "netdev"), "other labels than its spelling"),
        (pause(*NETDEV_LABELS, "priority", spelling=spelt("mlx5", ETHTOOL, "rx_pause")), "other labels"),
        (
            pause(*NETDEV_LABELS, "priority", spelling=spelt("mlx5", ETHTOOL, *PAUSE.raw, "b")),
            r"pause \+ b gives",
        ),
        ((replace(GOOD, spellings=(spelt("mlx5", HW_COUNTERS, "good{lane}"),)),), "other labels than"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(rows, message) -> None:
    with pytest.raises(CatalogError, match=message) as caught:
        check(rows)
    assert "\n" not in str(caught.value)


TABLE = """\
# A comment of the file.
[first]
What it is.

With more of it.

roce_good_total{device,port} counter events lean usual=0
    Good, and
    on two lines.
  mlx5 hw_counters: good + better x 4 / 100 (32 bits)
  # a comment of a name
  * pause: Begun Now minus ended
roce_lanes_ratio{le} histogram ratio full experimental only le=0.5,1 x
    Lanes.
[second]
roce_bare{} gauge bool standard
    Bare.
owners: good_total late_total=full
"""


def test_a_table_is_areas_rows_and_raw_names() -> None:
    late = counter("roce_late_total", "packets", "Late. On mlx5 32 bits.", usual=0)
    known = {row.name: row for row in (counter("roce_good_total", "events", "Good."), late)}
    first, second = read("some.txt", TABLE, known)
    good = Spelling("mlx5", HW_COUNTERS, ("good", "better"), bits=32, times=4, per=100)
    ended = Spelling(ANY, "pause", ("Begun Now", "ended"), difference=True)
    assert first == (
        "first",
        "What it is.\n\nWith more of it.",
        (
            counter(
                "roce_good_total", "events", "Good, and on two lines.", good, ended, metric_set=LEAN, usual=0
            ),
            Row(
                "roce_lanes_ratio",
                HISTOGRAM,
                "ratio",
                "Lanes.",
                (),
                ("le",),
                "experimental",
                only=("le", "0.5", "1 x"),
            ),
        ),
    )
    bare = Row("roce_bare", GAUGE, "bool", "Bare.", (), (), metric_set=STANDARD)
    counts = "Counts only queue pairs of the owner that are bound to counter sets."
    owned = [
        replace(
            row,
            help=f"{row.help.partition('.')[0]}. {counts}",
            labels=("device", "owner", "port"),
            usual=None,
        )
        for row in known.values()
    ]
    good, late = (
        replace(row, name=row.name.replace("roce_", "roce_owner_"), stability="experimental", metric_set=one)
        for row, one in zip(owned, (LEAN, MetricSet.FULL), strict=True)
    )
    assert second == ("second", "", (bare, good, late))


def test_a_choice_in_a_name_makes_a_row_of_each() -> None:
    head = "[one]\nroce_<receive|transmit>_bytes_total{port} counter bytes full\n"
    ((_, _, rows),) = read(
        "some.txt", f"{head}    Bytes <received|sent>.\n  * port: <rx|tx>_bytes | old_<rx|tx>\n"
    )
    assert [(row.name, row.help, [one.raw for one in row.spellings]) for row in rows] == [
        ("roce_receive_bytes_total", "Bytes received.", [("rx_bytes",), ("old_rx",)]),
        ("roce_transmit_bytes_total", "Bytes sent.", [("tx_bytes",), ("old_tx",)]),
    ]
    for wrong in (
        f"{head}    Bytes <all|some|none>.",
        "[one]\nroce_bytes_total{port} counter bytes full\n    <All|Some>.",
    ):
        with pytest.raises(
            CatalogError, match=r"some.txt:2: the choices are not as many as those of the name"
        ):
            tuple(read("some.txt", wrong))


@pytest.mark.parametrize(
    ("line", "replacement", "message"),
    [
        (
            " lean usual=0",
            " usual=0",
            r"some.txt:7: roce_good_total: needs .* set \(lean, standard or full\)",
        ),
        ("counter events lean", "counter lean", "some.txt:7: roce_good_total: needs labels"),
        ("usual=0", "usual=none", "some.txt:7: roce_good_total: needs labels"),
        (
            "  * pause: Begun",
            "  * pause Begun",
            r"some.txt:12: '\* pause Begun Now minus ended' is not DRIVER SOURCE: RAW",
        ),
        ("    Lanes.", "Lanes.", "some.txt:14: Lanes.: needs labels in braces"),
        ("With more", "  With more", "some.txt:5: 'With more of it.' is not a heading"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_place(line, replacement, message) -> None:
    with pytest.raises(CatalogError, match=message) as caught:
        tuple(
            read(
                "some.txt",
                TABLE.replace(line, replacement).replace("owners: good_total late_total=full\n", ""),
            )
        )
    assert "\n" not in str(caught.value)


OTHER_TABLES = ("congestion_control.txt", "drivers.txt", "kernel_log.txt", "left_out.txt", "windows.txt")
"""Files of `tables/` that have no rows."""


def test_every_table_is_read() -> None:
    assert {*OTHER_TABLES, *(f"{name}.txt" for name in TABLES)} == {place.name for place in FOLDER.iterdir()}


@pytest.mark.parametrize(
    ("module", "name", "line", "replacement", "message"),
    [
        (
            left_out,
            "left_out.txt",
            "tcp: TCP segments: iWARP, not RoCE",
            "tcp:",
            r"left_out.txt:\d+: 'tcp: .*' has no reason",
        ),
        (left_out, "left_out.txt", "[categories]", "  x\n[categories]", "'x' is not a heading"),
        (
            kernel_events,
            "kernel_log.txt",
            "/Cold reset",
            "Cold reset",
            "is not EVENT /PATTERN/ FILE FUNCTION",
        ),
        (
            drivers,
            "drivers.txt",
            "hw_counters: port_packets cnp_sent",
            "hw_counters vf: cnp_sent",
            "is not SOURCE",
        ),
        (drivers, "drivers.txt", "hw_counters: port_packets cnp_sent", "hw_counters: cnps", "is not SOURCE"),
    ],
)
def test_a_wrong_line_of_another_table_is_refused(  # noqa: PLR0917 - fixtures
    module, name, line, replacement, message, tmp_path, monkeypatch
) -> None:
    text = (FOLDER / name).read_text()
    assert line in text
    (tmp_path / name).write_text(text.replace(line, replacement))
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    with pytest.raises(CatalogError, match=message):
        runpy.run_path(str(module.__file__))


def test_one_raw_name_may_mean_different_things_to_different_drivers() -> None:
    other = counter("roce_other_total", "events", "Other.", spelt("efa", HW_COUNTERS, "good"))
    index = check((GOOD, other))
    assert index.claimed("mlx5", HW_COUNTERS, "good") is GOOD
    assert index.claimed("efa", HW_COUNTERS, "good") is other
    assert index.claimed("mlx4", HW_COUNTERS, "good") is None
    assert index.claimed("mlx5", COUNTERS, "good") is None


def test_placeholders_are_claimed_by_pattern() -> None:
    (row,) = pause(*NETDEV_LABELS, "priority")
    index = check((row,))
    assert index.claimed("mlx5", ETHTOOL, "rx_prio3_pause") is row
    assert index.claimed("mlx5", ETHTOOL, "rx_prio3_pause_duration") is None


def test_words_of_four_bytes_are_scaled_and_narrow_counters_known() -> None:
    (words,) = [s for row in CATALOG for s in row.spellings if s.raw == ("port_rcv_data",)]
    assert (words.times, words.per, words.bits) == (4, 1, 64)
    (downed,) = [
        s for row in CATALOG for s in row.spellings if s.raw == ("link_downed",) and s.source == COUNTERS
    ]
    assert downed.bits == 8
    bits = {s.dialect: s.bits for row in CATALOG for s in row.spellings if s.raw == ("out_of_sequence",)}
    assert bits == {"mlx5": 32, "bnxt_re": 64}


def test_an_empty_set_of_names_is_not_recognised() -> None:
    assert INDEX.recognise(()) == ""
    assert INDEX.recognise(("lifespan", "mystery")) == ""
    assert INDEX.recognise(("np_cnp_sent", "out_of_sequence", "lifespan", "mystery")) == "mlx5"


def test_a_name_is_left_out_for_a_reason_and_never_claimed_as_well() -> None:
    assert "setting" in INDEX.left_out("mlx5", HW_COUNTERS, "lifespan")
    assert INDEX.left_out("mlx5", HW_COUNTERS, "vport_out_of_buffer")
    assert INDEX.left_out("mlx5", HW_COUNTERS, "out_of_buffer") == ""
    for dialect, source, raw in INDEX.claims:
        assert source != HW_COUNTERS or not INDEX.left_out(dialect, source, raw)
