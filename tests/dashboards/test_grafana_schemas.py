"""The boards checked against the schemas that Grafana 10 to 13 publish (`@grafana/schema`), as far as these go.

`grafana_schemas.json` holds the facts of the four packages; `dashboards/preview/README.md` has the command that derives
it. Options of data sources and the meaning of values are not in a schema: `test_board_rules.py` and a real Grafana check
those.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_contents import DASHBOARDS, Json, panels, read

SCHEMAS: dict[str, Json] = json.loads(
    Path(__file__).with_name("grafana_schemas.json").read_text(encoding="utf-8")
)
OF_THE_DATA_SOURCE = {
    "AnnotationQuery": {"expr", "titleFormat", "textFormat", "tagKeys", "step", "useValueForTime"}
}
"""Keys that Prometheus' plugin reads; the schema of annotations leaves them to the plugin."""
UNWRITTEN = {"Dashboard": {"__requires"}, "VariableModel": {"definition"}}
"""Keys of every exported dashboard that the schema does not list."""
RENAMED = {"custom.hidden", "custom.hideFrom", "custom.wrapText"}
"""Grafana 12 renamed or moved these of tables; the boards have both forms, and each version ignores the other."""
TYPES = {"string": str, "number": (int, float), "boolean": bool, "array": list}


def faults(value: object, schema: object, where: str, known: frozenset[str] = frozenset()) -> Iterator[str]:
    """Keys that are not in the schema, and values of another type or outside its list."""
    if schema == "any" or value is None:
        return
    if isinstance(schema, str):
        if not isinstance(value, TYPES[schema]):
            yield f"{where}: {value!r} is not a {schema}"
    elif isinstance(schema, list):
        if value not in schema:
            yield f"{where}: {value!r} is not one of {schema}"
    elif isinstance(schema, dict) and isinstance(value, dict):
        for key, inner in value.items():
            if key in schema:
                yield from faults(inner, schema[key], f"{where}.{key}")
            elif key not in known:
                yield f"{where}.{key} is unknown"


def of_a_panel(panel: Json, schema: Json) -> Iterator[str]:
    """Faults of a panel: its own keys, its kind's options, its fields' options, and its overrides."""
    kind, title = panel["type"], panel["title"]
    yield from faults(panel, schema["Panel"], title)
    yield from faults(panel["options"], schema[f"{kind}.options"], f"{title}.options")
    defaults = panel["fieldConfig"]["defaults"]
    yield from faults(defaults, schema["FieldConfig"], f"{title}.defaults")
    yield from faults(defaults["thresholds"], schema["ThresholdsConfig"], f"{title}.thresholds")
    yield from faults(defaults.get("custom", {}), schema[f"{kind}.custom"], f"{title}.custom")
    for change in panel["transformations"]:
        yield from faults(change, schema["DataTransformerConfig"], f"{title}.transformations")
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            yield from _of_a_property(one, kind, schema, title)


def _of_a_property(one: Json, kind: str, schema: Json, title: str) -> Iterator[str]:
    custom = one["id"].startswith("custom.")
    place = schema[f"{kind}.custom"] if custom else schema["FieldConfig"]
    name = one["id"].removeprefix("custom.")
    if one["id"] in RENAMED and kind == "table":
        return
    yield from faults({name: one["value"]}, place, f"{title} override")
    if one["id"] == "color":
        yield from faults(one["value"], schema["FieldColor"], f"{title} override color")


def of_a_board(board: Json, schema: Json) -> Iterator[str]:
    """Faults of a dashboard, one sentence each."""
    known = {
        name: frozenset(OF_THE_DATA_SOURCE.get(name, set()) | UNWRITTEN.get(name, set())) for name in schema
    }
    yield from faults(board, schema["Dashboard"], board["uid"], known["Dashboard"])
    for section, found in (
        ("DashboardLink", board["links"]),
        ("AnnotationQuery", board["annotations"]["list"]),
        ("VariableModel", board["templating"]["list"]),
    ):
        for one in found:
            yield from faults(one, schema[section], section, known[section])
    for panel in panels(board):
        yield from of_a_panel(panel, schema)


@pytest.mark.parametrize("version", SCHEMAS)
def test_boards_fit_the_schema(version) -> None:
    assert [*SCHEMAS][-1].startswith("13.")
    assert {one for place in DASHBOARDS for one in of_a_board(read(place), SCHEMAS[version])} == set()


@pytest.mark.parametrize("version", SCHEMAS)
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"gridPos": {"h": 8, "w": 8, "x": 0, "y": "0"}}, "is not a number"),
        ({"options": {"legend": {"displayMode": "grid"}}}, "is not one of"),
        ({"options": {"legends": {}}}, "is unknown"),
    ],
)
def test_a_fault_is_found(version, change, fault) -> None:
    panel = next(one for place in DASHBOARDS for one in panels(read(place)) if one["type"] == "timeseries")
    assert any(fault in one for one in of_a_panel(panel | change, SCHEMAS[version]))
