"""The switch of the simulated fabric: what both ends of a link count agrees, in the tables of a SONiC."""

import pytest
from clock import Clock
from steered import START, ethtool

from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.host.simulated.simulated_switch import SimulatedSwitch, simulate_switch
from roce_exporter.host.simulated.simulated_switch_port import QUEUE_BYTES, SwitchWatchdog
from roce_exporter.host.simulated.world import VENDORS

PORTS = ("mlx5",) * 4
SEED = 57
"""The first storm of this seed begins after 20 s and lasts 3.3 s."""

WATCHDOG = SwitchWatchdog()
SLACK = WATCHDOG.detection + WATCHDOG.poll
CULPRIT = "Ethernet32"
"""The port of the first other host."""


def leaf(scenario: str = "pfc-storm", seed: int = SEED, vendors=PORTS) -> SimulatedSwitch:
    return simulate_switch(scenario, start=START, vendors=vendors, seed=seed)


def tables(scenario: str, seconds: float) -> dict[str, dict[str, dict[str, str]]]:
    return leaf(scenario).databases(START + seconds)


class Port:
    """The counters of one port, by the names that a reader of SONiC goes by."""

    def __init__(self, databases, name: str) -> None:
        counters = databases["COUNTERS_DB"]
        self.fields = counters[f"COUNTERS:{counters['COUNTERS_PORT_NAME_MAP'][name]}"]
        oids = [counters["COUNTERS_QUEUE_NAME_MAP"][f"{name}:{number}"] for number in range(16)]
        self.queues = [counters[f"COUNTERS:{oid}"] for oid in oids]
        self.queue, self.queue_oid = self.queues[3], oids[3]
        self.group_oid = counters["COUNTERS_PG_NAME_MAP"][f"{name}:3"]
        self.group = counters[f"COUNTERS:{self.group_oid}"]
        self.headroom = {
            window: int(
                counters[f"{window}_WATERMARKS:{self.group_oid}"][
                    "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES"
                ]
            )
            for window in ("USER", "PERSISTENT", "PERIODIC")
        }

    def pfc(self, priority: int, ending: str) -> int:
        return int(self.fields[f"SAI_PORT_STAT_PFC_{priority}_{ending}"])

    def watchdog(self, name: str) -> int:
        return int(self.queue[f"PFC_WD_QUEUE_STATS_{name}"])

    @property
    def trips(self) -> int:
        return self.watchdog("DEADLOCK_DETECTED")

    @property
    def stormed(self) -> bool:
        return self.queue["PFC_WD_STATUS"] == "stormed"

    @property
    def group_discards(self) -> int:
        return int(self.group["SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"])


