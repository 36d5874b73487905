"""Where pause started, from the series of all switches that Prometheus has recorded.

For a storm that is over, and for switches that several processes divide among them: each process has the last answers of its own switches
only. The tree is that of /debug/pause-tree, at the time of the most pause. And what the switch's end of a link says that the host's cannot:
the recording rules in alerts/rules/links.yml join both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

from roce_exporter.catalog import INDEX, named
from roce_exporter.checks.finding import Finding, NotChecked, Report, Side, Status, Topic
from roce_exporter.checks.thresholds import Thresholds
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.switches.interpretation import earlier
from roce_exporter.switches.pause import fabric as at
from roce_exporter.switches.pause import pause_report as say
from roce_exporter.switches.pause.pause_report import PauseTree
from roce_exporter.switches.pause.pause_tree import EVERYDAY, pause_tree
from roce_exporter.switches.switch_view import SwitchView
from roce_exporter.words import few

Ask = Callable[[str, float], Awaitable[list[tuple[dict[str, str], float]]]]
"""The labels and values of an expression of PromQL at a Unix time."""

WINDOW, STEP = 120.0, 15.0
"""Seconds over which rates are computed, and between two looks for the most pause; both are longer if there were too many looks."""
MOST_LOOKS = 1000
"""Prometheus refuses a query of more than 50 million samples: this number for each port and priority."""
FRAME_SECONDS = 65535 * 512 / 10e9
"""The longest that a PFC frame pauses a port of 10 Gb/s: 65,535 times 512 bits (IEEE 802.1Q, clause 36); a faster port less."""
PAUSED = (
    f"rate({at.PAUSE_SECONDS}[{{0:.0f}}s]) or rate({at.ESTIMATED_SECONDS}[{{0:.0f}}s])"
    f" or clamp_max({FRAME_SECONDS:.5f} * rate({at.RECEIVE_FRAMES}[{{0:.0f}}s]), 1)"
)
"""The best measure of each port and priority."""
STATES = (*at.LEVELS, *at.FACTS, named.SWITCH_SOURCE_UP.name)
NO_SWITCH = "where pause starts: no pause of a switch is recorded, or less than once a minute"
MOST_GAPS = 5
BY_NEIGHBOUR = (say.PAUSED, say.SLOW_RECEIVER, say.PAUSED_RECEIVER, say.LEAVES)
TITLES = {
    say.SLOW_RECEIVER: ("Pause starts at this host", Side.HOST),
    say.PAUSED_RECEIVER: ("Pause starts at this host, which is paused itself", Side.HOST),
    say.INCAST: ("Pause starts at this full queue of a switch", Side.FABRIC),
    say.LOOP: ("Queues of switches pause each other in a circle", Side.FABRIC),
}
PLACE = "cluster, instance, device, port"
AT_SWITCH = f"link:roce_host_port:info * on ({PLACE}) group_left () max by ({PLACE}) ({{0}})"
"""A value of the switch's end of each link to a host."""
AT_HOST = (
    f"max by (cluster, host, netdev) (link:roce_switch_port:info * on ({PLACE}, netdev) group_left ()"
    f" max by ({PLACE}, netdev) ({{0}}))"
)
SPEEDS = (
    f"{AT_SWITCH.format(at.SPEED)} / on (cluster, host, netdev) group_left () "
    f"{AT_HOST.format('roce_link_speed_bytes_per_second')}"
)
DAMAGED = {
    "packets with a wrong checksum": ("roce_switch_phy_receive_crc_errors_total", "crc_errors", "packets"),
    "blocks that error correction could not repair": (
        "roce_switch_phy_fec_uncorrectable_blocks_total",
        "link_errors",
        "errors",
    ),
}
"""By what is said: the counter, and the limit of `alerts/thresholds.yml` with its key."""
FAULT = "port:roce_switch_link_fault:info"
FAULTS = (
    f'max by (cluster, device, port, reason) (max_over_time({FAULT}{{{{reason!~"speed|crc_errors|uncorrectable_blocks"}}}}[{{0:.0f}}s])'
    f" or max_over_time({FAULT}[{{0:.0f}}s]) unless on ({PLACE}) link:roce_host_port:info)"
)
"""What the rules say of switch ports; that of links to hosts has findings with numbers."""
ALONE = (
    f"max by ({PLACE}, neighbor, neighbor_port) ({named.SWITCH_NEIGHBOR_INFO.name}) and on ({PLACE}) (roce_switch_pfc_enabled == 1)"
    f" unless on ({PLACE}) link:roce_host_port:info unless on ({PLACE}) link:roce_switch_peer:info"
)
"""Ports with PFC whose neighbour is no host with series, and no other switch."""
NO_LINKS = "both ends of links: link:roce_host_port:info of alerts/rules/links.yml is not recorded"
OPEN_TITLE = "Pause comes from here, for no reason that is known"


