"""The sender and the responder of a host together, over the kernel's loopback: from the list of targets to the samples."""

import ipaddress
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from clock import Clock
from recorded import recording
from waiting import until

from roce_exporter.cli.entry import main
from roce_exporter.model import Device, Gid, Port
from roce_exporter.normalise.series import Histogram, Samples
from roce_exporter.probe.guard import FOLLOW_UPS, KNOWN_SECONDS, NEW_BURST, SESSIONS, SOURCES, Guard
from roce_exporter.probe.outcomes import BOUNDS, PAIRS_COUNTED, PortTally, ProcessCounts, probe_samples
from roce_exporter.probe.plan import FABRIC, RACK, Probe, ProbeTarget, SendRate, plan
from roce_exporter.probe.sender import LOST
from roce_exporter.probe.service import ProbeService, ProbeSettings, own_addresses, own_networks
from roce_exporter.probe.stamp import FollowUp
from roce_exporter.probe.target_source import TargetsError, read_document, read_file

ONE, TWO = "127.0.0.1", "127.0.0.2"


def device(name: str, *addresses: str, kind: str = "RoCE v2") -> Device:
    gids = tuple(Gid(number, kind, "eth0", address) for number, address in enumerate(addresses))
    return Device(name, "mlx5_core", "mlx5", ports=(Port(1, "Ethernet", gids=gids),))


def values(samples: Samples) -> dict[tuple[str, tuple[str, ...], str], float | None]:
    return {
        (series.row.name, series.labels, series.suffix): value
        for series, value in zip(samples.series, samples.values, strict=True)
    }