class TestBothEnds:
    @pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "flapping"])
    def test_what_one_end_transmits_the_other_receives(self, scenario) -> None:
        """Read from the counters of the NIC's driver, which come another way."""
        clock = Clock()
        kernel = simulate(scenario, clock=clock, vendors=PORTS, seed=SEED)
        switch = leaf(scenario)
        for seconds in (0.0, 11.3, 23.5, 61.0, 300.0):
            clock.now = START + seconds
            databases = switch.databases(clock.now)
            for number, netdev in enumerate(kernel.world.netdevs):
                port, facts = Port(databases, f"Ethernet{8 * number}"), netdev.facts(clock.now)
                self.check(port, facts, netdev.conditions(clock.now).lossless)
        assert ethtool(kernel, "eth3")["tx_prio3_packets"] > 0 or scenario in ("misconfigured", "broken")

    def check(self, port: Port, facts, lossless) -> None:
        for priority in range(8):
            assert port.pfc(priority, "RX_PKTS") == int(facts.get(f"transmit_frames_{priority}", 0))
            if priority in lossless:
                assert port.pfc(priority, "TX_PKTS") >= int(facts.get(f"receive_frames_{priority}", 0))
            if port.fields.get("SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US"):
                duration = port.pfc(priority, "RX_PAUSE_DURATION_US")
                assert duration == int(facts.get(f"transmit_pause_us_{priority}", 0))
        sent = sum(int(queue["SAI_QUEUE_STAT_PACKETS"]) for queue in port.queues)
        assert abs(sent - facts.get("receive_packets", 0)) <= 3, "one truncation per queue in use"
        marks = [int(queue.get("SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", 0)) for queue in port.queues]
        assert sum(marks) == int(facts.get("marks", 0))

    def test_a_reset_of_the_host_does_not_reset_the_switch(self) -> None:
        clock, switch = Clock(), leaf("flapping")
        kernel = simulate("flapping", clock=clock, vendors=PORTS, seed=SEED)
        sent = 0
        while not kernel.world.resets:
            clock.now += 1.0
            before, sent = sent, int(self.queue_of(switch, clock.now)["SAI_QUEUE_STAT_PACKETS"])
            assert before <= sent
        host = ethtool(kernel, "eth0")["rx_prio3_packets"]
        assert host < int(self.queue_of(switch, clock.now)["SAI_QUEUE_STAT_PACKETS"])

    def queue_of(self, switch: SimulatedSwitch, now: float) -> dict[str, str]:
        return Port(switch.databases(now), "Ethernet0").queue

    def test_the_neighbours_are_the_network_devices_of_the_host(self) -> None:
        kernel = simulate("quiet", clock=Clock(), vendors=PORTS, seed=SEED)
        found = tables("quiet", 1)["APPL_DB"]
        assert found["LLDP_LOC_CHASSIS"]["lldp_loc_sys_name"] == "leaf-057"
        for number in range(4):
            entry = found[f"LLDP_ENTRY_TABLE:Ethernet{8 * number}"]
            assert entry["lldp_rem_sys_name"] == kernel.hostname()
            by_mac = entry["lldp_rem_port_id_subtype"] == "3"
            assert entry["lldp_rem_port_id"] == (
                kernel.mac_address(f"eth{number}") if by_mac else f"eth{number}"
            )
            assert by_mac == (number < 3)
        others = {found[f"LLDP_ENTRY_TABLE:Ethernet{port}"]["lldp_rem_sys_name"] for port in (32, 40)}
        assert others == {"gpu-058", "gpu-059"}

    def test_a_port_without_a_link_has_no_neighbour(self) -> None:
        clock, switch = Clock(), leaf("flapping")
        kernel = simulate("flapping", clock=clock, vendors=PORTS, seed=SEED)
        seen = set()
        for tenth in range(300):
            clock.now = START + tenth / 10
            up = kernel.world.netdevs[0].conditions(clock.now).up
            assert ("LLDP_ENTRY_TABLE:Ethernet0" in switch.databases(clock.now)["APPL_DB"]) == up
            seen.add(up)
        assert seen == {True, False}

    @pytest.mark.parametrize("vendor", VENDORS)
    def test_every_network_device_of_every_vendor_has_a_port(self, vendor) -> None:
        clock = Clock()
        kernel = simulate("incast", clock=clock, vendors=(vendor, vendor), seed=SEED)
        databases = leaf("incast", vendors=(vendor, vendor)).databases(START + 9)
        names = databases["COUNTERS_DB"]["COUNTERS_PORT_NAME_MAP"]
        assert len(names) == len(kernel.world.netdevs) + 2
        for number, netdev in enumerate(kernel.world.netdevs):
            port = Port(databases, f"Ethernet{8 * number}")
            assert port.pfc(3, "TX_PKTS") == int(netdev.facts(START + 9)["receive_frames_3"]) > 0
            speed = databases["CONFIG_DB"][f"PORT|Ethernet{8 * number}"]["speed"]
            assert int(speed) == netdev.driver.speed // 10**6


