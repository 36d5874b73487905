"""The rows of the port and of the fleet dashboard on probes: what `roce-exporter probe` measures, whether or not there is traffic.

Probers are other targets than the exporters of hosts: their job is another one, their `instance` the same.
"""

from __future__ import annotations

from boards.limits import PATH_LOSS, PROBES_TO_HOST, PROBES_TO_PATH, REMARKED, steps
from boards.measures import WINDOW, meanings, moved, rate
from boards.model import Query
from boards.panels import lines
from boards.scopes import CLUSTER

PROBED = f'{CLUSTER},instance=~"$instance",device=~"$device",port=~"$port"'
PROOF = "lossy"
EMPTY = "No prober runs on this host: see docs/probing.md"


def _share(name: str, by: str) -> str:
    return f"sum by ({by}) ({rate(name, PROBED)}) / (sum by ({by}) ({rate('roce_probe_sent_total', PROBED)}) > 0)"


def _mean(name: str, by: str, scope: str = PROBED) -> str:
    seconds, count = (
        f"sum by ({by}) (rate({name}_{part}{{{scope}}}[{WINDOW}]))" for part in ("sum", "count")
    )
    return f"{seconds} / ({count} > 0)"


PORT_PROBES = (
    lines(
        "Probes lost",
        "Share of the probes that this port sent, in its rack and to others (`fabric`), by class. Only one class: a queue. Only `fabric`: an uplink or a spine. "
        "The peer may be what loses: compare with *Peers that probes are lost to*.\n\n"
        + meanings("roce_probe_lost_total"),
        "percentunit",
        Query(_share("roce_probe_lost_total", "scope, class"), "{{scope}} {{class}}"),
        limits=steps(PATH_LOSS),
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Peers that probes are lost to",
        "Pairs that lost a probe in the range shown. Many peers: this port or its switch. One peer: that host. One source port of several: one path.\n\n"
        + meanings("roce_probe_pair_lost_total"),
        "pps",
        Query(
            f"topk(10, {moved('roce_probe_pair_lost_total', PROBED)})", "{{peer}} from port {{source_port}}"
        ),
        empty="No probe was lost, or no prober runs on this host",
        proof=PROOF,
    ),
    lines(
        "Time in the network",
        "There and back, without the time of either host. The time that the peer held the probe is how busy it is.\n\n"
        + meanings("roce_probe_network_seconds", "roce_probe_responder_seconds"),
        "s",
        Query(_mean("roce_probe_network_seconds", "scope"), "network, {{scope}}"),
        Query(_mean("roce_probe_responder_seconds", "scope"), "held by peers, {{scope}}"),
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Probes marked or changed",
        "Marked: a queue of the class is above its ECN threshold. Changed: a switch does not keep the DSCP. Dashed: alert limit for changed ones.\n\n"
        + meanings("roce_probe_marked_total", "roce_probe_remarked_total"),
        "percentunit",
        Query(_share("roce_probe_marked_total", "scope"), "marked, {{scope}}"),
        Query(_share("roce_probe_remarked_total", "scope"), "DSCP changed, {{scope}}"),
        limits=steps(REMARKED),
        empty=EMPTY,
        proof=PROOF,
    ),
)
FLEET_PROBES = (
    lines(
        "Probes lost on paths, by rack and rail",
        "Share of what the ports of a rack sent, without what single hosts lose: a ToR, its uplinks or a spine. Counters can be clean. Dashed: alert limit. "
        "`roce-exporter check fabric --prometheus=URL` names the part.",
        "percentunit",
        Query(f"topk(10, {PROBES_TO_PATH}{{{CLUSTER}}})", "{{cluster}} rack {{rack}} rail {{rail}}"),
        limits=steps(PATH_LOSS),
        empty="No path loses probes, or no prober is scraped: see docs/probing.md",
        proof=PROOF,
    ),
    lines(
        "Hosts that probes are lost to",
        "Lost per second by at least two other hosts. A host that is alone far above the others is stopped, or its port, NIC or cable is bad.",
        "pps",
        Query(f"topk(10, {PROBES_TO_HOST}{{{CLUSTER}}})", "{{peer}}"),
        empty="No host loses probes, or no prober is scraped: see docs/probing.md",
        proof=PROOF,
    ),
)
