"""The rows of the link dashboard on the whole switch, and on its probe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boards.colours import ANSWERS, BAD, GOOD, ON_OFF, SEVERITY, TRIPPED, UNKNOWN, WARNING
from boards.configuration_series import with_units
from boards.limits import (
    HEADROOM,
    PAUSE_ELEVATED,
    PAUSE_HIGH,
    RECEIVED_SATURATED,
    SENT_SATURATED,
    percent,
    plain,
    steps,
)
from boards.link_queue import WINDOWS
from boards.link_series import (
    OF_SWITCH,
    PAUSE,
    SWITCH,
    only,
    per_second,
    reported,
    risen,
    systems,
    with_neighbor,
    worst,
)
from boards.measures import meanings, now, row
from boards.model import Panel, Query, cell, nothing
from boards.panels import by_name, history, lines, named, states
from boards.scopes import CLUSTER, to_pause_tree, to_switch_port
from boards.tables import as_text, graded, table, with_setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boards.model import Json

ROWS = 32
"""The most rows of a status history: below 14 pixels per row the names would overlap."""
MEASURED = "roce_switch_pfc_receive_pause_seconds_total"
ESTIMATED = "roce_switch_pfc_receive_pause_estimated_seconds_total"
WATCHDOG = "roce_switch_pfc_watchdog"
BUFFER = "roce_switch_buffer"


def _heat(
    title: str, reading: str, saturated: tuple[float, str], query: Query, ranked: str, *, nothing: str
) -> Panel:
    """The worst ports by `ranked`, which is one value per port for the range shown: ranked once for all times."""
    return history(
        title,
        f"One row per port, at most the {ROWS} worst; each cell is the share of time paused in the worst priority. Green: below "
        f"{percent(PAUSE_ELEVATED[0])}, then the alert limits: purple, orange from {percent(PAUSE_HIGH[0])}, red from "
        f"{percent(saturated[0])}. {reading}",
        "percentunit",
        Query(f"({query.expr}) and topk({ROWS}, {ranked})", query.legend),
        limits=steps(PAUSE_ELEVATED, PAUSE_HIGH, saturated),
        ever=ranked,
        nothing=nothing,
        height=14,
    )


def _received(window: str) -> str:
    """Time paused of each port by its neighbour, measured if the switch measures it."""
    return " or ".join(f"max by (port) (rate({name}{{{SWITCH}}}[{window}))" for name in (MEASURED, ESTIMATED))


_SENT = f'{PAUSE}{{toward="host",{OF_SWITCH}}}'
HEATS = (
    _heat(
        "Pause received, by port",
        "The neighbour pauses this port: a slow host, or a congested next switch. Where the switch measures no time, see *Ports by pause*.\n\n"
        + reported(MEASURED, ESTIMATED),
        SENT_SATURATED,
        Query(_received("$__rate_interval]"), "{{port}}"),
        f"max_over_time(({_received('5m]')})[$__range:5m] @ end())",
        nothing="not measured",
    ),
    _heat(
        "Pause sent, by port of a host",
        "This port pauses its host: the switch is congested. Measured by the hosts, so ports without a known host are missing.\n\n"
        + meanings("roce_pfc_receive_pause_seconds_total"),
        RECEIVED_SATURATED,
        Query(f"max by (switch_port, host) ({_SENT})", "{{switch_port}} {{host}}"),
        f"max by (switch_port, host) (max_over_time({_SENT}[$__range] @ end()))",
        nothing="no host known",
    ),
)


def _listed(
    title: str,
    reading: str,
    by: Sequence[str],
    parts: Mapping[str, str],
    overrides: Sequence[Json],
    *,
    always: str,
    sort: str,
    empty: str,
    height: int = 9,
) -> Panel:
    """A table with one line per port and `by`, whose columns are `parts`; each name must differ from a label."""
    lettered = tuple(zip("ABCDEFGHIJKL", parts, strict=False))
    renamed = {f"Value #{letter}": name for letter, name in lettered}
    queries = [cell(with_neighbor(part, *by)) for part in parts.values()]
    return table(
        title, reading, ("device", "port", "neighbor", *by, *renamed), *queries,
        nothing("port", empty, always),
        names=renamed,
        concealed=("device",),
        wide="neighbor",
        sort=next(key for key, name in renamed.items() if name == sort),
        overrides=(by_name("port", ("custom.width", 130), ("links", [to_switch_port()])), *overrides),
        joined=True,
        width=24,
        height=height,
        empty=empty,
    )  # fmt: skip


LOST = f"{BUFFER}_discards_total"
PAUSED = steps(PAUSE_HIGH, SENT_SATURATED)
_FRAMES_IN, _FRAMES_OUT = (f"roce_switch_pfc_{way}_frames_total" for way in ("receive", "transmit"))
PORTS = _listed(
    "Ports by pause",
    "Every port in its worst priority: the last five minutes, and the worst five minutes of the range shown. *paused*: share of time for which the neighbour stopped this port. Much received and "
    "little sent: the neighbour is the cause. Sent: this switch is congested. A dash: this switch system does not report it. Click a port to open it.\n\n"
    + reported(MEASURED, ESTIMATED, _FRAMES_IN, _FRAMES_OUT),
    (),
    {
        "paused": per_second(MEASURED, SWITCH),
        "paused, worst": worst(per_second(MEASURED, SWITCH)),
        "estimated": per_second(ESTIMATED, SWITCH),
        "estimated, worst": worst(per_second(ESTIMATED, SWITCH)),
        "received/s": per_second(_FRAMES_IN, SWITCH),
        "received/s, worst": worst(per_second(_FRAMES_IN, SWITCH)),
        "sent/s": per_second(_FRAMES_OUT, SWITCH),
        "sent/s, worst": worst(per_second(_FRAMES_OUT, SWITCH)),
    },
    (
        *(
            graded(name, "percentunit", PAUSED)
            for name in ("paused", "paused, worst", "estimated", "estimated, worst")
        ),
        *(
            by_name(name, ("unit", "pps"))
            for way in ("received", "sent")
            for name in (f"{way}/s", f"{way}/s, worst")
        ),
    ),
    always=per_second(_FRAMES_IN, SWITCH),
    sort="received/s, worst",
    empty="This switch does not count pause frames",
)
_PHY, _OPTICS = "roce_switch_phy", "roce_switch_transceiver"
_LIGHT, _LEAST = f"{_OPTICS}_receive_power_watts", f"{_OPTICS}_receive_power_low_alarm_watts"
_WRONG = {
    "CRC errors": f"{_PHY}_receive_crc_errors_total",
    "FEC lost": f"{_PHY}_fec_uncorrectable_blocks_total",
    "errors": f"{_PHY}_receive_errors_total",
    "errors sent": f"{_PHY}_transmit_errors_total",
    "discards": f"{_PHY}_receive_discards_total",
    "discards sent": f"{_PHY}_transmit_discards_total",
    "faults": f"{_PHY}_local_faults_total",
}
HEALTH = _listed(
    "Ports by health",
    "The cable, the module and the port itself, over the range shown, the most CRC errors first. *FEC lost*: blocks that error correction could not repair, each a lost packet. "
    "*bits wrong*: before correction; its rise announces *FEC lost*. *light*: the darkest lane against the module's own alarm, lost below 1. A dash: not reported.\n\n"
    + reported(*_WRONG.values(), f"{_PHY}_pre_fec_bit_error_ratio", _LIGHT, _LEAST, f"{_OPTICS}_temperature_celsius"),
    (),
    {
        **{said: risen(name, SWITCH) for said, name in _WRONG.items()},
        "bits wrong": now(f"{_PHY}_pre_fec_bit_error_ratio", SWITCH),
        "light": f"min by (cluster, device, port) ({now(_LIGHT, SWITCH)} > 0.000001) / on (cluster, device, port) max by (cluster, device, port) ({now(_LEAST, SWITCH)} > 0)",
        "module": f"max by (cluster, device, port) ({now(f'{_OPTICS}_temperature_celsius', SWITCH)})",
    },
    (
        *(graded(name, "none", steps((1, SEVERITY[WARNING]))) for name in ("CRC errors", "FEC lost", "errors", "errors sent", "faults")),
        by_name("bits wrong", ("unit", "sci")),
        graded("light", "none", steps((1, GOOD), base=SEVERITY[WARNING])),
        by_name("module", ("unit", "celsius")),
    ),
    always=risen(f"{_PHY}_receive_errors_total", SWITCH),
    sort="CRC errors",
    empty="This switch does not report the health of its ports",
)  # fmt: skip
WATCHDOGS = _listed(
    "Watchdogs",
    "By port and queue, over the range shown, the most trips first. Discards are packets that the watchdog threw away in both directions.\n\n"
    + reported(*(f"{WATCHDOG}_{what}" for what in ("enabled", "tripped", "trips_total", "restores_total", "transmit_discards_total", "receive_discards_total"))),
    ("queue",),
    {
        "monitors": now(f"{WATCHDOG}_enabled", SWITCH),
        "tripped": now(f"{WATCHDOG}_tripped", SWITCH),
        "trips": risen(f"{WATCHDOG}_trips_total", SWITCH),
        "restores": risen(f"{WATCHDOG}_restores_total", SWITCH),
        "discards sent": risen(f"{WATCHDOG}_transmit_discards_total", SWITCH),
        "discards received": risen(f"{WATCHDOG}_receive_discards_total", SWITCH),
    },
    (
        as_text("monitors", named({0: ("off", SEVERITY[WARNING]), 1: ("on", "")})),
        as_text("tripped", named({0: ("no", GOOD), 1: ("tripped", TRIPPED[1][1])})),
        graded("trips", "none", steps((1, BAD))),
    ),
    always=now(f"{WATCHDOG}_enabled", SWITCH),
    sort="trips",
    empty="This switch does not report its watchdog",
)  # fmt: skip
_USED = now(f"{BUFFER}_headroom_watermark_bytes", f"{WINDOWS},{SWITCH}")
_SPACE = now(f"{BUFFER}_headroom_bytes", SWITCH)
_GROUP = "cluster, device, port, priority_group"
HEADROOMS = _listed(
    "Headroom by port",
    "By port and priority group, the fullest first. *most used* is the maximum within the range shown, *lost* are packets discarded because buffer and "
    "headroom were full.\n\n"
    + reported(f"{BUFFER}_headroom_watermark_bytes", f"{BUFFER}_headroom_bytes", LOST),
    ("priority_group",),
    {
        "share": f"max by ({_GROUP}) (max_over_time({_USED}[$__range])) / (max by ({_GROUP}) ({_SPACE}) > 0)",
        "most used": f"max_over_time({_USED}[$__range])",
        "configured": _SPACE,
        "lost": risen(LOST, SWITCH),
    },
    (
        graded("share", "percentunit", steps(HEADROOM, (1, BAD))),
        by_name("most used", ("unit", "bytes"), ("custom.width", 110)),
        by_name("configured", ("unit", "bytes")),
        graded("lost", "none", steps((1, BAD))),
        by_name("lost", ("custom.width", 80)),
    ),
    always=_SPACE,
    sort="share",
    empty=only(f"{BUFFER}_headroom_bytes"),
)

SETTINGS = {
    "roce_switch_pfc_enabled": "PFC",
    f"{WATCHDOG}_enabled": "watchdog",
    f"{WATCHDOG}_acts": "watchdog acts",
    f"{WATCHDOG}_detection_seconds": "watchdog trips after",
    f"{WATCHDOG}_restoration_seconds": "watchdog restores after",
    f"{BUFFER}_headroom_bytes": "headroom",
    f"{BUFFER}_pause_threshold_bytes": "pause begins at",
    "roce_switch_config_ecn_enabled": "ECN",
    "roce_switch_config_ecn_minimum_bytes": "ECN begins at",
    "roce_switch_config_ecn_maximum_bytes": "ECN is strongest at",
    "roce_switch_config_ecn_probability_ratio": "ECN probability",
}
"""The settings of a port, in words."""
_PLACES = ("priority", "queue", "priority_group")
_SET = f'label_replace({{__name__=~"{"|".join(SETTINGS)}",{SWITCH}}}, "setting", "$1", "__name__", "(.*)")'
_BY = f"(cluster, device, setting, {', '.join(_PLACES)})"
_COUNTED = f'count_values by {_BY} ("value", {_SET})'
_NAMED = by_name("setting", ("mappings", [named({name: (said, "") for name, said in SETTINGS.items()})]))
_SYSTEMS = "\n".join(f"- {said}: {', '.join(systems(name))}" for name, said in SETTINGS.items())


def _value_texts() -> list[Json]:
    """Texts for values written as `setting=value`."""
    codes = {
        f"{name}={code}": (text, "")
        for name in SETTINGS
        if row(name).unit == "bool"
        for code, text in ON_OFF.items()
    }
    return [named(codes), *with_units({"_seconds": " s", "_bytes": " B"})]


VALUES = table(
    "What differs among the ports",
    "Settings with more than one value on this switch: number of ports with each value, the rarest first, at most 50. Ports to hosts should not differ; "
    f"ports to other switches may.\n\nReported by:\n{_SYSTEMS}",
    ("setting", *_PLACES, "value", "Value"),
    cell(f"bottomk(50, {with_setting(_COUNTED)} and on {_BY} count by {_BY} ({_COUNTED}) > 1)"),
    names={"Value": "ports"},
    wide="setting",
    sort="Value",
    rarest=True,
    overrides=(_NAMED, by_name("value", ("mappings", _value_texts()))),
    width=24,
    height=7,
    empty="Every setting has one value on this switch, or none is reported",
    proof="pfc-storm",
)  # fmt: skip
# the value of each port that differs, as a label, because its unit depends on the setting
_ODD = (
    f"count_values by (device, port, setting, {', '.join(_PLACES)}) "
    f'("value", {_SET} != on {_BY} group_left () quantile by {_BY} (0.5, {_SET}))'
)
ODD_ONES = table(
    "Ports that differ from the others",
    "Ports whose setting is not the median of all ports of this switch, at most 50. "
    f"Click a port to open it.\n\nReported by:\n{_SYSTEMS}",
    ("device", "port", "setting", *_PLACES, "value"),
    cell(f"topk(50, {with_setting(_ODD)})"),
    concealed=("device",),
    wide="setting",
    overrides=(
        _NAMED,
        by_name("value", ("mappings", _value_texts())),
        by_name("port", ("custom.width", 130), ("links", [to_switch_port()])),
    ),
    width=24,
    height=7,
    empty="No port differs, or no setting is reported",
    proof="pfc-storm",
)
_NOW = " or ".join(per_second(name, SWITCH) for name in (MEASURED, ESTIMATED))
_PEER = f"max by (cluster, device, port, peer, peer_port) (link:roce_switch_peer:info{{{SWITCH}}})"
_PAUSED_NOW = f"topk(10, max by (cluster, device, port) ({worst(_NOW)}) > {plain(PAUSE_ELEVATED[0])})"


def _hop(expression: str) -> str:
    """An expression for the ports in question, with the neighbour that pauses them and its port where it is a probed switch."""
    found = with_neighbor(f"max by (cluster, device, port) ({expression}) and {_PAUSED_NOW}")
    at = "on (cluster, device, port)"
    return f"({found}) * {at} group_left (peer, peer_port) {_PEER} or {at} ({found})"


NEXT_HOP = table(
    "Next hop that is paused",
    "Ports of this switch that their neighbours pause, with the last five minutes and the worst five of the range shown, at most 10: what this switch cannot send "
    f"there, it stops its own senders for. Click *peer* to follow the pause to the next switch; *port* opens the link or the whole pause tree.\n\n{reported(MEASURED, ESTIMATED)}",
    ("cluster", "device", "port", "neighbor", "peer", "peer_port", "Value #A", "Value #B"),
    cell(_hop(_NOW), proof="slow-receiver"),
    cell(_hop(worst(_NOW)), proof="slow-receiver"),
    nothing("port", "none is paused", _PAUSED_NOW),
    names={"Value #A": "paused", "Value #B": "paused, worst"},
    concealed=("cluster", "device"),
    wide="neighbor",
    overrides=(
        by_name("port", ("custom.width", 150), ("links", [to_switch_port(), to_pause_tree()])),
        by_name("peer", ("custom.width", 150), ("links", [to_switch_port("peer", "peer_port")])),
        by_name("peer_port", ("custom.width", 150)),
        graded("paused", "percentunit", PAUSED),
        graded("paused, worst", "percentunit", PAUSED),
    ),
    joined=True,
    sort="Value #B",
    width=24,
    height=5,
    empty="No port of this switch is paused, or it does not measure it",
)  # fmt: skip
SWITCH_PANELS = (*HEATS, PORTS, HEALTH, WATCHDOGS, HEADROOMS, VALUES, ODD_ONES)

PROBE, SOURCE = "roce_switch_probe", "roce_switch_source"
PROBE_PANELS = (
    states(
        "Sources of this switch",
        "Each source that the probe reads, and the probe itself. Series of a failed source are missing on this dashboard.\n\n"
        + reported(f"{PROBE}_success", f"{SOURCE}_up"),
        ANSWERS,
        Query(f"max by (device) ({now(f'{PROBE}_success', SWITCH)})", "probe of {{device}}"),
        Query(f"max by (source) ({now(f'{SOURCE}_up', SWITCH)})", "{{source}}"),
        ever=f"max_over_time({now(f'{PROBE}_success', SWITCH)}[$__range] @ end())",
        nothing=("probe", "no series of this switch", UNKNOWN),
        width=12,
        height=8,
    ),
    lines(
        "Duration of the probe",
        reported(f"{PROBE}_duration_seconds"),
        "s",
        Query(f"max by (device) ({now(f'{PROBE}_duration_seconds', SWITCH)})", "{{device}}"),
        empty="No series of this switch",
    ),
    table(
        "Switches whose probe or source fails",
        f"All switches of the cluster, at most 50. `/debug/probe?target=` of the switch process shows the reply.\n\n{reported(f'{SOURCE}_up', f'{PROBE}_success')}",
        ("cluster", "instance", "device", "source"),
        cell(f'topk(50, {now(f"{SOURCE}_up", CLUSTER)} == 0 or label_replace({now(f"{PROBE}_success", CLUSTER)} == 0, "source", "whole probe", "", ""))'),
        concealed=(),
        wide="source",
        overrides=(by_name("device", ("custom.width", 110)),),
        width=12,
        empty="Every source of every switch can be read",
        proof="pfc-storm",
    ),
    lines(
        "Unreadable values",
        reported(f"{SOURCE}_unreadable_values"),
        "none",
        Query(f"max by (source) ({now(f'{SOURCE}_unreadable_values', SWITCH)})", "{{source}}"),
        width=6,
        empty="No series of this switch",
    ),
    table(
        "Refresh intervals",
        reported(f"{SOURCE}_renewal_seconds"),
        ("source", "Value"),
        cell(f"max by (source) ({now(f'{SOURCE}_renewal_seconds', SWITCH)})"),
        names={"Value": "interval"},
        overrides=(by_name("interval", ("unit", "s")),),
        width=6,
        empty="This switch does not report them",
    ),
)  # fmt: skip