class TestWatchdog:
    @pytest.mark.parametrize(
        ("scenario", "seconds", "tripped"),
        [
            ("pfc-storm", 600, {"Ethernet0"}),
            *((name, 900, set()) for name in ("quiet", "slow-receiver", "flapping", "lossy", "broken")),
            ("incast", 300, set()),
        ],
    )
    def test_it_trips_at_a_storm_only(self, scenario, seconds, tripped) -> None:
        databases = tables(scenario, seconds)
        names = databases["COUNTERS_DB"]["COUNTERS_PORT_NAME_MAP"]
        assert {name for name in names if Port(databases, name).trips} == tripped

    def test_a_tripped_watchdog_discards_what_both_sides_send(self) -> None:
        """Fields of discards exist from the first storm on, and those of the last storm begin again."""
        switch = leaf()
        assert (
            "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS"
            not in Port(switch.databases(START + 20), "Ethernet0").queue
        )
        early, late, after, second = (
            Port(switch.databases(START + seconds), "Ethernet0") for seconds in (21.5, 22.5, 60, 600)
        )
        assert early.stormed
        assert late.stormed
        for way in ("TX", "RX"):
            name = f"{way}_DROPPED_PACKETS"
            assert 0 < early.watchdog(name) < late.watchdog(name) <= after.watchdog(name)
            assert after.watchdog(name) == after.watchdog(f"{name}_LAST")
            assert second.watchdog(f"{name}_LAST") < second.watchdog(name)
        assert int(late.queue["SAI_QUEUE_STAT_DROPPED_PACKETS"]) == late.watchdog("TX_DROPPED_PACKETS")
        assert late.group_discards == late.watchdog("RX_DROPPED_PACKETS")

    def test_the_cause_elsewhere_is_a_host_whose_watchdog_only_reports(self) -> None:
        clock = Clock()
        kernel = simulate("victim", clock=clock, vendors=PORTS, seed=SEED)
        clock.now = START + 600
        storms = kernel.world.storms
        switch = leaf("victim")
        culprit = Port(switch.databases(storms[0].start + SLACK + 0.01), CULPRIT)
        assert culprit.stormed
        assert culprit.queue["PFC_WD_ACTION"] == "alert"
        databases = switch.databases(clock.now)
        culprit = Port(databases, CULPRIT)
        assert culprit.trips == len({round(storm.start) for storm in storms}) > 3
        assert culprit.watchdog("TX_DROPPED_PACKETS") == culprit.group_discards == 0
        assert [Port(databases, f"Ethernet{8 * number}").trips for number in range(4)] == [0] * 4
        assert databases["CONFIG_DB"][f"PFC_WD|{CULPRIT}"]["action"] == "alert"


class TestBuffers:
    def test_headroom_is_used_while_the_switch_pauses_and_never_exhausted(self) -> None:
        for scenario in SCENARIOS:
            databases = tables(scenario, 300)
            size = int(databases["CONFIG_DB"]["BUFFER_PROFILE|pg_lossless_400000_5m_profile"]["xoff"])
            for number in range(4):
                port = Port(databases, f"Ethernet{8 * number}")
                used = port.headroom["USER"]
                assert used == port.headroom["PERSISTENT"] >= port.headroom["PERIODIC"]
                assert bool(used) == bool(port.pfc(3, "TX_PKTS"))
                if scenario != "misconfigured":
                    assert used <= size / 2
                    assert port.group_discards == int(
                        port.queue.get("PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS", 0)
                    )

    def test_the_periodic_watermark_begins_again_every_two_minutes(self) -> None:
        """The storms begin after 20, 110 and 210 s; the windows of two minutes have one or two of them."""
        switch = leaf()
        assert [self.storm_is_in(switch, seconds) for seconds in (19, 21, 119, 121, 200, 235, 241)] == [
            *((False, False), (True, True), (True, True)),
            *((False, True), (False, True), (True, True)),
            (False, True),
        ]

    def storm_is_in(self, switch: SimulatedSwitch, seconds: float) -> tuple[bool, bool]:
        """Whether the periodic window, and the time since the start, had a queue filled by a storm."""
        databases = switch.databases(START + seconds)
        oid = Port(databases, "Ethernet0").queue_oid
        periodic, ever = (
            int(
                databases["COUNTERS_DB"][f"{window}_WATERMARKS:{oid}"][
                    "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
                ]
            )
            for window in ("PERIODIC", "USER")
        )
        return periodic >= QUEUE_BYTES, ever >= QUEUE_BYTES

    def test_a_storm_fills_the_queue_and_the_watchdog_empties_it(self) -> None:
        switch = leaf()
        levels = [
            int(
                Port(switch.databases(START + seconds), "Ethernet0").queue[
                    "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"
                ]
            )
            for seconds in (19, 20.2, 22, 30)
        ]
        calm, full, emptied, again = levels
        assert full > 4 * calm > emptied == 0 < again


