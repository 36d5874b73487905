"""The rows of the link dashboard on its two ends: who they are, what they set, and how they pause each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.colours import (
    BOTH_ENDS,
    CABLE,
    CRITICAL,
    GOOD,
    LINK,
    NOTHING,
    ON_OFF,
    SEVERITY,
    TRIPPED,
    UNKNOWN,
    WARNING,
)
from boards.limits import MEDIUM, PAUSE_HIGH, RECEIVED_SATURATED, SENT_SATURATED, steps
from boards.link_series import ENABLED, ESTIMATED, FRAMES, INFO, PAUSE, SWITCH_PORT, reported, risen
from boards.link_series import LINK as THIS_LINK
from boards.link_switch import NEXT_HOP
from boards.measures import meanings, moved, now, rate, still
from boards.model import Json, Panel, Query, cell, nothing
from boards.panels import by_name, by_priority, lines, named, number, override, states
from boards.scopes import PORT, to_pause_tree, to_port
from boards.tables import as_text, graded, table

if TYPE_CHECKING:
    from collections.abc import Mapping


NO_HOST = "No host known"
NO_RULES = "No host is known behind this port, or the rules of alerts/roce.rules.yml are missing"
WATCHDOG = "roce_switch_pfc_watchdog"
SWITCH_SPEED = "roce_switch_link_speed_bytes_per_second"
BOTH = "One series per end and priority, solid for the host and dashed for the switch; they should agree."


def _enabled(end: str) -> str:
    """By priority whether this end has PFC on. A priority that only the other end reports is off here, unless this end reports none."""
    own = f'{ENABLED}{{end="{end}",{THIS_LINK}}}'
    return (
        f"(max by (priority) ({own}) or (0 * max by (priority) ({ENABLED}{{{THIS_LINK}}}) and on () {own}))"
    )


DIFFERS = f"abs({_enabled('host')} - {_enabled('switch')})"
"""1 for priorities for which only one end has PFC on."""
USED = f"max by (priority) ({ENABLED}{{{THIS_LINK}}}) == 1"
"""Priorities with PFC at either end."""
DAMAGES = {
    "wrong checksum": "receive_crc_errors_total",
    "beyond repair by FEC": "fec_uncorrectable_blocks_total",
}
OF_END = {"host": ("roce_phy", "roce_transceiver", PORT), "switch": ("roce_switch_phy", "roce_switch_transceiver", SWITCH_PORT)}  # fmt: skip
LIGHT = "receive_power_watts", "receive_power_low_alarm_watts"
NO_LIGHT = -40
"""Decibels from the alarm that are shown for no light at all."""
DARK = steps((NO_LIGHT, SEVERITY[WARNING]), (0, GOOD), base=NOTHING)
PROOFS = {"host": "optics", "switch": "lossy"}


def _damages(end: str) -> str:
    """1 if packets arrived damaged at this end within the range shown."""
    phy, _, scope = OF_END[end]
    crc, fec = (f"sum({risen(f'{phy}_{what}', scope)})" for what in DAMAGES.values())
    return f"(({fec} > 0) or {crc} or {fec}) > bool 0"


def _light(end: str) -> str:
    """Decibels of the darkest lane above the module's own alarm."""
    _, optics, scope = OF_END[end]
    light, least = (now(f"{optics}_{what}", scope) for what in LIGHT)
    return f"10 * log10(clamp_min(min({light}) / max({least} > 0), 1e{NO_LIGHT // 10}))"


