"""Causes in the device, its slot, its link and its optics, and pause that blocks a port: see `causes`."""

from __future__ import annotations

from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.sign import Cause

HOST, LINK = Side.HOST, Side.LINK
FAILED, DEGRADED = Status.FAILED, Status.DEGRADED

COUNTERS = "roce-exporter once | grep 'device=\"{device}\"'"
DMESG = "dmesg -T | grep -i -e {device} -e {netdev} -e AER"

DEVICE_VANISHED = Cause(
    "device_vanished",
    HOST,
    FAILED,
    "The RDMA device was present and is gone",
    "The card fell off the bus, or its driver gave up after a firmware fault. Less likely: someone unbound the driver or moved the device to another namespace.",
    (DMESG, "rdma link", "lspci -vv | grep -i -A3 ethernet", "drain the host, then power-cycle it"),
    "RoceDeviceVanished",
)

DRIVER_NOT_RESPONDING = Cause(
    "driver_not_responding",
    HOST,
    FAILED,
    "Driver or firmware does not respond",
    "The driver lost the ability to issue commands to the firmware: the link can stay up and the counters clean.",
    (DMESG, "devlink health show", "drain the host, then reload the driver or power-cycle the host"),
    "RoceDataMissing",
)

DEVICE_ERROR = Cause(
    "device_error",
    HOST,
    FAILED,
    "The device reports an error of its own",
    "Firmware or hardware of the card. It may have recovered by a reset, which broke all connections.",
    (DMESG, "devlink health show", "update the firmware; replace the card if it comes back"),
    "RoceDeviceVanished",
)

DEVICE_WARNING = Cause(
    "device_warning",
    HOST,
    DEGRADED,
    "Driver or firmware reports a problem, or resets the device",
    "An error from which the device recovered; each reset breaks its connections.",
    (DMESG, "devlink health show", "update the firmware; replace the card if it comes back"),
    "RoceDeviceVanished",
)

POWER_INSUFFICIENT = Cause(
    "power_insufficient",
    HOST,
    DEGRADED,
    "The slot or the module gets too little power",
    "The slot does not supply what the card needs, or a module needs more than its cage supplies.",
    (
        DMESG,
        "check the auxiliary power cable, the slot's power limit in the BIOS, and the class of the module",
    ),
    "RocePortFaulty",
)

PCIE_FATAL = Cause(
    "pcie_fatal",
    HOST,
    FAILED,
    "PCIe reports fatal errors: the link to the card is no longer reliable",
    "Card, riser or slot; a fatal error usually resets the card.",
    (DMESG, "lspci -vv", "drain the host, then reseat the card or its riser"),
    "RocePortFaulty",
)

LINK_DOWN = Cause(
    "link_down",
    LINK,
    FAILED,
    "The link is down and was up before",
    "Cable, transceiver or the switch port; less likely the interface was set down on purpose.",
    (
        "ethtool {netdev}",
        "ip link show {netdev}",
        "ethtool -m {netdev}",
        DMESG,
        "check the switch port, then cable and transceiver",
    ),
    "RocePortDown",
)

PAUSE_STORM_TRANSMITTED = Cause(
    "pause_storm_transmitted",
    HOST,
    FAILED,
    "This host blocks its switch: it transmits pause without end",
    "The receive path of the card or the host is stuck: firmware, PCIe, or memory that takes no writes. All senders to this host back up.",
    (
        COUNTERS + " | grep -e pause -e storm",
        DMESG,
        "drain the host; if pause continues, shut down its switch port, then reset the card",
    ),
    "RocePfcStorm",
)

NIC_WATCHDOG = Cause(
    "nic_pause_watchdog",
    HOST,
    FAILED,
    "The NIC's own watchdog stopped its pause: the receive path was stuck",
    "The host took no packets for longer than the stall watermark; packets of lossless priorities are dropped from then on.",
    (DMESG, "ethtool --get-tunable {netdev} pfc-prevention-tout", "drain the host and reset the card"),
    "RoceNicPauseWatchdogTripped",
)

LINK_FLAPPING = Cause(
    "link_flapping",
    LINK,
    DEGRADED,
    "The link goes down and comes back again and again",
    "Optics or cable; less likely the switch port or a driver that resets the card.",
    (
        "ethtool -m {netdev}",
        "ethtool -S {netdev} | grep -i -e err -e fec",
        DMESG,
        "clean or replace cable and transceiver",
    ),
    "RocePortFaulty",
)

MODULE_FAULT = Cause(
    "module_fault",
    LINK,
    DEGRADED,
    "The transceiver or cable reports a fault",
    "The module was unplugged, its management bus is stuck, or the cable is shorted.",
    ("ethtool -m {netdev}", DMESG, "reseat the module, then replace it"),
    "RocePortDown",
)

LINK_INTERRUPTED = Cause(
    "link_interrupted",
    LINK,
    DEGRADED,
    "The link was lost and came back",
    "Optics, cable or switch port; also work on the switch, or a restart of the driver.",
    ("ethtool -m {netdev}", DMESG, "check whether the switch restarted"),
    "RocePortFaulty",
)

LINK_LOST = Cause(
    "link_lost",
    LINK,
    DEGRADED,
    "The port has no link, and had one before it was watched",
    "A cable that was removed on purpose looks the same.",
    ("ethtool {netdev}", "ip link show {netdev}", "check the switch port, then cable and transceiver"),
    "RocePortDown",
)

