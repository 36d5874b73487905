"""What a change of a reply changes: each case is a recorded switch with some replies replaced.

`golden/switch-cases.txt` holds the series and sources that this adds and removes.
"""

from pathlib import Path
from typing import Any

from switch_recordings import assert_sound, changed, differences, paths, read_recorded, recorded, series

from roce_exporter.net import NetError
from roce_exporter.switches.systems.cumulus import requests as cumulus
from roce_exporter.switches.systems.eos import requests as eos
from roce_exporter.switches.systems.nxos import requests as nxos

GOLDEN = Path(__file__).parent / "golden/switch-cases.txt"
MODULES = {"cumulus": cumulus, "eos": eos, "nxos": nxos, "nxos-cloudscale": nxos}
EOS = recorded("switch-eos")
LATE = NetError("late")
NAME = 'gpu\x1b[31m\n"\\-001\u202e\x00' + "x" * 999


def having(switch: str, source: str, end: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The first value whose path ends like this is another one."""
    reply = recorded(f"switch-{switch}")[source]
    path = next(path for path in paths(reply) if path[-len(end) :] == end)
    return {source: changed(reply, path, value)}


def mapped() -> Any:
    """CoS 3 is in qos-group 1."""
    reply = recorded("switch-nxos")["queuing_interface"]
    for path in paths(reply):
        if path[-1] == "pfc-qosgrp":
            reply = changed(reply, path, "1")
    return reply


def configured(**settings: Any) -> dict[str, Any]:
    """EOS with another setting of the watchdog."""
    path = "qos/pfc/watchdog/config/"
    more = {path + name.replace("_", "-"): value for name, value in settings.items()}
    return {"configuration": EOS["configuration"] | more}


def without(source: str, part: str) -> dict[str, Any]:
    return {source: {path: value for path, value in EOS[source].items() if part not in path}}


def dropped(classes: dict[str, Any]) -> dict[str, Any]:
    """Drops of EOS's class 3, where gNMI has no counters of queues."""
    return {"queues": ...} | having("eos", "queue_drops", ("ucastQueues", "trafficClasses", "TC3"), classes)


FRAMES = "interfaces/interface[name=Ethernet1/1]/ethernet/pfc/priorities/priority[index=3]/state/in-frames"
LOSSLESS = "qos/interfaces/interface[interface-id=Ethernet1/1]/output/pfc/config/priorities-no-drop"
NXAPI = {"ins_api": {"outputs": {"output": {"code": "200", "msg": "Success"}}}}
BODY = ("ins_api", "outputs", "output", "body")
DME = (
    ...,
    None,
    NetError(f"{nxos.REFUSED_DME}: status 403"),
    NetError("no complete reply within 5 s"),
    {"imdata": [{"error": {"attributes": {"code": "500"}}}]},
    {"totalCount": "0", "imdata": []},
)

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a queue is never taken for a priority": (
        "nxos",
        {"queuing_interface": mapped(), "pfc_queue_detail": ...},
    ),
    "without the PFC mode, priorities with frames are lossless": (
        "nxos",
        {"priority_flow_control": LATE, "pfc_queue_detail": ...},
    ),
    "without the PFC mode, priorities in the watchdog are lossless": (
        "nxos-cloudscale",
        {"priority_flow_control": LATE, "queuing_interface": ...},
    ),
    "without any map, all queues of a port with PFC": (
        "nxos",
        {"queuing_interface": LATE, "pfc_queue_detail": LATE},
    ),
    "a watchdog that is off globally is off everywhere": (
        "nxos",
        having("nxos", "pfc_queue_detail", ("glb-wd-status",), "Disabled"),
    ),
    **{
        f"an unknown state {text!r} is absent": (
            "nxos-cloudscale",
            having("nxos-cloudscale", "pfc_queue_detail", ("eq-qosgrp-state",), text),
        )
        for text in ("Not Applicable", "-", "")
    },
    # A DME that is late for once must not switch to counters that count differently: it would look like a reset.
    **{
        f"counters of the command line replace only a DME that is not there: {reply}": (
            "nxos",
            {"queuing_statistics": reply},
        )
        for reply in DME
    },
    "a name with control characters": ("nxos", having("nxos", "lldp_neighbors", ("sys_name",), NAME)),
    **{
        f"no neighbours are no fault: {body!r}": ("nxos", {"lldp_neighbors": changed(NXAPI, BODY, body)})
        for body in ("", [], {}, {"neigh_hdr": "neigh_hdr", "neigh_count": "0"})
    },
    "without the PFC settings, priorities with frames": ("cumulus", {"pfc": LATE}),
    "without the queue mapping, the queues of the watchdog": ("cumulus", {"queue_mapping": LATE}),
    "without profiles, a port with frames": ("cumulus", {"pfc_profiles": ...}),
    **{
        f"priorities of a profile: {listed!r}": (
            "cumulus",
            {"pfc_profiles": {"default-global": {"switch-priority": listed}}},
        )
        for listed in ({"3": {}}, ["3"], [3], "3", 3, "3,")
    },
    "a deadlock ends and its count stays": (
        "cumulus",
        having("cumulus", "pfc_watchdog", ("3", "status"), "OK"),
    ),
    "the release of newer versions is in an object": (
        "cumulus",
        {"system": {"hostname": "leaf3", "version": {"product-release": "5.14.0"}}},
    ),
    "a watchdog that the switch does not have is absent and not broken": (
        "cumulus",
        {"pfc_watchdog": None, "pfc_watchdog_settings": None},
    ),
    # EOS lists a queue with its first event: no counter of the watchdog is 0 only while the watchdog is on.
    "the watchdog is off": ("eos", configured(default_timeout="0.00")),
    "whether the watchdog is on was not read": ("eos", without("configuration", "default-timeout")),
    "nothing of the configuration was read": ("eos", {"configuration": ...}),
    "without PFC from gNMI, the watchdog counters of eAPI": (
        "eos",
        {"pfc": ...} | without("configuration", "timeout"),
    ),
    **{
        f"the watchdog's action is {action}": ("eos", configured(action=action))
        for action in ("DROP", "ERROR_DISABLE", "NOTIFY_ONLY", "INVALID")
    },
    "marks of eAPI": ("eos", without("queues", "ecn-marked")),
    "marks and drops of eAPI": ("eos", {"queues": ...}),
    "a class without drop precedences has no drops": ("eos", dropped({"dropPrecedences": {}})),
    "a class with drops that are no number": (
        "eos",
        dropped({"dropPrecedences": {"DP0": {"droppedPackets": 1}, "DP1": {"droppedPackets": -1}}}),
    ),
    # The last one is a document without leaves.
    **{
        f"{bad!r} is unreadable and not absent": ("eos", {"pfc": EOS["pfc"] | {FRAMES: bad}})
        for bad in (2**64, -1, "NaN", "1e3", "12x", 0.5, [], "\u0663", {})
    },
    **{
        f"the bitmap {bitmap!r} is none": (
            "eos",
            {"configuration": EOS["configuration"] | {LOSSLESS: bitmap}},
        )
        for bitmap in ("", "zz", "123", None, [], "-1")
    },
    "LLDP from gNMI where eAPI does not answer": ("eos", {"lldp": ...}),
    "LLDP from gNMI where eAPI answers something else": ("eos", {"lldp": {"other": {}}}),
    "a host announces an unprintable name": ("eos", having("eos", "lldp", ("systemName",), NAME)),
    "a host announces a port that is no MAC address": (
        "eos",
        having(
            "eos",
            "lldp",
            ("neighborInterfaceInfo",),
            {"interfaceIdType": "macAddress", "interfaceId_v2": "not a MAC"},
        ),
    ),
    "the host name comes from eAPI": ("eos", {"system": ...}),
    "the host name comes from gNMI": ("eos", {"hostname": ...}),
    "no host name": ("eos", {"system": {"system/state/hostname": ["x"]}, "hostname": ...}),
    **{
        f"{source} of another command, {result}": ("eos", {source: result})
        for source in ("ecn_counters", "queue_drops", "watchdog_counters")
        for result in ({}, {"errors": []}, {"interfaces": 7})
    },
    "sources are those that answered or failed": (
        "eos",
        dict.fromkeys(EOS, ...) | {"version": EOS["version"], "pfc": LATE},
    ),
}


def shown(switch: str, **replaced: Any) -> set[str]:
    """The name of the switch, its series and its sources."""
    module = MODULES[switch]
    found = read_recorded(module, f"switch-{switch}", **replaced)
    assert_sound(found, module.MODULE.dialect)
    return {
        f"name: {found.name}",
        *(f"{name} {value}" for name, value in series(found, module.MODULE.dialect).items()),
        *(f"source {source}: {found.faults.get(source, 'up')}" for source in found.sources),
    }


def test_every_case_changes_what_it_must(golden) -> None:
    parts = []
    for name, (switch, replaced) in CASES.items():
        plain, found = shown(switch), shown(switch, **replaced)
        parts += [f"## {switch}: {name}", *differences(plain, found)]
    golden(GOLDEN, "\n".join(parts) + "\n")