NUMBERS_PANELS = (
    number(
        "Both ends of the cable",
        "State and speed, which must be the same.\n\n"
        + meanings("roce_port_up", "roce_link_speed_bytes_per_second")
        + "\n"
        + reported("roce_switch_link_up", SWITCH_SPEED),
        "none",
        Query(f"max({now('roce_port_up', PORT)})", "host"),
        Query(f"max({now('roce_switch_link_up', SWITCH_PORT)})", "switch"),
        Query(f"8 * max({now('roce_link_speed_bytes_per_second', PORT)})", "host's speed"),
        Query(f"8 * max({now(SWITCH_SPEED, SWITCH_PORT)})", "switch's speed"),
        overrides=[
            *(by_name(name, ("mappings", [named(LINK)])) for name in OF_END),
            *(by_name(name, ("unit", "bps")) for name in ("host's speed", "switch's speed")),
        ],
        width=8,
        empty=NO_HOST,
    ),
    number(
        "Cable",
        "Which direction damages packets, over the range shown, as the end counts at which they arrive; and how far the light of the darkest lane is above the module's own alarm. The host reports neither in the metric set lean.\n\n"
        + meanings(*(f"roce_phy_{what}" for what in DAMAGES.values()))
        + "\n"
        + reported(*(f"roce_switch_phy_{what}" for what in DAMAGES.values()), *(f"roce_switch_transceiver_{what}" for what in LIGHT)),
        "none",
        *(Query(_damages(end), f"to the {end}") for end in OF_END),
        *(Query(_light(end), f"light at the {end}", proof=PROOFS[end]) for end in OF_END),
        overrides=[
            *(by_name(f"to the {end}", ("mappings", [named(CABLE)])) for end in OF_END),
            *(by_name(f"light at the {end}", ("unit", "dB"), ("thresholds", DARK)) for end in OF_END),
        ],
        width=8,
        empty=NO_HOST,
    ),
    number(
        "Watchdog",
        "Queues of this port that the switch's watchdog holds now, and storms that it found in the range shown.\n\n"
        + reported(f"{WATCHDOG}_tripped", f"{WATCHDOG}_trips_total"),
        "none",
        Query(f"sum({now(f'{WATCHDOG}_tripped', SWITCH_PORT)})", "tripped"),
        Query(f"sum({risen(f'{WATCHDOG}_trips_total', SWITCH_PORT)})", "storms"),
        limits=steps((1, SEVERITY[CRITICAL])),
        width=5,
        empty="Not reported",
    ),
    number(
        "Disagreement",
        "Priorities for which only one end has PFC on. Such an end sends pause that the other ignores, and packets are lost.",
        "none",
        Query(f"sum({DIFFERS})", "priorities"),
        limits=steps((1, SEVERITY[WARNING])),
        width=3,
        empty=NO_HOST,
    ),
)  # fmt: skip
ENDS = table(
    "Both ends",
    "The host and the switch port, joined by the LLDP table of the switch or by `links` of its configuration. Click the device to open the "
    f"host's port.\n\n{reported('roce_switch_lldp_neighbor_info')}",
    ("cluster", "job", "instance", "host", "device", "port", "netdev", "switch", "switch_port", "Value"),
    cell(f"({INFO}{{{THIS_LINK}}} * on (cluster, instance, device, port) group_left (job) max by (cluster, job, instance, device, port) "
        f"({now('roce_port_up', PORT)})) or on (switch, switch_port, netdev) {INFO}{{{THIS_LINK}}} - 2"),
    names={"Value": "host port"},
    concealed=("cluster", "job", "port"),
    wide="host",
    overrides=(
        by_name("device", ("links", [to_port()])),
        by_name("switch", ("custom.width", 150)),
        by_name("switch_port", ("custom.width", 150), ("links", [to_pause_tree("switch", "switch_port")])),
        as_text("host port", named({-1: ("no answer", SEVERITY[WARNING])} | LINK)),
    ),
    width=24,
    height=4,
    empty=NO_RULES,
)  # fmt: skip


def _on_or_off(column: str) -> Json:
    return by_name(column, ("mappings", [named({value: (text, "") for value, text in ON_OFF.items()})]))


