"""The operating systems of switches, whose raw names the rows of switches list as they list those of drivers."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import spelt

SONIC = "sonic"
NXOS = "nxos"
EOS = "eos"
CUMULUS = "cumulus"

SWITCH_SYSTEMS = (SONIC, NXOS, EOS, CUMULUS)
"""The dialects of switches. No RDMA device has one, so a row of switches is never searched on a host."""

sonic_port = partial(spelt, SONIC, "port_counters")
"""Fields of `COUNTERS:<oid of a port>` in SONiC's COUNTERS_DB (SAI, saiport.h), and what SONiC itself adds to them.

`SAI_PORT_STAT_PFC_n_RX_PAUSE_DURATION` without `_US` has no row: SAI defines it in quanta, whose length depends on the speed of
the port, and some ASICs have written other units into it.
"""
sonic_queue = partial(spelt, SONIC, "queue_counters")
"""Fields of `COUNTERS:<oid of a queue>`: SAI (saiqueue.h) and SONiC's PFC watchdog (sonic-swss, pfcwdorch)."""
sonic_group = partial(spelt, SONIC, "priority_group_counters")
"""Fields of `COUNTERS:<oid of a priority group>` (SAI, saibuffer.h)."""
sonic_watermark = partial(spelt, SONIC, "watermarks")
"""Fields of the tables USER_, PERSISTENT_ and PERIODIC_WATERMARKS (sonic-swss, watermarkorch)."""
sonic_config = partial(spelt, SONIC, "configuration")
"""Settings in CONFIG_DB, by the name of their field. `pause_threshold` is `static_th`, or what `dynamic_th` allows at most."""

nxos_watchdog = partial(spelt, NXOS, "pfc_queue_detail")
"""`show queuing pfc-queue detail`."""
nxos_queuing = partial(spelt, NXOS, "queuing_interface")
"""`show queuing interface`."""
nxos_pfc = partial(spelt, NXOS, "priority_flow_control")
"""`show interface priority-flow-control`."""
nxos_statistics = partial(spelt, NXOS, "queuing_statistics")
"""The DME class `ipqosQueuingStats`."""

eos_pfc = partial(spelt, EOS, "pfc")
"""gNMI: `/interfaces/interface/ethernet/pfc` (arista-intf-augments and its history and buffer augments)."""
eos_queue = partial(spelt, EOS, "queues")
"""gNMI: `/qos/interfaces/interface/output/queues/queue/state` (openconfig-qos, arista-qos-augments)."""
eos_config = partial(spelt, EOS, "configuration")
"""gNMI: `/qos/interfaces/interface/output/pfc/config` and `/qos/pfc/watchdog/config` (arista-qos-augments)."""
eos_profile = partial(spelt, EOS, "ecn_profiles")
"""gNMI: `/qos/queue-management-profiles/queue-management-profile/wred/uniform/state` (openconfig-qos)."""
eos_stuck = partial(spelt, EOS, "watchdog_counters", bits=32)
"""eAPI: `show priority-flow-control counters watchdog`."""
eos_ecn = partial(spelt, EOS, "ecn_counters")
"""eAPI: `show qos interfaces ecn counters queue`."""
eos_drops = partial(spelt, EOS, "queue_drops")
"""eAPI: `show interfaces counters queue drops`."""

cumulus_counters = partial(spelt, CUMULUS, "counters")
"""NVUE: `/interface/{name}/counters/qos`."""
cumulus_watchdog = partial(spelt, CUMULUS, "pfc_watchdog")
"""NVUE: `/interface/{name}/qos/pfc-watchdog`, with the times of `/qos/pfc-watchdog`."""
cumulus_pfc = partial(spelt, CUMULUS, "pfc")
"""NVUE: `/interface/{name}/qos/pfc`, with the profiles of `/qos/pfc`."""
cumulus_congestion = partial(spelt, CUMULUS, "congestion_control")
"""NVUE: `/interface/{name}/qos/congestion-control`."""