class Hosts:
    """Two hosts on addresses of this one, with responders on a port that is free on both."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.targets: Sequence[ProbeTarget] | TargetsError = ()
        self.one = self.service(0)
        self.one.follow([device("mlx5_0", ONE)])
        (port,) = self.one._ports.values()
        self.port = port.responder.socket.port
        self.two = self.service(self.port)
        self.two.follow([device("mlx5_1", TWO)])
        self.targets = [
            ProbeTarget("r1", "one", "0", ipaddress.ip_address(ONE), self.port),
            ProbeTarget("r1", "two", "0", ipaddress.ip_address(TWO), self.port),
        ]

    def service(self, port: int) -> ProbeService:
        return ProbeService(ProbeSettings(port, rate=SendRate(per_target=20.0)), self.read, self.clock)

    async def read(self) -> Sequence[ProbeTarget]:
        if isinstance(self.targets, TargetsError):
            raise self.targets
        return self.targets

    async def probe(self, answers: int) -> dict[tuple[str, tuple[str, ...], str], float | None]:
        """A burst of the first host, until so many probes were answered in all."""
        self.one.burst(self.clock.wall())
        await until(lambda: self.answered() >= answers)
        self.one.collect()
        return values(self.one.samples())

    def answered(self) -> float:
        return values(self.two.samples())["roce_probe_answered_total", (), ""] or 0

    def close(self) -> None:
        self.one.close()
        self.two.close()


@pytest.fixture
async def hosts() -> object:
    made = Hosts()
    for service in (made.one, made.two):
        await service.refresh()
    yield made
    made.close()


async def test_two_hosts_of_a_rack_probe_each_other(hosts: Hosts) -> None:
    found = await hosts.probe(2)
    assert found["roce_probe_sent_total", ("mlx5_0", "1", "rack", "roce"), ""] == 2
    assert found["roce_probe_lost_total", ("mlx5_0", "1", "rack", "roce"), ""] == 0
    assert found["roce_probe_targets", (), ""] == 1
    assert found["roce_probe_remarked_total", ("mlx5_0", "1", "rack"), ""] == 0
    answers, network = 2, [0.0, 0.0]
    while not network[1]:  # the kernel may stamp no packet of the first bursts
        answers += 2
        found = await hosts.probe(answers)
        network = [
            found["roce_probe_network_seconds", ("mlx5_0", "1", "rack", ""), part]
            for part in ("_sum", "_count")
        ]
    assert network[0] > 0
    assert found["roce_probe_network_max_seconds", ("mlx5_0", "1", "rack"), ""] > 0


async def test_every_series_of_a_port_is_there_before_its_first_event(hosts: Hosts) -> None:
    before = values(hosts.one.samples())
    assert {name for name, _, _ in before} >= {
        "roce_probe_lost_total",
        "roce_probe_late_total",
        "roce_probe_marked_total",
        "roce_probe_requests_dropped_total",
        "roce_probe_replies_dropped_total",
    }
    assert len([one for one in before if one[1][:1] == ("mlx5_0",)]) <= 32


async def test_a_silent_host_is_a_lossy_pair_for_ten_minutes(hosts: Hosts) -> None:
    hosts.two.close()
    hosts.one.burst(hosts.clock.wall())
    hosts.clock.now += LOST
    hosts.one.collect()
    found = values(hosts.one.samples())
    assert found["roce_probe_lost_total", ("mlx5_0", "1", "rack", "roce"), ""] == 2
    pairs = {
        labels[2]: value for (name, labels, _), value in found.items() if name == "roce_probe_pair_lost_total"
    }
    assert pairs == {"two": 1}
    assert len([one for one in found if one[0] == "roce_probe_pair_sent_total"]) == 2
    for seconds, shown in ((600, 4), (1, 0)):
        hosts.clock.now += seconds
        found = values(hosts.one.samples())
        assert sum(name.startswith("roce_probe_pair_") for name, _, _ in found) == shown


async def test_a_list_that_cannot_be_read_leaves_the_last_one(
    hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    hosts.targets = TargetsError("targets.json: is no JSON")
    for _ in range(3):
        await hosts.one.refresh()
    assert len(hosts.one.targets) == 2
    assert hosts.one.fault
    assert caplog.text.count("is no JSON") == 1
    hosts.targets = hosts.one.targets
    await hosts.one.refresh()
    assert not hosts.one.fault


async def test_an_address_that_goes_takes_its_series_along_and_comes_back(hosts: Hosts) -> None:
    await hosts.probe(2)
    hosts.one.follow([])
    assert not [one for one in values(hosts.one.samples()) if one[1][:1] == ("mlx5_0",)]
    hosts.one.follow([device("mlx5_0", ONE)])
    await hosts.one.refresh()
    await hosts.probe(4)


async def test_an_address_that_cannot_be_used_is_one_line_until_it_can(
    hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    before = values(hosts.one.samples())["roce_probe_plan_changes_total", (), ""]
    for _ in range(3):
        hosts.one.follow([device("mlx5_0", ONE, "192.0.2.99")])
    assert caplog.text.count("192.0.2.99 cannot be used") == 1
    assert values(hosts.one.samples())["roce_probe_plan_changes_total", (), ""] == before
    for _ in range(2):
        hosts.one.follow([device("mlx5_0", ONE)])
        hosts.one.follow([device("mlx5_0", ONE, "192.0.2.99")])
    assert caplog.text.count("192.0.2.99 cannot be used") == 3


async def test_a_device_that_is_renamed_has_series_of_its_new_name_and_its_own_entry(hosts: Hosts) -> None:
    hosts.one.follow([device("rocep1s0", ONE)])
    found = values(hosts.one.samples())
    assert ("roce_probe_port_info", ("rocep1s0", "1", ONE, "one", "r1", "0"), "") in found
    assert not [one for one in found if one[1][:1] == ("mlx5_0",)]


def test_own_ports_are_the_routable_addresses_of_rocev2() -> None:
    devices = [
        device("mlx5_0", ONE, "fe80::1", "fd00::1", "not an address"),
        device("mlx5_1", "10.0.0.9", kind="IB/RoCE v1"),
    ]
    assert own_addresses(devices) == {
        ipaddress.ip_address(ONE): ("mlx5_0", "1", 0),
        ipaddress.ip_address("fd00::1"): ("mlx5_0", "1", 2),
    }


def test_the_networks_of_own_addresses_are_the_kernels() -> None:
    assert own_networks([ipaddress.ip_address(ONE)]) == (ipaddress.ip_network("127.0.0.0/8"),)
    assert own_networks([ipaddress.ip_address("192.0.2.1")]) == ()


GROUPS = [
    {"targets": ["10.0.0.1", "10.0.0.2:99"], "labels": {"rack": "a", "rail": 1}},
    {"targets": ["[fd00::1]:7", "fd00::2"]},
]


@pytest.mark.parametrize(("name", "content"), [("t.json", json.dumps(GROUPS)), ("t.yml", json.dumps(GROUPS))])
def test_documents_of_prometheus_are_read(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    found = read_file(str(tmp_path / name))
    assert [(str(one.address), one.port, one.rack, one.rail) for one in found] == [
        ("10.0.0.1", 10124, "a", "1"),
        ("10.0.0.2", 99, "a", "1"),
        ("fd00::1", 7, "", ""),
        ("fd00::2", 10124, "", ""),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "must be a list of groups"),
        ("[3]", "group 0: must have `targets`"),
        ('[{"targets": "10.0.0.1"}]', "`targets` must be a list"),
        ('[{"targets": ["host"]}]', "'host' is no address"),
        ('[{"targets": [7]}]', "is no address"),
        ('[{"targets": ["10.0.0.1:4791"]}]', "port 4791 cannot be used"),
        ('[{"targets": ["10.0.0.1:0"]}]', "port 0 cannot be used"),
        ('[{"targets": ["224.0.0.1"]}]', "is not the address of a port"),
        ('[{"targets": [], "labels": {"rack": ["a"]}}]', "label rack must be"),
        ('[{"targets": [], "labels": {"rack": "a\\u001b"}}]', "label rack must be"),
    ],
)
def test_a_mistake_in_a_list_is_one_line_with_its_place(content: str, words: str) -> None:
    with pytest.raises(TargetsError, match=r"^list: ") as raised:
        read_document("list", content.encode())
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_missing_is_one_line() -> None:
    with pytest.raises(TargetsError, match=r"/missing\.json: No such file"):
        read_file("/missing.json")


NETWORKS = [ipaddress.ip_network("10.0.0.0/16"), ipaddress.ip_network("fd00::/64")]
HONEST = "10.0.0.9"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard(NETWORKS, clock)


@pytest.mark.parametrize(
    ("address", "port", "reason"),
    [
        ("10.0.3.4", 40000, ""),
        ("fd00::7", 40000, ""),
        ("fd00::7%eth0", 40000, ""),
        ("10.1.0.1", 40000, "not_allowed"),
        ("fd00:0:0:1::7", 40000, "not_allowed"),
        ("224.0.0.1", 40000, "not_allowed"),
        ("0.0.0.0", 40000, "not_allowed"),  # noqa: S104 - an address that is sent from
        ("10.0.3.4", 1023, "port"),
    ],
)
def test_only_ports_of_listed_networks_are_answered(
    guard: Guard, address: str, port: int, reason: str
) -> None:
    assert guard.admit_address(address, port) is (not reason)
    assert guard.dropped == Counter([reason] if reason else [])


def admitted(guard: Guard, address: str, count: int) -> int:
    return sum(guard.admit(address) is not None for _ in range(count))


def test_a_source_has_a_burst_and_then_a_rate(guard: Guard, clock: Clock) -> None:
    assert admitted(guard, HONEST, 100) == 64
    clock.now += 1
    assert admitted(guard, HONEST, 100) == 20
    assert guard.dropped == Counter({"source_rate": 116})


def test_a_flood_of_forged_sources_leaves_half_of_the_rate_to_known_ones(guard: Guard, clock: Clock) -> None:
    """The honest one is silent for five seconds between its bursts, and in each of these ten thousand new sources come."""
    for _ in range(4):
        assert admitted(guard, HONEST, 20) == 20
        clock.now += KNOWN_SECONDS / 3
    for second in range(10):
        for number in range(10_000):
            guard.admit(f"10.0.{number % 250}.{(number // 250 + 40 * second) % 250}")
        if second % 5 == 0:
            assert admitted(guard, HONEST, 20) == 20
        clock.now += 1
    assert len(guard) == SOURCES // 2 + 1
    for number in range(SOURCES + 1):
        guard.admit_address(f"10.0.{number // 250}.{number % 250}", 40000)
    assert guard._is_allowed.cache_info().currsize == SOURCES
    assert guard.dropped["total_rate"] > 90_000


def test_the_rate_of_all_is_limited(guard: Guard) -> None:
    assert sum(admitted(guard, f"10.0.0.{number}", 10) for number in range(100)) == NEW_BURST


def test_the_first_burst_of_a_host_with_eight_ports_is_answered(guard: Guard) -> None:
    assert [admitted(guard, f"10.0.0.{number}", 32) for number in range(8)] == [32] * 8


def test_send_times_wait_for_their_own_session_and_are_bounded(guard: Guard, clock: Clock) -> None:
    """Of all sources together, and new ones forget nothing of known ones."""
    assert guard.admit(HONEST)
    clock.now += KNOWN_SECONDS
    known = guard.admit(HONEST)
    assert known is not None
    for number in range(FOLLOW_UPS + 1):
        known.session(HONEST, 40000, 1).append(FollowUp(number, 1, 2))
    assert known.session(HONEST, 40000, 1)[0].sequence == 1
    assert not known.session(HONEST, 40000, 2)
    for number in range(100):
        source = guard.admit(f"10.0.1.{number}")
        for port in range(100):
            source.session(number, port)
        assert source.session is not known.session
    assert source.session.cache_info().currsize == SESSIONS
    assert known.session(HONEST, 40000, 1)[0].sequence == 1


@pytest.mark.parametrize(("whole", "count"), [(False, 296), (True, 659)])
def test_a_host_with_eight_ports_has_some_three_hundred_series(whole: bool, count: int, clock: Clock) -> None:
    ports = [PortTally(f"mlx5_{one}", "1", ProbeSettings().classes, clock) for one in range(8)]
    for one, port in enumerate(ports):
        port.target = ProbeTarget("r1", "h1", str(one), ipaddress.ip_address(one), 10124)
        for scope in (RACK, FABRIC):
            port.measured(Probe(port.target, 1, scope), 1e-5, 1e-4)
    counts = ProcessCounts(Counter(), 0, 0, 0, Histogram(BOUNDS))
    assert len(probe_samples(ports, counts, whole=whole).series) == count


@pytest.mark.parametrize("hosts", [32, 512])
def test_the_pairs_of_ten_minutes_are_kept_and_no_more(hosts: int, clock: Clock) -> None:
    """In an hour of new partners and source ports; a full mesh, and a ring with partners that change."""
    tally = PortTally("mlx5_0", "1", ProbeSettings().classes, clock)
    own, *others = (
        ProbeTarget(f"r{one // 16}", f"h{one}", "", ipaddress.ip_address(one), 10124) for one in range(hosts)
    )
    lossy = set()
    for minute in range(59):
        for probe in plan(own, others, 60.0 * minute):
            sent = probe._replace(path=40000 + 8 * (minute // 10) + probe.path)
            tally.sent(sent, ProbeSettings().kind(0))
            if minute == 49:
                tally.lost(sent, ProbeSettings().kind(0))
                lossy.add((sent.target.name, sent.path))
        clock.now += 60
    assert {key for key, _ in tally.lossy()} == lossy
    assert len(tally.pairs) == PAIRS_COUNTED


GROUPS = [
    {
        "targets": [f"10.0.{rack}.{number}" for number in (1, 2)],
        "labels": {"rack": f"r{rack}", "host": f"h{rack}"},
    }
    for rack in (1, 2)
]


@pytest.fixture
def targets(tmp_path: Path) -> str:
    (tmp_path / "ports.json").write_text(json.dumps(GROUPS))
    return f"--probe.targets={tmp_path / 'ports.json'}"


def test_the_plan_of_a_host_is_a_table(targets: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", targets, "plan", "h1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["FROM", "FROM_ADDRESS", "RAIL", "TO", "TO_ADDRESS", "SCOPE", "PATHS"]
    assert [line.split() for line in lines[1:3]] == [
        ["h1", "10.0.1.1", "h1", "10.0.1.2", "rack", "2"],
        ["h1", "10.0.1.1", "h2", "10.0.2.1", "fabric", "8"],
    ]
    assert len(lines) == 7


def test_what_the_options_select_is_what_is_sent_and_shown(
    targets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ProbeSettings] = []

    def service(settings: ProbeSettings, *_: object) -> ProbeService:
        made.append(settings)
        raise TargetsError("enough")

    monkeypatch.setattr("roce_exporter.cli.probe.ProbeService", service)
    (tmp_path / "probe.yml").write_text(
        "probe.roce-dscp: 34\nprobe.cnp-dscp: 46\nprobe.allow: [10.0.0.0/8]\n"
    )
    assert main(["probe", targets, f"--config.file={tmp_path / 'probe.yml'}", "--metrics.set=full"]) == 2
    assert main(["probe", targets]) == 2
    assert [(one.whole, [kind.tos for kind in one.classes], one.allowed) for one in made] == [
        (True, [34 << 2 | 2, 46 << 2, 0], (ipaddress.ip_network("10.0.0.0/8"),)),
        (False, [26 << 2 | 2, 48 << 2, 0], ()),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "h9"], "probe plan h9: is not in the list"),
        (["plan"], "probe plan: give `probe plan` one HOST"),
        (["--probe.targets=/missing.json"], "/missing.json: No such file or directory"),
        ("probe.key-file: /missing", "probe.key-file=/missing: No such file or directory"),
        ("probe.key-file: /dev/null", "has 0 characters; a key needs at least 16"),
        ("probe.key-file: /dev/zero", "has 4097 characters; a key needs at least 16 and at most 4096"),
        ("probe.allow: [10.0.0.0/99]", "probe.allow=10.0.0.0/99: is no network"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    targets: str, arguments: list[str] | str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if isinstance(arguments, str):
        (tmp_path / "config.yml").write_text(arguments)
        arguments = [f"--config.file={tmp_path / 'config.yml'}"]
    host = f"--host.recording={recording('mlx5-pair')}"
    assert main(["probe", host, targets, *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