AGREEMENT = table(
    "PFC by priority",
    "Priorities with PFC at either end; it must be on for the same ones at both. A priority that an end does not list is off there.\n\n"
    + reported("roce_switch_pfc_enabled")
    + "\n"
    + meanings("roce_pfc_enabled"),
    ("priority", "Value #A", "Value #B", "Value #C"),
    *(
        cell(f"{expression} and {USED}")
        for expression in (_enabled("host"), _enabled("switch"), DIFFERS)
    ),
    nothing("priority", "no PFC", f"({USED})"),
    names={"Value #A": "host", "Value #B": "switch", "Value #C": "both ends"},
    overrides=(_on_or_off("host"), _on_or_off("switch"), as_text("both ends", named(BOTH_ENDS))),
    joined=True,
    width=8,
    height=5,
    empty=NO_RULES,
)  # fmt: skip
_MONITORED = now(f"{WATCHDOG}_enabled", SWITCH_PORT)
_TRIPPED = now(f"{WATCHDOG}_tripped", SWITCH_PORT)
WATCHED = states(
    "Watchdog by queue",
    "State of the switch's PFC watchdog for each queue of this port. While it is tripped, the switch does not obey the host's pause and discards "
    f"the queue's packets.\n\n{reported(f'{WATCHDOG}_enabled', f'{WATCHDOG}_tripped')}",
    TRIPPED,
    Query(f"max by (queue) ({_TRIPPED} == 1) or max by (queue) (2 - 2 * {_MONITORED}) or max by (queue) ({_TRIPPED})", "queue {{queue}}"),
    ever=f"max_over_time({_MONITORED}[$__range] @ end()) or max_over_time({_TRIPPED}[$__range] @ end())",
    nothing=("watchdog", "not reported", UNKNOWN),
    width=16,
    height=5,
)  # fmt: skip


def _by_queue(name: str) -> Query:
    return cell(f"max by (queue) ({now(name, SWITCH_PORT)})")


SETTINGS = {
    "monitors": f"{WATCHDOG}_enabled",
    "acts": f"{WATCHDOG}_acts",
    "trips after": f"{WATCHDOG}_detection_seconds",
    "restores after": f"{WATCHDOG}_restoration_seconds",
}
_LETTERED = tuple(zip("ABCD", SETTINGS, strict=True))
WATCHDOG_SETTINGS = table(
    "Watchdog settings",
    f"By queue of this port; a dash means that this switch system does not report it.\n\n{reported(*SETTINGS.values())}",
    ("queue", *(f"Value #{letter}" for letter, _ in _LETTERED)),
    *(_by_queue(name) for name in SETTINGS.values()),
    nothing("queue", "none", _MONITORED),
    names={f"Value #{letter}": name for letter, name in _LETTERED},
    overrides=(
        _on_or_off("monitors"),
        by_name("acts", ("mappings", [named({0: ("only reports", SEVERITY[WARNING]), 1: ("yes", "")})]), ("custom.width", 90)),
        by_name("trips after", ("unit", "s")),
        by_name("restores after", ("unit", "s")),
    ),
    joined=True,
    width=12,
    height=7,
    empty="This switch does not report its watchdog",
)  # fmt: skip
_DISCARDS = {
    f"{WATCHDOG}_transmit_discards_total": "to the host, queue {{queue}}",
    f"{WATCHDOG}_receive_discards_total": "from the host, queue {{queue}}",
}
WATCHDOG_DISCARDS = lines(
    "Packets that the watchdog discarded",
    f"The cure of a storm costs these packets.\n\n{reported(*_DISCARDS)}",
    "pps",
    *(Query(moved(name, SWITCH_PORT), said, proof="pfc-storm") for name, said in _DISCARDS.items()),
    *(
        Query(still(name, SWITCH_PORT), f"none {said.partition(',')[0]}", instead=True)
        for name, said in _DISCARDS.items()
    ),
    width=12,
    height=7,
    empty="This switch does not count them",
)


def _rows(end: str, found: Mapping[str, Mapping[str, str]]) -> Query:
    """What one end says, with a row per text."""
    said = (
        f'label_replace({found[text][end]}, "what", "{place}. {text}", "", "")'
        for place, text in enumerate(found, 1)
        if end in found[text]
    )
    return cell(" or ".join(said))


