"""How the port dashboard shows counters: received and sent, events, and limits as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boards.colours import CNP_HANDLED, CNP_IGNORED, CNP_SENT, LIMIT, MARKED, RECEIVED, SENT
from boards.measures import growth, meanings, rate
from boards.model import Json, Panel, Query
from boards.panels import coloured, lines
from boards.scopes import PORT

if TYPE_CHECKING:
    from boards.model import Panel

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


# ---- congestion control, shared by the host and the port dashboard

CHAIN = (
    ("roce_ecn_marked_packets_total", "marked packets", MARKED),
    ("roce_cnp_sent_total", "CNPs sent", CNP_SENT),
    ("roce_cnp_handled_total", "CNPs handled", CNP_HANDLED),
    ("roce_cnp_ignored_total", "CNPs ignored", CNP_IGNORED),
)


def chain(title: str, **place: Any) -> Panel:
    """From mark to reaction, as a sum of the selected ports."""
    return lines(
        title,
        "As receiver: marked packets arrive, CNPs are sent. As sender: CNPs arrive and are handled, and flows slow down. "
        "Marks without CNPs: the notification point is off. CNPs ignored: the reaction point is off.\n\n"
        + meanings(*(name for name, _, _ in CHAIN)),
        "pps",
        *(Query(f"sum({rate(name, PORT)})", said) for name, said, _ in CHAIN),
        overrides=[coloured(said, colour) for _, said, colour in CHAIN],
        empty="The NIC does not count marks or CNPs",
        **place,
    )