class TestMisconfigured:
    def test_the_first_host_has_pfc_on_another_priority(self) -> None:
        databases = tables("misconfigured", 60)
        assert databases["CONFIG_DB"]["PORT_QOS_MAP|Ethernet0"]["pfc_enable"] == "3"
        port = Port(databases, "Ethernet0")
        assert port.group_discards > 1000, "the host does not obey: the headroom overflows"
        size = databases["CONFIG_DB"]["BUFFER_PROFILE|pg_lossless_400000_5m_profile"]["xoff"]
        assert port.headroom["USER"] == int(size)

    def test_ecn_the_watchdog_and_the_thresholds_differ_on_one_port_each(self) -> None:
        config = tables("misconfigured", 60)["CONFIG_DB"]
        profiles = [
            config[f"WRED_PROFILE|{config[f'QUEUE|Ethernet{8 * number}|3']['wred_profile']}"]
            for number in range(6)
        ]
        assert [profile["ecn"] for profile in profiles].count("ecn_none") == 1
        assert profiles[1]["ecn"] == "ecn_none"
        thresholds = [profile["green_min_threshold"] for profile in profiles]
        assert [thresholds.count(one) for one in thresholds] == [5, 5, 5, 1, 5, 5]
        watched = [f"PFC_WD|Ethernet{8 * number}" in config for number in range(6)]
        assert watched == [True, True, False, True, True, True]


class TestTables:
    def test_they_do_not_depend_on_the_times_of_earlier_reads(self) -> None:
        for scenario in SCENARIOS:
            often, once = leaf(scenario), leaf(scenario)
            for tenth in range(1, 1300, 37):
                often.databases(START + tenth / 10)
            assert often.databases(START + 130) == once.databases(START + 130)

    def test_the_seed_decides(self) -> None:
        first, same, other = (leaf(seed=seed).databases(START + 50) for seed in (SEED, SEED, SEED + 1))
        assert first == same
        assert first["COUNTERS_DB"] != other["COUNTERS_DB"]
        assert first["APPL_DB"]["LLDP_LOC_CHASSIS"] != other["APPL_DB"]["LLDP_LOC_CHASSIS"]

    def test_every_object_of_the_name_maps_has_its_tables(self) -> None:
        counters = tables("quiet", 5)["COUNTERS_DB"]
        for kind in ("QUEUE", "PG"):
            oids = set(counters[f"COUNTERS_{kind}_NAME_MAP"].values())
            assert (
                oids
                == set(counters[f"COUNTERS_{kind}_INDEX_MAP"])
                == set(counters[f"COUNTERS_{kind}_PORT_MAP"])
            )
            assert set(counters[f"COUNTERS_{kind}_PORT_MAP"].values()) == set(
                counters["COUNTERS_PORT_NAME_MAP"].values()
            )
            for oid in oids:
                assert f"COUNTERS:{oid}" in counters
                for window in ("USER", "PERSISTENT", "PERIODIC"):
                    assert f"{window}_WATERMARKS:{oid}" in counters
        assert set(counters["COUNTERS_QUEUE_TYPE_MAP"]) == set(counters["COUNTERS_QUEUE_NAME_MAP"].values())
        for oid in counters["COUNTERS_BUFFER_POOL_NAME_MAP"].values():
            assert f"USER_WATERMARKS:{oid}" in counters

    def test_the_fields_of_a_watched_queue_are_those_of_a_real_switch(self) -> None:
        """Recorded: the queue of a Broadcom switch, in the tests of sonic-gnmi; constructed: without what NVIDIA lacks."""
        expected = {
            *("PFC_WD_ACTION", "PFC_WD_STATUS", "PFC_WD_DETECTION_TIME", "PFC_WD_RESTORATION_TIME"),
            *("PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED"),
            *("SAI_QUEUE_STAT_PACKETS", "SAI_QUEUE_STAT_BYTES"),
            *("SAI_QUEUE_STAT_DROPPED_PACKETS", "SAI_QUEUE_STAT_DROPPED_BYTES"),
            "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES",
        }
        queue = Port(tables("quiet", 5), "Ethernet0").queue
        assert expected == {name for name in queue if "WRED" not in name}
        assert queue["PFC_WD_STATUS"] == "operational"
        assert queue["PFC_WD_DETECTION_TIME"] == "400000", "microseconds"