def _two_columns(
    title: str, reading: str, unit: str, found: Mapping[str, Mapping[str, str]], limits: Json
) -> Panel:
    """A row per fact, with the host's view next to the switch's."""
    return table(
        title,
        reading,
        ("what", "Value #A", "Value #B"),
        _rows("host", found),
        _rows("switch", found),
        nothing("what", NO_RULES, f"{ENABLED}{{{THIS_LINK}}}"),
        names={"Value #A": "host", "Value #B": "switch"},
        overrides=(
            graded("host", unit, limits),
            graded("switch", unit, limits),
            *(by_name(end, ("custom.width", 110)) for end in ("host", "switch")),
        ),
        joined=True,
        sort="what",
        rarest=True,
        height=7,
        empty=NO_RULES,
    )  # fmt: skip


def _share(end: str, toward: str, window: str = "") -> str:
    own = f'{PAUSE}{{end="{end}",toward="{toward}",{THIS_LINK}}}'
    more = f"{ESTIMATED}{{{THIS_LINK}}}" if end == "switch" else ""
    found = (
        f"max(max_over_time({one}[{window}]))" if window else f"max({one})" for one in (own, more) if one
    )
    return f"({' or '.join(found)})"


def _rate(name: str, scope: str) -> str:
    return f"sum({rate(name, scope, MEDIUM)})"


SIDES = _two_columns(
    "Time paused, both ends",
    f"In the worst priority. The two views of one direction should agree. *To the switch*: the host receives too slowly and is the cause. *To the host*: the switch is "
    f"congested, or paused by its next hop; no switch measures the time of the pause that it sends.\n\n{reported('roce_switch_pfc_receive_pause_seconds_total', 'roce_switch_pfc_receive_pause_estimated_seconds_total')}",
    "percentunit",
    {
        "to the switch, last 5 minutes": {end: _share(end, "switch") for end in ("host", "switch")},
        "to the switch, worst 5 minutes": {
            end: _share(end, "switch", "$__range") for end in ("host", "switch")
        },
        "to the host, last 5 minutes": {"host": _share("host", "host")},
        "to the host, worst 5 minutes": {"host": _share("host", "host", "$__range")},
    },
    steps(PAUSE_HIGH, SENT_SATURATED),
)
COUNTS = _two_columns(
    "Frames and losses per second, both ends",
    "The last five minutes. Each end counts what arrives there damaged.\n\n"
    + reported(
        "roce_switch_buffer_discards_total",
        "roce_switch_pfc_receive_frames_total",
        *(f"roce_switch_phy_{what}" for what in DAMAGES.values()),
    ),
    "none",
    {
        "pause frames to the switch": {
            end: f'sum({FRAMES}{{end="{end}",toward="switch",{THIS_LINK}}})' for end in ("host", "switch")
        },
        "pause frames to the host": {
            end: f'sum({FRAMES}{{end="{end}",toward="host",{THIS_LINK}}})' for end in ("host", "switch")
        },
        "lost on receive, buffer full": {
            "host": _rate("roce_buffer_discards_total", PORT),
            "switch": _rate("roce_switch_buffer_discards_total", SWITCH_PORT),
        },
        **{
            f"arrived damaged, {said}": {
                end: _rate(f"{phy}_{what}", scope) for end, (phy, _, scope) in OF_END.items()
            }
            for said, what in DAMAGES.items()
        },
    },
    steps(base=NOTHING),
)
ENDS_PANELS = (*NUMBERS_PANELS, ENDS, SIDES, COUNTS, NEXT_HOP, AGREEMENT, WATCHED)
WATCHDOG_PANELS = (WATCHDOG_SETTINGS, WATCHDOG_DISCARDS)

