"""How the configuration dashboard shows settings: how many ports have each value."""

from __future__ import annotations

from boards.measures import meanings, now
from boards.model import Panel, Query
from boards.panels import by_name, hidden, table
from boards.scopes import HOST, to_host, to_port

FIELDS = ("cluster", "job", "instance", "device", "port", "netdev")
LINKS = (
    by_name("instance", ("links", [to_host()])),
    by_name("device", ("links", [to_port()])),
    hidden("job"),
)


def spread(title: str, metric: str, by: str, reading: str, unit: str = "none", **place: object) -> Panel:
    """How many ports have each value of a setting: in health one bar, or one per kind of NIC."""
    # count_values writes the value into a label, so the answer is as small as the number of different settings
    counted = f'count_values by (cluster{by}) ("value", {now(metric, HOST)})'
    columns = ("cluster", *(name for name in by.strip(", ").split(", ") if name), "value", "Value")
    return table(
        title,
        f"How many ports have each value; the odd ones out are the rare lines. {reading}\n\n{meanings(metric)}",
        columns,
        Query(counted, form="table", instant=True),
        names={"Value": "ports"},
        sort="Value",
        rarest=True,
        overrides=(by_name("value", ("unit", unit)),),
        **place,  # type: ignore[arg-type]
    )
