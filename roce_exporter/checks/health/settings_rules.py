"""Rules about settings: the results of the audit, RoCE's and those of the IP side, and counters that a wrong setting moves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from roce_exporter.catalog.drivers import dialect_of
from roce_exporter.checks.finding import Finding, Side
from roce_exporter.checks.health.causes import MEDIUM, SETTLED, Rule, Symptom, causes_of, rose
from roce_exporter.checks.health.congestion_rules import SENT, SLOWED
from roce_exporter.checks.health.counter_rules import DISCARDS, counters_of, discards_too_long
from roce_exporter.checks.health.link_rules import UP, is_unused
from roce_exporter.checks.health.transport_rules import DROPPED, OUT_OF_SEQUENCE, is_much
from roce_exporter.checks.settings.auditor import ALL_CHECKS, CONSISTENCY
from roce_exporter.view.host_view import PortView, View
from roce_exporter.words import duration, share

MISCONFIGURED, MTU = "misconfigured", "roce_port_mtu_bytes"
CNP_PLACE = "roce_dcqcn_parameter"
WINDOW = 600.0
"""Seconds in which too long packets count."""
OVERSIZED = 10.0
"""Packets within the window: a single one can be a stray."""

SYMPTOMS = causes_of("settings")
"""What a wrong setting leads to on its port, by check."""
IP_CHECKS = {check: cause for check, (cause,) in causes_of("addresses").items()}
"""Checks of the IP side by what a failure means."""
AT_THE_OTHER_END = frozenset({"peer_pfc"})
"""Checks of what the switch announces (DCBX)."""
TITLES = {check.id: check.title for check in ALL_CHECKS}
SAID = re.compile(r"wrong setting of .* \(check ([a-z0-9_]+)\)$")
TWICE = "Another port of this host has an address of this port"
PAIR = "two ports of one kind are set differently: `check settings` lists in what"
STOPS = tuple(f"roce_global_pause_transmit_{kind}frames_total" for kind in ("", "xoff_"))


def wrong_setting(netdev: str, check: str) -> str:
    """A check that fails, as evidence: in the words of `check settings`, with its name there."""
    return f"wrong setting of {netdev or 'the port'}: {TITLES.get(check, check)} (check {check})"


def settings_first(host: View, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings; symptoms that a wrong setting of the same port can make are its consequences, whose own side is the better known one."""
    leads = {(one.device, one.port): one for one in findings if one.check == MISCONFIGURED}
    for finding in findings:
        lead = leads.get((finding.device, finding.port))
        if lead is finding:
            here = [one for one in findings if (one.device, one.port) == (lead.device, lead.port)]
            behind = [_behind(host, lead, one) for one in here]
            symptoms = [one for one, checks in zip(here, behind, strict=True) if checks]
            yield _with_symptoms(lead, symptoms, [check for checks in behind for check in checks])
        elif lead and _behind(host, lead, finding):
            yield replace(finding, caused_by=(MISCONFIGURED,))
        else:
            yield finding


def _behind(host: View, lead: Finding, finding: Finding) -> list[str]:
    """The failed checks of which a finding can be a symptom: not those that began to fail after it. Settings are read once a minute."""
    said = (SAID.match(one) for one in lead.evidence)
    checks = [found[1] for found in said if found and finding.check in SYMPTOMS.get(found[1], ())]
    began = {
        track.labels["check"]: after
        for track in host.of(lead.device, lead.port, "roce_config_check_ok")
        if finding.since
        for (_, was), (after, value) in pairwise(track.points)
        if value < was
    }
    return [check for check in checks if finding.since >= began.get(check, 0.0) - 2 * SETTLED]


def _with_symptoms(finding: Finding, symptoms: list[Finding], checks: list[str]) -> Finding:
    """The finding of wrong settings as the cause of these symptoms: as bad as the worst of them."""
    if not symptoms:
        return finding
    titles = ", ".join(TITLES.get(check, check) for check in dict.fromkeys(checks))
    return replace(
        finding,
        title=f"A wrong setting shows in the traffic: {titles}",
        status=max(finding.status, *(one.status for one in symptoms)),
        areas=finding.areas.union(*(one.areas for one in symptoms)),
        side=Side.LINK if {*checks} <= AT_THE_OTHER_END else finding.side,
        harm=max(finding.harm, *(one.harm for one in symptoms)) + 1,
    )