async def recorded_pause(ask: Ask, since: float, end: float) -> Report:
    """The starts of the most pause in the last `since` seconds up to `end`, which is Unix time.

    Raises:
        NetError: Prometheus cannot be queried.
    """
    step = max(STEP, since / MOST_LOOKS)
    window = max(WINDOW, step)
    paused = f"sum({PAUSED.format(window)})"
    span = f"[{since:.0f}s:{step:.0f}s]"
    most = [value for _, value in await ask(f"max_over_time(({paused}){span})", end)]
    if not most:
        return Report((), (NotChecked(NO_SWITCH),))
    if most[0] < EVERYDAY:
        return Report((), ())
    limit = most[0] * (1 - 1e-9)
    found = await ask(f"max_over_time((time() + 0 * (({paused}) >= {limit!r})){span})", end)
    worst = found[0][1] if found else end
    trees = [pause_tree(of_cluster) for of_cluster in (await _views(ask, worst, window)).values()]
    until = worst if end - worst > window else 0.0
    findings = [one for tree in trees for one in _findings(tree, until)]
    gaps = [f"{gap.switch}: {gap.text}" for tree in trees if findings for gap in tree.gaps[:MOST_GAPS]]
    return Report(tuple(findings), tuple(map(NotChecked, gaps)))


async def recorded_links(ask: Ask, limits: Thresholds, since: float, end: float) -> Report:
    """What both ends of each link between a host and a switch say together, in the last `since` seconds up to `end`; `limits` are those of `alerts/thresholds.yml`.

    Raises:
        NetError: Prometheus cannot be queried.
    """
    findings = await _faulty_links(ask, since, end)
    if not await ask("count(link:roce_host_port:info)", end):
        has_switches = any(value for _, value in await ask(f"count({at.SPEED})", end))
        return Report(tuple(findings), (NotChecked(NO_LINKS),) if has_switches else ())
    for labels, ratio in await ask(SPEEDS, end):
        if abs(ratio - 1) > 0.01:  # noqa: PLR2004 - what a float leaves of equal ones
            said = f"the switch's end runs at {ratio:.3g} times the speed of the host's"
            findings.append(_of_link(labels, "speed_differs", "The two ends of a link differ in speed", said))
    for what, (name, limit, key) in DAMAGED.items():
        above = f" > {limits[limit][key]!r} + 1"  # one proves nothing
        for labels, count in await ask(
            AT_SWITCH.format(f"round(increase({name}[{since:.0f}s]))") + above, end
        ):
            said = f"{count:,.0f} {what} arrived at the switch: sent by the host or damaged on the way from it, which the host cannot count"
            findings.append(
                _of_link(labels, "damaged_at_switch", "Packets from this host arrive damaged", said)
            )
    alone = [
        f"{one['device']} {one['port']} ({one.get('neighbor') or one.get('neighbor_port', 'unnamed')})"
        for one, _ in await ask(ALONE, end)
        if not at.SWITCH_PORT_NAME.fullmatch(one.get("neighbor_port", ""))
    ]
    line = f"hosts without series behind {few(sorted(alone))}: only the switch's end of their links is seen"
    return Report(tuple(findings), (NotChecked(line),) if alone else ())


