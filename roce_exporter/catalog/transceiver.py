"""Light, laser current, supply and temperature of transceivers, and the temperature of the NIC itself.

Errors corrected by FEC rise long before a link fails, and light that fades is the most common reason. The limits are
those that the module's maker wrote into it.
"""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import ANY, GAUGE, LANE_LABELS, Row, netdev_gauge, spelt

MICRO = 1_000_000
NANO = 1_000_000_000

module = partial(spelt, ANY, "transceiver")
by_lane = partial(netdev_gauge, labels=LANE_LABELS)

MEASURED = (
    netdev_gauge(
        "roce_transceiver_temperature_celsius",
        "celsius",
        "Temperature of the transceiver. All of its values are at most a minute old, and need CAP_NET_ADMIN.",
        module("temperature", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_voltage_volts",
        "volts",
        "Supply voltage of the transceiver.",
        module("voltage", per=MICRO),
    ),
    by_lane(
        "roce_transceiver_receive_power_watts",
        "watts",
        "Light received on a lane; 0 is darkness.",
        module("receive_power_{lane}", per=NANO),
    ),
    by_lane(
        "roce_transceiver_transmit_power_watts",
        "watts",
        "Light sent on a lane.",
        module("transmit_power_{lane}", per=NANO),
    ),
    by_lane(
        "roce_transceiver_bias_amperes",
        "amperes",
        "Current of a lane's laser: it rises as the laser ages.",
        module("bias_{lane}", per=MICRO),
    ),
)

LIMITS = (
    netdev_gauge(
        "roce_transceiver_temperature_high_alarm_celsius",
        "celsius",
        "The transceiver is too hot above this temperature.",
        module("temperature_high_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_temperature_low_alarm_celsius",
        "celsius",
        "The transceiver is too cold below this temperature.",
        module("temperature_low_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_voltage_high_alarm_volts",
        "volts",
        "The transceiver's supply is too high above this voltage.",
        module("voltage_high_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_voltage_low_alarm_volts",
        "volts",
        "The transceiver's supply is too low below this voltage.",
        module("voltage_low_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_receive_power_high_alarm_watts",
        "watts",
        "A lane receives too much light above this power.",
        module("receive_power_high_alarm", per=NANO),
    ),
    netdev_gauge(
        "roce_transceiver_receive_power_low_alarm_watts",
        "watts",
        "A lane receives too little light below this power: a dirty, bent or broken fibre, or a failing far end.",
        module("receive_power_low_alarm", per=NANO),
    ),
    netdev_gauge(
        "roce_transceiver_transmit_power_high_alarm_watts",
        "watts",
        "A lane sends too much light above this power.",
        module("transmit_power_high_alarm", per=NANO),
    ),
    netdev_gauge(
        "roce_transceiver_transmit_power_low_alarm_watts",
        "watts",
        "A lane sends too little light below this power: the laser fails or is off.",
        module("transmit_power_low_alarm", per=NANO),
    ),
    netdev_gauge(
        "roce_transceiver_bias_high_alarm_amperes",
        "amperes",
        "A lane's laser needs too much current above this: it is at the end of its life.",
        module("bias_high_alarm", per=MICRO),
    ),
    netdev_gauge(
        "roce_transceiver_bias_low_alarm_amperes",
        "amperes",
        "A lane's laser gets too little current below this.",
        module("bias_low_alarm", per=MICRO),
    ),
)

SENSORS = (
    Row(
        "roce_temperature_celsius",
        GAUGE,
        "celsius",
        "A temperature that the driver reports: `asic` is the NIC's chip, mlx5's `Module0` and so on its transceivers.",
        (spelt(ANY, "sensors", "temperature_{sensor}", per=1000),),
        ("device", "sensor"),
    ),
    Row(
        "roce_temperature_critical_celsius",
        GAUGE,
        "celsius",
        "The temperature at which the driver calls the sensor's state critical.",
        (spelt(ANY, "sensors", "critical_{sensor}", per=1000),),
        ("device", "sensor"),
    ),
)

ROWS = (*MEASURED, *LIMITS, *SENSORS)