def _is_odd(port: PortView) -> bool:
    """Whether most ports that are compared agree, so that this one is the odd one; of two that differ, neither is."""
    found = [ok for one, ok in port.host.current("roce_config_check_ok") if one["check"] == CONSISTENCY.id]
    return found.count(0) * 2 < len(found)


def _has_twice(port: PortView) -> bool:
    """Whether the other owner of an address of the port is a port of this host, too."""
    own = {track.labels["address"] for track, _ in port.current("roce_gid_info")}
    others = [one for one, _ in port.host.current("roce_gid_info") if one["device"] != port.device]
    return any(one["address"] in own for one in others)


def _checks(port: PortView) -> Iterator[Symptom]:
    for track, ok in () if is_unused(port) and not port.highest(UP) else port.current("roce_config_check_ok"):
        # The rules of PCIe judge its width and speed: a card that is newer than its slot is slower for good, and healthy.
        if not ok and track.labels["check"] != "pcie":
            check = track.labels["check"]
            port.changed(track)
            cause = IP_CHECKS.get(check, MISCONFIGURED)
            said = wrong_setting(track.labels["netdev"], check)
            if cause == "duplicate_address" and _has_twice(port):
                yield Symptom(cause, (said,), side=Side.HOST, title=TWICE)
            elif check == CONSISTENCY.id and not _is_odd(port):
                yield Symptom(cause, (PAIR,), note=True)
            else:
                # The kernel adds a GID of each version that a card speaks: an old card is healthy.
                versions = {track.labels["type"][-2:] for track, _ in port.current("roce_gid_info")}
                yield Symptom(cause, (said,), note=check == "gid" and versions == {"v1"})


def _smaller_mtu(port: PortView) -> Iterator[Symptom]:
    """Packets that are too long, at a port with a smaller MTU than another port of the host: the port is the one that differs."""
    own = port.highest(MTU)
    names = [name for name in counters_of("path_mtu") if name != DISCARDS or discards_too_long(port)]
    if own is None or not any(port.rose(name, WINDOW) >= OVERSIZED for name in names):
        return
    most = max(other.highest(MTU) or 0.0 for other in port.host.ports())
    if own < most:
        said = f"its MTU is {own:.0f}, that of another port of this host {most:.0f}"
        yield Symptom("path_mtu", (said,), side=Side.HOST)


def _no_address(port: PortView) -> Iterator[Symptom]:
    """A RoCE port with a link and without any GID, on a host that has some elsewhere: no queue pair can be connected."""
    is_roce = port.label("roce_device_info", "protocol") == "roce" and port.highest("roce_port_up")
    shown = any(track.now for track in port.host.tracks("roce_gid_info"))
    gone = port.tracks("roce_port_netdev_info") and not port.current("roce_port_netdev_info")
    flows = any(port.rose(f"roce_port_{way}_packets_total", WINDOW) for way in ("receive", "transmit"))
    works = gone or flows or port.current("roce_gid_info")
    if port.host.end > port.host.begin and is_roce and shown and not works:
        yield Symptom("ip_misconfigured", ("no GID with an address, and nothing flows",))


def _nothing_lossless(port: PortView) -> Iterator[Symptom]:
    """RoCE without any flow control (IEEE 802.1Qbb, 802.3 annex 31B) at a port that drops what it receives."""
    enabled = [value for _, value in port.current("roce_pfc_enabled")]
    if not enabled or any(enabled) or any(port.rose(name, WINDOW) for name in STOPS):
        return
    dropped = max(port.rose(name, MEDIUM) for name in DROPPED)
    gaps = not port.tracks(OUT_OF_SEQUENCE) or port.rose(OUT_OF_SEQUENCE, MEDIUM)
    if gaps and dropped and is_much(port, dropped, port.rise("roce_port_receive_packets_total", MEDIUM)):
        yield Symptom("misconfigured", (wrong_setting(port.netdev, "pfc"), "PFC is on for no priority"))


