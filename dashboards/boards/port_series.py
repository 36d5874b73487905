"""How the port dashboard shows counters: received and sent, events, and limits as lines."""

from __future__ import annotations

from typing import Any

from boards.colours import LIMIT, RECEIVED, SENT
from boards.measures import growth, meanings, rate
from boards.model import Json, Panel, Query
from boards.panels import coloured, lines
from boards.scopes import PORT

DIRECTED = "p{{priority}} {{netdev}}"
TWO_WAYS = ("receive", "transmit")
SAID = {"receive": "received", "transmit": "sent"}


def both(
    title: str, reading: str, unit: str, names: tuple[str, str], scope: str, *, factor: str = "", **place: Any,
) -> Panel:  # fmt: skip
    """Received and sent as two series in the colour of their direction."""
    queries = [
        Query(f"{factor}sum({rate(name, scope)})", said)
        for name, said in zip(names, SAID.values(), strict=True)
    ]
    overrides = [coloured("received", RECEIVED), coloured("sent", SENT)]
    return lines(title, f"{reading}\n\n{meanings(*names)}", unit, *queries, overrides=overrides, **place)


def event(name: str, said: str) -> Query:
    """The number of events per interval, as a sum of all network devices of the port."""
    return Query(f"round(sum({growth(name, PORT)}))", said)


def limit_line(matcher: str, what: str) -> Json:
    """An override for a series that is a limit, not a measurement."""
    return {
        "matcher": {"id": matcher, "options": what},
        "properties": [
            {"id": "color", "value": {"mode": "fixed", "fixedColor": LIMIT}},
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}},
            {"id": "custom.fillOpacity", "value": 0},
        ],
    }
