"""`check fabric`: the findings of all hosts in a Prometheus, by the command and its real requests."""

import json
from collections import defaultdict
from urllib.parse import parse_qs, urlsplit

import pytest
from http_answers import answering

from roce_exporter.catalog import INDEX
from roce_exporter.cli.entry import main

RACKS, HOSTS = 3, 4
NAMES = [f"h{rack}{number}" for rack in range(RACKS) for number in range(HOSTS)]


class Fabric:
    """Healthy counts of a minute of every host, which a test changes. All began 1,000 earlier."""

    def __init__(self) -> None:
        self.rises: dict[str, dict[tuple[str, ...], float]] = {}
        self.rates = dict.fromkeys(NAMES, 20000000000.0)
        self.odd: dict[tuple[str, str], float] = {}
        self.has_rules = True
        for name in NAMES:
            rise = self.rises[f"{name}:10126"] = defaultdict(float)
            for scope, sent in (("rack", 72), ("fabric", 192)):
                rise["roce_probe_sent_total", "mlx5_0", "1", scope, "roce"] = sent
                rise["roce_probe_network_seconds_sum", "mlx5_0", "1", scope] = sent * 2e-5
                rise["roce_probe_network_seconds_count", "mlx5_0", "1", scope] = sent
            rise["roce_probe_answer_seconds_sum",] = 264 * 1e-4
            rise["roce_probe_answer_seconds_count",] = 264
            rise["roce_probe_requests_dropped_total", "queue"] = 0

    def lose(self, host: str, peer: str, lost: int, port: str = "40000") -> None:
        """Of the 12 probes of a minute from one source port."""
        rise = self.rises[f"{host}:10126"]
        rise["roce_probe_pair_sent_total", "mlx5_0", "1", peer, port] = 12
        rise["roce_probe_pair_lost_total", "mlx5_0", "1", peer, port] = lost

    def answer(self, path: str) -> tuple[int, object]:
        query = {key: one[0] for key, one in parse_qs(urlsplit(path).query).items()}
        end, start = float(query["end"]), float(query["start"])
        result = []
        if "roce_switch_" in query["query"]:
            calm = [{"metric": {}, "values": [[end, "0"]]}]
            result += calm * ("link_fault" not in query["query"])  # of these no port has a series
        elif "max_over_time" in query["query"]:
            for name, rate in self.rates.items():
                metric = {"instance": f"{name}:10123", "device": "mlx5_0", "port": "1"}
                result.append({"metric": metric, "values": [[end, str(rate)]]})
        elif "roce_odd_host" in query["query"]:
            if "count" in query["query"] and self.has_rules:
                result.append({"metric": {}, "values": [[end, "12"]]})
            for (name, signal), score in self.odd.items() if "count" not in query["query"] else ():
                metric = {"instance": f"{name}:10123", "workload": "ml/train", "signal": signal}
                result.append({"metric": metric, "values": [[end, str(score)]]})
        elif query["query"].startswith("{"):
            for instance, rises in self.rises.items():
                name = instance.partition(":")[0]
                info = ("roce_probe_port_info", "mlx5_0", "1", "10.0.0.1", name, f"r{name[1]}", "")
                for (metric, *labels), rise in {**rises, info: 0}.items():
                    row = INDEX.named.get(metric) or INDEX.named[metric.rpartition("_")[0]]
                    names = [one for one in row.labels if one != "le"]
                    series = dict(zip(names, labels, strict=True))
                    begin = [] if "pair" in metric else [[start, "1000"]]
                    values = [*begin, [end, str(rise + 1000 * bool(begin))]]
                    series |= {"__name__": metric, "instance": instance, "job": "probe"}
                    result.append({"metric": series, "values": values})
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}


def check(fabric: Fabric, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict]:
    with answering(fabric.answer) as server:
        code = main(["check", *words, f"--prometheus={server.url}", "--since=60s", "--format=json"])
    return code, json.loads(capsys.readouterr().out)


def found(document: dict) -> list[tuple[str, str, str]]:
    return [(one["check"], one["device"], one["side"]) for one in document["findings"]]


def test_a_healthy_fabric_has_no_finding(capsys) -> None:
    code, document = check(Fabric(), capsys, "fabric")
    assert (code, document["findings"], document["not_checked"]) == (0, [], [])
    assert "12 probers" in document["source"]


def test_the_odd_host_of_a_job_is_named_once_with_its_signals(capsys) -> None:
    fabric = Fabric()
    fabric.odd = {("h12", "pause"): 4.5, ("h12", "throughput"): 7.0}
    code, document = check(fabric, capsys, "fabric")
    assert (code, found(document)) == (1, [("odd_host", "h12:10123", "host")])
    assert [said.partition(":")[0] for said in document["findings"][0]["evidence"]] == [
        "it sends less",
        "it transmits more pause",
    ]


def test_without_the_recording_rules_the_odd_host_is_not_seen(capsys) -> None:
    fabric = Fabric()
    fabric.has_rules = False
    code, document = check(fabric, capsys, "fabric")
    assert code == 0
    assert [gap["what"].partition(":")[0] for gap in document["not_checked"]] == ["the odd host of a job"]


def test_probes_are_judged_where_the_pause_of_switches_cannot_be_queried(capsys) -> None:
    class ManySwitches(Fabric):
        def answer(self, path: str) -> tuple[int, object]:
            refused = {"status": "error", "error": "query processing would load too many samples"}
            return (422, refused) if "roce_switch_" in path else super().answer(path)

    fabric = ManySwitches()
    tor_loses(fabric)
    code, document = check(fabric, capsys, "fabric")
    assert (code, found(document)) == (1, [("probe_loss", "ToR r1", "fabric")])
    assert "too many samples" in json.dumps(document["not_checked"])