def _cnps_in_the_queue(port: PortView) -> Iterator[Symptom]:
    """CNPs without a priority of their own, at a port that sends many and has PFC: they wait behind what they are to slow down (Zhu et al., SIGCOMM 2015)."""
    sent = port.rise(SENT, MEDIUM)
    place = port.highest(CNP_PLACE, role="np", parameter="cnp_priority")
    if sent and sent.rate > SLOWED and place == 0 and port.highest("roce_pfc_enabled"):
        yield Symptom(
            MISCONFIGURED,
            (wrong_setting(port.netdev, "cnp_priority"), f"{rose(sent, 'CNPs sent')}, all with priority 0"),
        )


def _outside(port: PortView) -> Iterator[Symptom]:
    rdma = port.rise("roce_port_transmit_bytes_total", MEDIUM)
    enabled = [track.labels for track, value in port.current("roce_pfc_enabled") if value]
    if rdma is None or not enabled or rdma.rate <= port.limit("lossless_traffic", "bytes_per_second"):
        return
    name, ratio = "roce_priority_transmit_bytes_total", port.limit("lossless_traffic", "ratio")
    places = [{key: labels[key] for key in ("netdev", "priority")} for labels in enabled]
    known = [rise.amount for place in places if (rise := port.rise(name, MEDIUM, **place))]
    inside = sum(known) / rdma.amount
    # What no priority carried did not leave: two programs of this host.
    others = port.rose(name, MEDIUM) / rdma.amount - inside
    if known and inside < ratio and (others > 1 - ratio or len(port.tracks(name)) == len(known)):
        said = f"{share(inside)} of the RDMA bytes left on lossless priorities"
        said += f" within {duration(rdma.seconds)}"
        yield Symptom("outside_lossless_priority", (said,), weight=1 - inside)


EITHER = frozenset({"irdma", "qedr"})
"""Drivers of cards that speak RoCE or iWARP, as they are set up; soft iWARP is above any card."""


def _other_protocol(port: PortView) -> Iterator[Symptom]:
    """A device that speaks iWARP next to one of its driver that speaks RoCE: a parameter of driver or firmware is left as it was delivered."""
    infos = [labels for labels, _ in port.host.current("roce_device_info")]
    mine = next((one for one in infos if one["device"] == port.device), None)
    roce = [
        one["device"]
        for one in infos
        if mine and (one["driver"], one["protocol"]) == (mine["driver"], "roce")
        if dialect_of(one["driver"]) in EITHER
    ]
    if mine and mine["protocol"] == "iw" and roce:
        yield Symptom(
            MISCONFIGURED,
            (f"it speaks iWARP, {', '.join(roce)} of the same driver RoCE: they cannot connect",),
        )


def suspects(host: View, findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings; of two ports of one driver that are set differently, the one with a symptom is the suspect."""
    known = {name for names in SYMPTOMS.values() for name in names}
    drivers = {labels["device"]: labels["driver"] for labels, _ in host.current("roce_device_info")}
    sick = [one for one in findings if one.is_wrong and one.check in known]
    wrong = {(one.device, one.port) for one in findings if one.check == MISCONFIGURED}
    for one in findings:
        alike = [other for other in sick if drivers.get(other.device) == drivers.get(one.device)]
        here = any((other.device, other.port) == (one.device, one.port) for other in alike)
        if PAIR not in one.evidence or not alike or here:
            yield one
            continue
        if rest := tuple(said for said in one.evidence if said != PAIR):
            yield replace(one, evidence=rest)
        device, port, netdev = alike[0].device, alike[0].port, alike[0].netdev
        if (device, port) not in wrong:
            yield replace(one, device=device, port=port, netdev=netdev, evidence=(PAIR,))


SETTINGS_RULES: tuple[Rule, ...] = (
    *(_checks, _smaller_mtu, _no_address, _nothing_lossless),
    *(_cnps_in_the_queue, _outside, _other_protocol),
)
"""Rules of one port."""