BY_END = "p{{priority}} {{end}}"
DASHED_IF_SWITCH = override(
    "byRegexp", "/switch$/", [("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}), ("custom.lineWidth", 2)]
)
TOWARD = {"switch": "to the switch", "host": "to the host"}


def _paused(
    toward: str, reading: str, saturated: tuple[float, str], *more: Query, explained: str = ""
) -> Panel:
    return lines(
        f"Time paused: {TOWARD[toward]}",
        f"Share of time. {reading} Dashed horizontal lines: alert limits.{explained}",
        "percentunit",
        Query(f'{PAUSE}{{toward="{toward}",{THIS_LINK}}}', BY_END),
        *more,
        limits=steps(PAUSE_HIGH, saturated),
        overrides=[*by_priority(), DASHED_IF_SWITCH],
        height=9,
        empty="Neither end measures time paused, or no host is known",
    )


def _frames(toward: str) -> Panel:
    return lines(
        f"Pause frames: {TOWARD[toward]}",
        f"{BOTH}\n\n"
        + reported(f"roce_switch_pfc_{'receive' if toward == 'switch' else 'transmit'}_frames_total")
        + "\n"
        + meanings(f"roce_pfc_{'transmit' if toward == 'switch' else 'receive'}_frames_total"),
        "pps",
        Query(f'{FRAMES}{{toward="{toward}",{THIS_LINK}}}', BY_END),
        overrides=[*by_priority(), DASHED_IF_SWITCH],
        empty="Neither end counts pause frames by priority, or no host is known",
    )


def _difference(toward: str) -> str:
    host, switch = (
        f'max by (priority, toward) ({FRAMES}{{end="{end}",toward="{toward}",{THIS_LINK}}})'
        for end in ("host", "switch")
    )
    return f"({host} - {switch}) / (({host} + {switch}) / 2 > 0)"


PAUSE_PANELS = (
    _paused(
        "switch",
        f"The host pauses the switch: it receives too slowly. {BOTH}",
        SENT_SATURATED,
        Query(f"{ESTIMATED}{{{THIS_LINK}}}", "p{{priority}} estimated by the switch", proof="slow-receiver"),
        explained="\n\n"
        + reported(
            "roce_switch_pfc_receive_pause_seconds_total",
            "roce_switch_pfc_receive_pause_estimated_seconds_total",
        )
        + "\n"
        + meanings("roce_pfc_transmit_pause_seconds_total"),
    ),
    _paused(
        "host",
        "The switch pauses the host: it is congested, or paused itself. Only the host measures this: no switch system reports how long the pause lasted that it sent.",
        RECEIVED_SATURATED,
        explained="\n\n" + meanings("roce_pfc_receive_pause_seconds_total"),
    ),
    _frames("switch"),
    _frames("host"),
    lines(
        "Difference of the frames of both ends",
        "Frames of the host minus frames of the switch, as a share of their mean. Near zero if both count the same frames; lasting differences mean a bad cable, "
        "another priority, or a NIC that does not count. Single peaks come from readings at different times. Gaps: no frames.",
        "percentunit",
        *(Query(_difference(toward), f"p{{{{priority}}}} {said}") for toward, said in TOWARD.items()),
        overrides=by_priority(),
        minimum=None,
        empty="Not both ends count, or no pause frames",
        proof="pfc-storm",
    ),
    lines(
        "Pauses at the switch",
        "How often the host stopped the switch.\n\n"
        + reported("roce_switch_pfc_receive_transitions_total", "roce_switch_global_pause_receive_frames_total", "roce_switch_global_pause_transmit_frames_total"),
        "cps",
        Query(moved("roce_switch_pfc_receive_transitions_total", SWITCH_PORT), "p{{priority}} changes", proof="pfc-storm"),
        Query(moved("roce_switch_global_pause_receive_frames_total", SWITCH_PORT), "global pause received, {{port}}", proof="pfc-storm"),
        Query(moved("roce_switch_global_pause_transmit_frames_total", SWITCH_PORT), "global pause sent, {{port}}", proof="pfc-storm"),
        Query(still("roce_switch_pfc_receive_transitions_total", SWITCH_PORT), "no change", instead=True),
        Query(still("roce_switch_global_pause_receive_frames_total", SWITCH_PORT), "no global pause", instead=True),
        overrides=by_priority(),
        empty="This switch does not count them",
    ),
)  # fmt: skip
