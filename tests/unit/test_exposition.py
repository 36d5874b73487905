"""Prometheus' own parsers read the text, whatever the values and labels are."""

from dataclasses import replace

import pytest
from catalog_rows import counter
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from roce_exporter.catalog.row import Row
from roce_exporter.exposition import (
    MOST_TEMPLATES,
    FilledLines,
    Format,
    NoRowError,
    OneText,
    Renderer,
    negotiate,
)
from roce_exporter.normalise.series import Samples, Series

ROWS = (
    counter("roce_a_total", "packets", 'A "quoted" % help\nin two lines with a \\.'),
    counter("roce_b_total", "bytes", "B."),
    Row("roce_c_seconds", "gauge", "seconds", "C.", labels=()),
)
LABELS = st.tuples(st.text(max_size=20), st.text(max_size=5))
VALUES = st.one_of(st.none(), st.integers(0, 2**64 - 1), st.floats(0, 1e18))


def samples(found: dict[tuple[str, str], int | float | None], row: Row = ROWS[0]) -> Samples:
    return Samples(tuple(Series(row, labels) for labels in found), tuple(found.values()))


@pytest.mark.parametrize("lines", [FilledLines, OneText])
@given(st.dictionaries(LABELS, VALUES, max_size=8), st.dictionaries(LABELS, VALUES, max_size=8))
def test_both_parsers_read_the_rendered_text(lines, first, second) -> None:
    parts = (samples(first), samples(second, ROWS[1]))
    renderer = Renderer(ROWS, lines)
    expected = sorted(
        (row.name, *labels, value)
        for row, found in ((ROWS[0], first), (ROWS[1], second))
        for labels, value in found.items()
        if value is not None
    )
    for form, parse, end in (
        (Format.TEXT, parse_text, b""),
        (Format.OPENMETRICS, parse_openmetrics, b"# EOF\n"),
    ):
        text = (renderer.render(parts, form) + end).decode()
        got = sorted(
            (sample.name, sample.labels.get("device", ""), sample.labels.get("port", ""), sample.value)
            for family in parse(text)
            for sample in family.samples
        )
        assert got == expected


@given(st.integers(0, 2**64 - 1))
def test_integers_stay_exact(value) -> None:
    text = Renderer(ROWS).render((samples({("d", "1"): value}),), Format.TEXT).decode()
    assert text.endswith(f'roce_a_total{{device="d",port="1"}} {value}\n')


def test_openmetrics_names_the_family_without_total_and_its_unit() -> None:
    text = Renderer(ROWS).render((samples({("x", "1"): 1}, ROWS[1]),), Format.OPENMETRICS).decode()
    assert "# TYPE roce_b counter\n" in text
    assert 'roce_b_total{device="x",port="1"} 1\n' in text
    text = Renderer(ROWS).render((Samples((Series(ROWS[2], ()),), (0.5,)),), Format.OPENMETRICS).decode()
    assert (
        text
        == "# HELP roce_c_seconds C.\n# TYPE roce_c_seconds gauge\n# UNIT roce_c_seconds seconds\nroce_c_seconds 0.5\n"
    )


def test_labels_that_do_not_fit_the_row_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Renderer(ROWS).render((samples({("x",): 1}),), Format.TEXT)


def test_a_template_is_made_once_while_the_series_are_the_same_objects() -> None:
    renderer = Renderer(ROWS)
    parts = (samples({("x", "1"): 1}), samples({("x", "1"): 2}, ROWS[1]))
    renderer.render(parts, Format.TEXT)
    layout = renderer._layout
    (template,) = layout.templates.values()
    renderer.render(tuple(part._replace(values=(7,)) for part in parts), Format.TEXT)
    assert renderer._layout is layout
    assert [kept is template for kept in layout.templates.values()] == [True]
    others = (samples({("y", "2"): 5}), samples({("x", "1"): 2}, ROWS[1]))
    assert b'{device="y",port="2"} 5' in renderer.render(others, Format.TEXT), "other series have their own"


def test_the_number_of_cached_templates_is_bounded() -> None:
    renderer = Renderer(ROWS)
    series = tuple(Series(ROWS[0], (str(device), "1")) for device in range(3 * MOST_TEMPLATES))
    for absent in range(len(series)):
        values = tuple(None if position == absent else position for position in range(len(series)))
        text = renderer.render((Samples(series, values),), Format.TEXT).decode()
        assert f'device="{absent}"' not in text
        assert len(renderer._layout.templates) <= MOST_TEMPLATES
    assert f'device="{len(series) - 2}",port="1"}} {len(series) - 2}\n' in text


def test_a_name_without_a_row_is_refused() -> None:
    stranger = replace(ROWS[0], name="roce_invented_total")
    with pytest.raises(NoRowError, match="roce_invented_total is not in the catalogue"):
        Renderer(ROWS).render((samples({("x", "1"): 1}, stranger),), Format.TEXT)


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", Format.TEXT),
        (PROMETHEUS_3, Format.OPENMETRICS),
        ("text/plain;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.5", Format.TEXT_1),
        ("text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5", Format.TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0,text/plain", Format.TEXT),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily", Format.TEXT),
        ("application/openmetrics-text; version=1.0.0", Format.OPENMETRICS),
        ('application/OpenMetrics-Text; version="1.0.0"', Format.OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0;q=abc", Format.TEXT),
        ("application/openmetrics-text", Format.OPENMETRICS),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.5", Format.TEXT),
        ("application/openmetrics-text;version=X1.0.0X", Format.TEXT),
        ("application/openmetrics-text;q=1.5", Format.TEXT),
        ("application/openmetrics-text;q=-1", Format.TEXT),
        ("application/openmetrics-text;q=0.5=", Format.TEXT),
    ],
)
def test_negotiation_follows_the_weights(accept, form) -> None:
    assert negotiate(accept) is form


@given(st.text())
def test_no_accept_header_breaks_the_negotiation(accept) -> None:
    assert negotiate(accept) in Format