SET_DOWN = Cause(
    "set_down",
    HOST,
    Status.OK,
    "The port is set down: an operator or a program did it",
    "Work on the host or its network, or a port that is not wanted; no fault of the link is known.",
    ("ip link show {netdev}", "find out who set it down; ip link set {netdev} up ends it"),
    "RocePortDown",
)

TAKEN_AWAY = Cause(
    "taken_away",
    HOST,
    Status.OK,
    "The port was taken away from this host's view: its network device or its function is elsewhere",
    "A container runtime or an operator moved it to another namespace, or a virtual function went to a guest.",
    ("rdma link", "ip link show {netdev}", "find the pod or guest that has it; nothing is to be repaired"),
    "RocePortDown",
)

RESTARTED = Cause(
    "restarted",
    HOST,
    Status.OK,
    "The device was gone and is back: its driver was loaded again",
    "Work on driver or firmware; every connection over it has ended. Without such work, look for a reset in the kernel log.",
    (DMESG, "devlink dev info"),
    "RoceDeviceVanished",
)

LEG_DOWN = Cause(
    "leg_down",
    LINK,
    DEGRADED,
    "A leg of the LAG has no link: the rest carries all traffic",
    "Cable, transceiver or switch port of this leg; less likely it was set down on purpose.",
    (
        "ip link show master {netdev}",
        "ethtool on the leg that is named above, and ethtool -m",
        "check the leg's switch port, then cable and transceiver",
    ),
    "RocePortDown",
)

LINK_SLOW = Cause(
    "link_slow",
    LINK,
    DEGRADED,
    "The link is slower than it was",
    "The link lost lanes or trained at a lower speed: cable, transceiver, or the speed set at the switch.",
    ("ethtool {netdev}", "ethtool -m {netdev}", "compare the speed set on the switch port"),
    "RocePortFaulty",
)

LINK_ERRORS = Cause(
    "link_errors",
    LINK,
    DEGRADED,
    "The link has errors that forward error correction cannot correct",
    "A dirty or bad connector, cable or transceiver, at this end first; packets are lost.",
    ("ethtool -I --show-fec {netdev}", "ethtool -m {netdev}", "clean or replace cable and transceiver"),
    "RocePortFaulty",
)

CRC_ERRORS = Cause(
    "crc_errors",
    LINK,
    DEGRADED,
    "Packets arrive corrupted",
    "The cable to this host, or a link upstream of cut-through switches: the bad link is where the errors begin.",
    ("ethtool -S {netdev} | grep -i -e crc -e fcs", "compare the errors of the switch ports along the path"),
    "RocePortFaulty",
)

BIT_ERRORS_RISING = Cause(
    "bit_errors_rising",
    LINK,
    DEGRADED,
    "Bit errors before correction are rising or near what can be corrected",
    "Optics that age or a connector that is dirty: nothing is lost yet.",
    (
        "ethtool -I --show-fec {netdev}",
        "ethtool -m {netdev}",
        "plan to clean or replace cable and transceiver",
    ),
    "RocePortFaulty",
)

RECEIVE_POWER_LOW = Cause(
    "optics_receive_power_low",
    LINK,
    DEGRADED,
    "Too little light arrives",
    "Dirt, a bent fibre, or the laser of the switch's transceiver.",
    ("ethtool -m {netdev}", "clean the connectors; compare the transmit power at the switch"),
    "RocePortFaulty",
)

RECEIVE_POWER_HIGH = Cause(
    "optics_receive_power_high",
    LINK,
    DEGRADED,
    "Too much light arrives",
    "A transceiver of longer reach at the other end, without an attenuator.",
    ("ethtool -m {netdev}", "compare the types of both transceivers"),
    "RocePortFaulty",
)

TRANSMIT_POWER_LOW = Cause(
    "optics_transmit_power_low",
    LINK,
    DEGRADED,
    "The transceiver of this host sends too little light",
    "Its laser ages.",
    ("ethtool -m {netdev}", "replace the transceiver of this host"),
    "RocePortFaulty",
)

LASER_BIAS_HIGH = Cause(
    "optics_bias_high",
    LINK,
    DEGRADED,
    "A laser of this host's transceiver is at the end of its life",
    "It needs more current than the module's alarm limit.",
    ("ethtool -m {netdev}", "replace the transceiver of this host"),
    "RocePortFaulty",
)

TOO_HOT = Cause(
    "too_hot",
    HOST,
    DEGRADED,
    "Transceiver or NIC is too hot",
    "Airflow or ambient temperature of this host; less likely the module's own sensor.",
    ("ethtool -m {netdev}", "check fans, blanking panels and the air inlet of the host"),
    "RocePortFaulty",
)

PCIE_ERRORS = Cause(
    "pcie_errors",
    HOST,
    DEGRADED,
    "PCIe reports errors",
    "Card, riser or slot.",
    (DMESG, "lspci -vv", "reseat the card or its riser"),
    "RocePortFaulty",
)

PCIE_NARROW = Cause(
    "pcie_narrow",
    HOST,
    DEGRADED,
    "The card uses fewer PCIe lanes than it has",
    "A card that is not seated well, a riser or slot with fewer lanes, or lanes that failed.",
    ("lspci -vv", "reseat the card; check the slot's width in the board's manual"),
    "RocePortFaulty",
)

PCIE_SLOW = Cause(
    "pcie_slow",
    HOST,
    DEGRADED,
    "PCIe runs slower than the card supports",
    "The link trained at a lower speed, or the slot is older than the card; the latter matters only where PCIe limits the traffic.",
    ("lspci -vv", "reseat the card; check the slot's generation and the BIOS setting"),
    "RocePortFaulty",
)
