"""The series of the link dashboard: its variables, their matchers, and which switch systems report a metric.

`device` and `port` of a switch's metrics are the variables `switch` and `switch_port` here, because `device` and `port` are
those of the host, as on the other dashboards.
"""

from __future__ import annotations

from boards.limits import MEDIUM
from boards.measures import growth, rate, row
from boards.model import Variable
from boards.rules import LINK_ENDS
from boards.scopes import CLUSTER, OF_FLEET
from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import SWITCH_SYSTEMS

INFO = "link:roce_switch_port:info"
PAUSE = f"link:roce_pfc_pause:ratio_rate{MEDIUM}"
FRAMES = f"link:roce_pfc_frames:rate{MEDIUM}"
ESTIMATED = f"link:roce_pfc_pause_estimated:ratio_rate{MEDIUM}"
ENABLED = "link:roce_pfc_enabled:bool"

SWITCH = f'{CLUSTER},device=~"$switch"'
SWITCH_PORT = f'{SWITCH},port=~"$switch_port"'
OF_SWITCH = f'{CLUSTER},switch=~"$switch"'
LINK = f'{OF_SWITCH},switch_port=~"$switch_port"'
_BY_HOST = f'{CLUSTER},instance=~"$host",netdev=~"$netdev"'


def _chosen(name: str, label: str, description: str, query: str, **more: bool) -> Variable:
    return Variable(name, label, description, query, multi=False, include_all=False, **more)


SERVICE = "switches"
"""The variable with the address of the switch service, which serves the pause tree."""
OF_LINK = (
    *OF_FLEET,
    Variable(
        "host", "Host", "Only switch ports with this host at the other end.",
        # one series per host: eight ports of 5,000 hosts take Prometheus a second
        f"label_values(roce_exporter_devices{{{CLUSTER}}}, instance)", multi=False, all_value=".*", filled_from="instance",
    ),
    Variable(
        "netdev", "Interface", "Only the switch port at the other end of this network device.",
        f'label_values({LINK_ENDS}{{{CLUSTER},instance=~"$host"}}, netdev)', multi=False, all_value=".*",
    ),
    _chosen("switch", "Switch", "The switch.", f"label_values({LINK_ENDS}{{{_BY_HOST}}}, switch)"),
    _chosen(
        "switch_port", "Switch port", "The port of the switch, and with it the link.",
        f'label_values({LINK_ENDS}{{{_BY_HOST},switch=~"$switch"}}, switch_port)',
    ),
    # the host's end follows from the port of the switch: it is not chosen, and links to the other dashboards pass it on
    *(
        _chosen(name, label, "At the other end of the link.", f"label_values({INFO}{{{LINK}}}, {name})", hidden=True)
        for name, label in (("instance", "Instance"), ("device", "Device"), ("port", "Port"))
    ),
    Variable(
        SERVICE, "Switch service", "Where `roce-exporter serve --switches.config` listens; its pause tree is for localhost, users and client certificates.",
        "http://localhost:10123", kind="textbox", multi=False, include_all=False,
    ),
)  # fmt: skip

SYSTEMS = {"sonic": "SONiC", "nxos": "NX-OS", "eos": "EOS", "cumulus": "Cumulus", "openconfig": "OpenConfig"}
"""The names of the switches' operating systems, by dialect."""

MODELS = ("eos", "openconfig")
"""The dialects that read OpenConfig's models, whose spellings are those of any dialect."""


def systems(name: str) -> tuple[str, ...]:
    """The switch systems that report a metric; empty if it does not come from a raw value of the switch."""
    known = {
        one
        for spelling in row(name).spellings
        for one in (MODELS if spelling.dialect == ANY else [spelling.dialect])
    }
    return tuple(SYSTEMS[dialect] for dialect in SWITCH_SYSTEMS if dialect in known)


def only(name: str) -> str:
    """The text of an empty panel for a metric that some switch systems lack."""
    return f"This switch does not report it: {', '.join(systems(name))} only"


def reported(*names: str) -> str:
    """The metrics' HELP texts as a list in Markdown, each with the switch systems that report it."""
    return "\n".join(f"- `{name}`{_by(name)}: {row(name).help}" for name in names)


def _by(name: str) -> str:
    found = systems(name)
    return f" ({', '.join(found)})" if found else ""


AT = "(cluster, device, port)"
_NEIGHBORS = f"max by (cluster, device, port, neighbor) (roce_switch_lldp_neighbor_info{{{SWITCH}}})"
# a port may have several neighbours, which would be an error in a join
NEIGHBOR = f"topk by {AT} (1, {_NEIGHBORS})"


def with_neighbor(expression: str, *by: str) -> str:
    """The maximum by switch, port and `by`, with the label `neighbor` of ports that have one."""
    labels = ", ".join(("cluster", "device", "port", *by))
    found = f"max by ({labels}) ({expression})"
    return f"({found} * on {AT} group_left (neighbor) {NEIGHBOR}) or on ({labels}) {found}"


def risen(name: str, scope: str) -> str:
    """The increase of a counter within the range shown, in whole events."""
    return f"round({growth(name, scope, '$__range')})"


def per_second(name: str, scope: str) -> str:
    """The rate of a counter over the last five minutes."""
    return rate(name, scope, MEDIUM)


def worst(expression: str) -> str:
    """The worst value within the range shown: a mean over it would hide a short fault."""
    return f"max_over_time(({expression})[$__range:1m])"