def host_loses(fabric: Fabric) -> None:
    for name in NAMES:
        if name != "h12":
            fabric.lose(name, "h12", 3)
            fabric.lose("h12", name, 3)


def host_is_down(fabric: Fabric) -> None:
    host_loses(fabric)
    for name in NAMES:
        fabric.lose(name, "h12", 12)
    del fabric.rises["h12:10126"]


def responder_is_stopped(fabric: Fabric) -> None:
    for name in NAMES:
        if name != "h12":
            fabric.lose(name, "h12", 12)


def tor_loses(fabric: Fabric) -> None:
    for name in NAMES:
        for peer in NAMES:
            if name != peer and "1" in name[1] + peer[1]:
                fabric.lose(name, peer, 1)


def uplinks_lose(fabric: Fabric) -> None:
    for name in NAMES:
        for peer in NAMES:
            if (name[1] == "1") != (peer[1] == "1"):
                fabric.lose(name, peer, 1)


def port_is_slow(fabric: Fabric) -> None:
    for scope in ("rack", "fabric"):
        fabric.rises["h12:10126"]["roce_probe_network_seconds_sum", "mlx5_0", "1", scope] = 0.2


def class_is_cleared(fabric: Fabric) -> None:
    for name in ("h10", "h11", "h12", "h13"):
        fabric.rises[f"{name}:10126"]["roce_probe_remarked_total", "mlx5_0", "1", "rack"] = 72


def switch_marks(fabric: Fabric) -> None:
    for name in NAMES:
        fabric.rises[f"{name}:10126"]["roce_probe_marked_total", "mlx5_0", "1", "fabric"] = 50


def host_is_busy(fabric: Fabric) -> None:
    """It loses probes, and its kernel counts them: no port and no switch is named."""
    for name in NAMES[:8]:
        fabric.lose(name, "h12", 1) if name != "h12" else None
    fabric.rises["h12:10126"]["roce_probe_requests_dropped_total", "queue"] = 8


def port_never_fast(fabric: Fabric) -> None:
    fabric.rates["h12"] = 1.6e9


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (host_loses, [("probe_loss", "h12", "host")]),
        (host_is_down, [("probe_loss", "h12", "host")]),
        (responder_is_stopped, [("probe_loss", "h12", "host")]),
        (tor_loses, [("probe_loss", "ToR r1", "fabric")]),
        (uplinks_lose, [("probe_loss", "uplinks of r1", "fabric")]),
        (port_is_slow, [("probe_delay", "h12", "host")]),
        (class_is_cleared, [("probe_remarked", "ToR r1", "fabric")]),
        (switch_marks, [("probe_marked", "racks r0, r1, r2", "fabric")]),
        (host_is_busy, [("probe_busy_host", "h12", "host")]),
        (port_never_fast, [("port_never_fast", "h12:10123 mlx5_0", "host")]),
    ],
)
def test_a_fault_is_named(fault, expected, capsys) -> None:
    fabric = Fabric()
    fault(fabric)
    code, document = check(fabric, capsys, "fabric")
    assert found(document) == expected
    assert code == 1
    assert all(one["why"] and one["evidence"] for one in document["findings"])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            host_loses,
            '66 of 576 probes lost in 60 s (11.5 %)", "losses on 22 paths (UDP source ports) through it", "lost: 33 of its own 264 probes, 33 of 132 to it',
        ),
        (host_is_down, "exports nothing of its own"),
        (responder_is_stopped, "its own are answered"),
        (uplinks_lose, "Probes cannot say which one: their paths between racks are not traced"),
        (port_is_slow, '"2778 us there and back on average; 20 us is usual on its rail"'),
        (class_is_cleared, '"r1: 288 of 288 probes inside the rack"'),
        (switch_marks, '"r0: 200 of 768 probes to other racks", "r1: 200 of 768'),
        (switch_marks, '"A switch marks probes as congested"'),
        (host_is_busy, '"it held a probe for 0.1 ms on average", "8 packets dropped from its sockets"'),
        (
            port_never_fast,
            '"at most 12.8 Gbit/s of 160 Gbit/s in 7 days", "11 of 11 other ports of its rail carried up to 160 Gbit/s"',
        ),
    ],
)
def test_the_evidence_and_what_cannot_be_said(fault, words, capsys) -> None:
    fabric = Fabric()
    fault(fabric)
    _, document = check(fabric, capsys, "fabric")
    assert words in json.dumps(document["findings"][0])


def test_without_a_topic_a_prometheus_of_many_probers_is_judged_as_a_whole(capsys) -> None:
    fabric = Fabric()
    tor_loses(fabric)
    code, document = check(fabric, capsys)
    assert (code, found(document)) == (1, [("probe_loss", "ToR r1", "fabric")])
    assert [one["what"] for one in document["not_checked"]] == [
        "settings and health of one host: give --target"
    ]


def test_a_prometheus_without_probes_is_not_called_healthy(capsys) -> None:
    fabric = Fabric()
    fabric.rises.clear()
    code, document = check(fabric, capsys, "fabric")
    assert code == 3
    assert "no host exports probes" in document["not_checked"][0]["what"]


def test_fabric_needs_a_prometheus(capsys) -> None:
    assert main(["check", "fabric"]) == 2
    assert "check fabric needs --prometheus=URL" in capsys.readouterr().err
