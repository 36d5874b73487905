"""The panel on congestion control, shared by the host and the port dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boards.colours import CNP_HANDLED, CNP_IGNORED, CNP_SENT, MARKED
from boards.measures import meanings, rate
from boards.model import Query
from boards.panels import coloured, lines
from boards.scopes import PORT

if TYPE_CHECKING:
    from boards.model import Panel

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
