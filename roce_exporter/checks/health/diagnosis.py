"""All rules over one history: findings in order of harm, and what could not be seen."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from roce_exporter.checks.health.causes import CAUSES, EXPLAINS
from roce_exporter.checks.health.congestion_rules import CONGESTION_RULES
from roce_exporter.checks.health.driver_rules import DEVICE_DRIVER_RULES
from roce_exporter.checks.health.link_rules import LINK_RULES
from roce_exporter.checks.health.optics_rules import DEVICE_HEAT_RULES, OPTICS_RULES
from roce_exporter.checks.health.owner_rules import OWNER_RULES
from roce_exporter.checks.health.pause_rules import PAUSE_RULES
from roce_exporter.checks.health.pcie_rules import PCIE_DEVICE_RULES, PCIE_PORT_RULES
from roce_exporter.checks.health.port_fault import Diagnosis, PortFault
from roce_exporter.checks.health.settings_rules import SETTINGS_RULES
from roce_exporter.checks.health.sight import unseen_of
from roce_exporter.checks.health.transport_rules import TRANSPORT_RULES
from roce_exporter.checks.health.wire_rules import WIRE_RULES
from roce_exporter.view.host_view import PortView, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.checks.health.port_fault import Cause
    from roce_exporter.checks.health.sign import Rule, Sign
    from roce_exporter.view.history import History

PORT_RULES: tuple[Rule, ...] = (
    *LINK_RULES,
    *OPTICS_RULES,
    *PCIE_PORT_RULES,
    *PAUSE_RULES,
    *CONGESTION_RULES,
    *TRANSPORT_RULES,
    *SETTINGS_RULES,
    *WIRE_RULES,
)
DEVICE_RULES: tuple[Rule, ...] = (
    *DEVICE_DRIVER_RULES,
    *DEVICE_HEAT_RULES,
    *PCIE_DEVICE_RULES,
    *OWNER_RULES,
)

_PLACES = {cause.name: place for place, cause in enumerate(CAUSES)}


def diagnose(history: History) -> Diagnosis:
    """What is wrong with the host's ports, the worst first, and what could not be judged.

    A history without a moment, or of a host without RDMA devices, has no findings and says so in `unseen`.
    """
    if not history:
        return Diagnosis((), ("no samples at all",))
    host = View(history)
    if not host.devices():
        return Diagnosis((), ("no RDMA device in these samples",))
    findings = [
        *(fault for device in host.devices() for fault in _faults(PortView(host, device), DEVICE_RULES)),
        *(fault for port in host.ports() for fault in _faults(port, PORT_RULES)),
    ]
    ordered = sorted(_explained(findings), key=lambda fault: (-fault.harm, fault.device, fault.port))
    return Diagnosis(tuple(ordered), tuple(unseen_of(host)))


def _faults(port: PortView, rules: Sequence[Rule]) -> Iterator[PortFault]:
    """The findings of these rules, one per cause: signs of the same cause are one finding with all their evidence."""
    merged: dict[str, Sign] = {}
    for rule in rules:
        for sign in rule(port):
            merged[sign.cause.name] = _merge(merged.get(sign.cause.name), sign)
    for sign in merged.values():
        yield _fault(port, sign)


def _merge(before: Sign | None, sign: Sign) -> Sign:
    if before is None:
        return sign
    return before._replace(
        evidence=tuple(dict.fromkeys((*before.evidence, *sign.evidence))),
        against=tuple(dict.fromkeys((*before.against, *sign.against))),
        side=before.side or sign.side,
        weight=max(before.weight, sign.weight),
    )


def _fault(port: PortView, sign: Sign) -> PortFault:
    cause = sign.cause
    names = {"device": port.device, "port": port.port, "netdev": port.netdev or "NETDEV"}
    return PortFault(
        port.device,
        port.port,
        cause,
        sign.side or cause.side,
        sign.evidence,
        sign.against,
        tuple(step.format_map(names) for step in cause.next),
        _harm(cause) + min(sign.weight, 1.0) / 2,
    )


def _harm(cause: Cause) -> float:
    """Three digits from the health, and one per place in the list of causes."""
    return 1000.0 * cause.health + len(CAUSES) - _PLACES[cause.name]


def _explained(findings: list[PortFault]) -> Iterator[PortFault]:
    """The findings; one that can be a consequence of another on the same port names it, and comes after it."""
    for fault in findings:
        reasons = [
            other
            for other in findings
            if fault.cause.name in EXPLAINS.get(other.cause.name, ())
            and other.device == fault.device
            and (not other.port or not fault.port or other.port == fault.port)
        ]
        if not reasons:
            yield fault
            continue
        said = f"can follow from {', '.join(dict.fromkeys(other.cause.name for other in reasons))}"
        yield replace(
            fault,
            # the side of the worst cause behind it is the better known one
            side=max(reasons, key=attrgetter("harm")).side,
            against=(*fault.against, said),
            harm=min(fault.harm, min(other.harm for other in reasons) - 1),
        )
