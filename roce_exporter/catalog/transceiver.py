"""Optical power, laser current, supply voltage and temperature of transceivers, and the temperature of the NIC itself.

Errors corrected by FEC rise long before a link fails, and fading optical power is the most common reason. The limits are
those that the module's vendor stored in the module.
"""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import ANY, GAUGE, LANE_LABELS, LEAN, STANDARD, Row, netdev_gauge, spelt

MICRO = 1_000_000
NANO = 1_000_000_000

module = partial(spelt, ANY, "transceiver")
by_lane = partial(netdev_gauge, labels=LANE_LABELS)

MEASURED = (
    netdev_gauge(
        "roce_transceiver_temperature_celsius",
        "celsius",
        "Temperature of the transceiver. All transceiver values are at most one minute old and need CAP_NET_ADMIN.",
        module("temperature", per=MICRO),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_transceiver_voltage_volts",
        "volts",
        "Supply voltage of the transceiver.",
        module("voltage", per=MICRO),
        metric_set=STANDARD,
    ),
    by_lane(
        "roce_transceiver_receive_power_watts",
        "watts",
        "Optical power received on a lane; 0 means no light.",
        module("receive_power_{lane}", per=NANO),
        metric_set=LEAN,
    ),
    by_lane(
        "roce_transceiver_transmit_power_watts",
        "watts",
        "Optical power sent on a lane.",
        module("transmit_power_{lane}", per=NANO),
        metric_set=LEAN,
    ),
    by_lane(
        "roce_transceiver_bias_amperes",
        "amperes",
        "Laser bias current of a lane: it rises as the laser ages.",
        module("bias_{lane}", per=MICRO),
        metric_set=LEAN,
    ),
)

LIMITS = (
    netdev_gauge(
        "roce_transceiver_temperature_high_alarm_celsius",
        "celsius",
        "Alarm limit: the transceiver is too hot above this temperature.",
        module("temperature_high_alarm", per=MICRO),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_transceiver_temperature_low_alarm_celsius",
        "celsius",
        "Alarm limit: the transceiver is too cold below this temperature.",
        module("temperature_low_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_voltage_high_alarm_volts",
        "volts",
        "Alarm limit: the transceiver's supply voltage is too high above this value.",
        module("voltage_high_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_voltage_low_alarm_volts",
        "volts",
        "Alarm limit: the transceiver's supply voltage is too low below this value.",
        module("voltage_low_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_receive_power_high_alarm_watts",
        "watts",
        "Alarm limit: a lane receives too much light above this power.",
        module("receive_power_high_alarm", per=NANO),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_transceiver_receive_power_low_alarm_watts",
        "watts",
        "Alarm limit: a lane receives too little light below this power because of a dirty, bent or broken fibre, or a failing far end.",
        module("receive_power_low_alarm", per=NANO),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_transceiver_transmit_power_high_alarm_watts",
        "watts",
        "Alarm limit: a lane sends too much light above this power.",
        module("transmit_power_high_alarm", per=NANO),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_transceiver_transmit_power_low_alarm_watts",
        "watts",
        "Alarm limit: a lane sends too little light below this power because the laser is failing or off.",
        module("transmit_power_low_alarm", per=NANO),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_transceiver_bias_high_alarm_amperes",
        "amperes",
        "Alarm limit: a laser that needs more bias current than this is at the end of its life.",
        module("bias_high_alarm", per=MICRO),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_transceiver_bias_low_alarm_amperes",
        "amperes",
        "Alarm limit: a laser gets too little bias current below this value.",
        module("bias_low_alarm", per=MICRO),
    ),
)

SENSORS = (
    Row(
        "roce_temperature_celsius",
        GAUGE,
        "celsius",
        "Temperature reported by the driver: `asic` is the NIC's chip; on mlx5 `Module0` and so on are the transceivers.",
        (spelt(ANY, "sensors", "temperature_{sensor}", per=1000),),
        ("device", "sensor"),
        metric_set=LEAN,
    ),
    Row(
        "roce_temperature_critical_celsius",
        GAUGE,
        "celsius",
        "Temperature that the driver reports as critical for the sensor.",
        (spelt(ANY, "sensors", "critical_{sensor}", per=1000),),
        ("device", "sensor"),
        metric_set=LEAN,
    ),
)

ROWS = (*MEASURED, *LIMITS, *SENSORS)