async def _faulty_links(ask: Ask, since: float, end: float) -> list[Finding]:
    """The ports at which `RoceSwitchLinkFaulty` fires, whatever is at their other end."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for labels, _ in await ask(FAULTS.format(since), end):
        place = labels.get("cluster", ""), labels.get("device", ""), labels.get("port", "")
        reasons.setdefault(place, []).append(labels.get("reason", ""))
    titles = "switch_link", "The link at a switch port is faulty"
    return [
        _finding(f"{device} {port}", f"{device} {port}", *titles, f"the switch reports {few(sorted(found))}")
        for (_, device, port), found in sorted(reasons.items())
    ]


def _of_link(labels: Mapping[str, str], check: str, title: str, said: str) -> Finding:
    device = f"{labels.get('host', '')} {labels.get('netdev', '')}".strip()
    place = f"{labels.get('device', '')} {labels.get('port', '')}"
    return _finding(device, place, check, title, f"{place}: {said}")


def _finding(device: str, place: str, check: str, title: str, evidence: str) -> Finding:
    judged = Topic.FABRIC, check, title, Status.DEGRADED
    return Finding(*judged, device, side=Side.LINK, evidence=(evidence,), place=place)


async def _views(ask: Ask, time: float, window: float) -> dict[str, tuple[SwitchView, ...]]:
    """What all switches counted at this time, by cluster."""
    now: dict[tuple[str, str], dict[Series, float]] = {}
    before: dict[tuple[str, str], dict[Series, float]] = {}
    for labels, value in await ask(f'{{__name__=~"{"|".join(STATES)}"}}', time):
        row = INDEX.named[labels["__name__"]]
        series = Series(row, tuple(labels.get(label, "") for label in row.labels))
        now.setdefault((labels.get("cluster", ""), labels.get("device", "")), {})[series] = value
    for name in at.COUNTERS:
        row = INDEX.named[name]
        for labels, rate in await ask(f"rate({name}[{window:.0f}s])", time):
            series = Series(row, tuple(labels.get(label, "") for label in row.labels))
            place = labels.get("cluster", ""), labels.get("device", "")
            # Two answers whose difference is this rate.
            now.setdefault(place, {})[series] = rate * window
            before.setdefault(place, {})[series] = 0.0
    views: dict[str, tuple[SwitchView, ...]] = {}
    for (cluster, device), found in now.items():
        last, first = (
            Samples((*one,), (*one.values(),)) for one in (found, before.get((cluster, device), {}))
        )
        views[cluster] = (*views.get(cluster, ()), SwitchView(device, last, earlier(0.0, first), window))
    return views


def _findings(tree: PauseTree, until: float) -> Iterator[Finding]:
    ratios = [step.pause_ratio for step in tree.steps if step.pause_ratio is not None]
    # Of a switch without times the frames that its neighbour sends.
    ratios += [
        FRAME_SECONDS * step.frames_per_second
        for step in tree.steps
        if step.kind in BY_NEIGHBOUR and step.pause_ratio is None and step.frames_per_second is not None
    ]
    # Every healthy fabric has some pause.
    for step in tree.causes if max(ratios, default=1.0) >= EVERYDAY else ():
        title, side = TITLES.get(step.kind, (OPEN_TITLE, Side.UNKNOWN))
        way = [step]  # and the steps above it, which say how its pause reached a host
        while (above := way[-1].parent) is not None:
            way.append(tree.steps[above])
        yield Finding(
            Topic.FABRIC,
            "pause_start",
            title,
            Status.DEGRADED,
            f"{step.neighbor} {step.neighbor_port}".strip() if side is Side.HOST else str(step.place),
            side=side,
            evidence=tuple(one.sentence for one in way),
            until=until,
            harm=step.pause_ratio or 0.0,
        )
