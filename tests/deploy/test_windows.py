"""deploy/windows/: generated from the catalogue, and joined with Linux hosts by Prometheus.

No Windows machine was read, and windows_exporter's own code does not run here. The host is constructed: two adapters of WinOF-2 with names of the form of a public issue (description, #2
for the second of a model). How an instance of Port QoS names its priority is a guess of ours.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, module_of, printed, ran, tool_environment
from http_answers import answering
from servers import Running, prometheus
from tools import need
from waiting import wait_until

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.windows import PERFORMANCE_COUNTER

WINDOWS = DEPLOY / "windows"
CONFIGURATION = WINDOWS / "windows_exporter.yml"
RULES = WINDOWS / "roce-windows.rules.yml"
SCRIPT = WINDOWS / "Show-RoceCounters.ps1"
GENERATOR = module_of(WINDOWS / "generate.py", "windows_generate")
FIRST, SECOND = ADAPTERS = ("Mellanox ConnectX-6 Dx Adapter", "Mellanox ConnectX-6 Dx Adapter #2")
PORT_QOS = "Mellanox WinOF-2 Port QoS"
CONGESTION = "Mellanox WinOF-2 Congestion Control"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
Values = dict[str, dict[str, dict[str, float | None]]]
"""Object, counter, instance, value; None: there is an instance, and it has no valid value."""


@functools.cache
def objects() -> list[dict[str, Any]]:
    """The entries of the delivered configuration."""
    text = yaml.safe_load(CONFIGURATION.read_text())["collector"]["performancecounter"]["objects"]
    return yaml.safe_load(text)


def instances(counter_object: str) -> list[str]:
    """The instances of an object on this host."""
    if counter_object == PORT_QOS:
        return [f"{adapter} Priority {priority}" for adapter in ADAPTERS for priority in range(8)]
    return list(ADAPTERS)


def counters() -> Values:
    """Values of all counters of the configuration, each another one, and the total that Windows has."""
    found: Values = {}
    number = 1000.0
    for entry in objects():
        for counter in entry["counters"]:
            values = found.setdefault(entry["object"], {}).setdefault(counter["name"], {"_Total": 1.0})
            for instance in instances(entry["object"]):
                values[instance] = number = number + 1
    return found


def expected(values: Values) -> Series:
    """What the collector shows: per entry and instance one series, with the labels of the entry."""
    found: Series = {}
    for entry in objects():
        (counter,) = entry["counters"]
        for instance, value in values.get(entry["object"], {}).get(counter["name"], {}).items():
            if instance != "_Total" and value is not None:
                labels = {"device": instance, **counter.get("labels", {})}
                found[counter["metric"], frozenset(labels.items())] = value
    return found


# --- what is generated


def test_the_files_are_generated_from_the_catalogue() -> None:
    """`make generate` writes them."""
    assert CONFIGURATION.read_text() == GENERATOR.configuration()
    assert RULES.read_text() == GENERATOR.rules()
    assert GENERATOR.EVIDENCE.read_text() == GENERATOR.evidence(GENERATOR.EVIDENCE.read_text())


def test_every_counter_of_the_catalogue_is_an_entry_of_its_own_with_the_labels_of_its_row() -> None:
    """Instances of two objects may have the same name: a series of two entries would be an error of the scrape."""
    raw = {
        tuple(name.split("\\"))
        for row in CATALOG
        for one in row.spellings
        if one.source == PERFORMANCE_COUNTER
        for name in one.raw
    }
    found = objects()
    assert {(one["object"], counter["name"]) for one in found for counter in one["counters"]} == raw
    assert (
        len({one["name"] for one in found})
        == len({one["counters"][0]["metric"] for one in found})
        == len(found)
    )
    rows = {row.name: set(row.labels) for row in CATALOG}
    helpers = {one.metric: set(one.row.labels) for one in GENERATOR.conversions()}
    for entry in found:
        (counter,) = entry["counters"]
        of_row = {**helpers, **rows}.get(counter["metric"], {"device", "port", "netdev"})
        assert {entry["instance_label"], *counter.get("labels", {})} == of_row


def test_promtool_accepts_rules_and_scrape_configuration() -> None:
    for command in (
        ("rules", "--lint=all", "--lint-fatal", RULES),
        ("config", "--syntax-only", WINDOWS / "prometheus.yml"),
    ):
        done = ran(need("promtool"), "check", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    groups = yaml.safe_load(RULES.read_text())["groups"]
    assert {rule["record"] for group in groups for rule in group["rules"]} <= {row.name for row in CATALOG}
    text = (WINDOWS / "prometheus.yml").read_text()
    (job,) = yaml.safe_load(text)["scrape_configs"]
    used = [one for one in job["metric_relabel_configs"] if "[Pp]rio" in str(one.get("regex"))]
    assert (len(used), len(re.findall(r"\[Pp\]rio", text))) == (2, 1), "the form of instances is written once"


# --- Prometheus

HOST = {"cluster": "default", "instance": "win1", "job": "roce-windows"}
ODD = {
    f"{FIRST}, Priority 3": 11.0,
    f"{FIRST} (Priority 4)": 12.0,
    f"{SECOND} - prio 3": 13.0,
    f"{SECOND}_Priority_4": 14.0,
    "Slot 2 Port 1 Priority #5": 15.0,
    "Slot 2 Port 1 Q5": 16.0,
}
"""Forms that an instance of Port QoS may have; the last one is not understood."""


def values_with_odd_forms() -> Values:
    found = counters()
    found[PORT_QOS]["Packets Sent"] = dict(ODD)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Running]:
    """A Prometheus that scrapes what the collector shows, with the delivered configuration and rules."""
    folder = tmp_path_factory.mktemp("windows")
    shown = {
        **expected(values_with_odd_forms()),
        **{
            ("windows_net_nic_operation_status", frozenset({("nic", FIRST), ("status", status)})): value
            for status, value in (("up", 1), ("down", 0))
        },
        ("windows_net_current_bandwidth_bytes", frozenset({("nic", FIRST)})): 12.5e9,
        ("windows_cpu_time_total", frozenset({("core", "0")})): 5,
    }
    text = "".join(
        f"{name}{{{','.join(f'{key}={json.dumps(label)}' for key, label in labels)}}} {value}\n"
        for (name, labels), value in shown.items()
    )
    with answering(lambda _: (200, text.encode())) as page:
        page.headers["Content-Type"] = "text/plain; version=0.0.4"
        config = yaml.safe_load((WINDOWS / "prometheus.yml").read_text())
        (job,) = config["scrape_configs"]
        del job["file_sd_configs"]
        address = page.url.removeprefix("http://")
        job["static_configs"] = [{"targets": [address], "labels": {"instance": "win1"}}]
        config["global"] = {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(RULES)]
        place = folder / "prometheus.yml"
        place.write_text(yaml.safe_dump(config))
        with prometheus(folder, place) as started:
            # the last of the rules: all others were evaluated before it
            wait_until(lambda: started.values("roce_link_speed_bytes_per_second"))
            wait_until(lambda: started.values("roce_pfc_receive_pause_seconds_total"))
            yield started


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset({**labels, **HOST}.items())


def port(device: str, **labels: str) -> frozenset[tuple[str, str]]:
    return labelled(device=device, port="1", **labels)


def of_adapters(counter_object: str, counter: str, *labels: str) -> dict[frozenset[tuple[str, str]], float]:
    """The values of a counter by the labels of a Linux host: these, and the device."""
    values = counters()[counter_object][counter]
    return {
        labelled(device=one, **{name: {"port": "1", "netdev": one}[name] for name in labels}): values[one]
        or 0.0
        for one in ADAPTERS
    }


JOINED = {
    "roce_ecn_marked_packets_total": of_adapters(
        CONGESTION, "Notification Point - RoCEv2 DCQCN Marked Packets", "port"
    ),
    "roce_pfc_watchdog_warnings_total": of_adapters(
        "Mellanox WinOF-2 Diagnostics", "Minor Stall Watermark Reached", "port", "netdev"
    ),
    "roce_devlink_vnic_cq_overrun_total": of_adapters("Mellanox WinOF-2 VF Diagnostics", "CQ Overrun"),
    "roce_device_info": {labelled(device=one, driver="winof2"): 1 for one in ADAPTERS},
    "roce_port_info": {port(one, netdev=one, lag="false"): 1 for one in ADAPTERS},
    "roce_port_netdev_info": {port(one, netdev=one, role="port"): 1 for one in ADAPTERS},
    # states are missing where the collector net has another name for a NIC
    "roce_port_up": {port(FIRST): 1},
    "roce_link_up": {port(FIRST, netdev=FIRST): 1},
    "roce_link_speed_bytes_per_second": {port(FIRST, netdev=FIRST): 12.5e9},
    "roce_priority_transmit_packets_total": {
        port(FIRST, netdev=FIRST, priority="3"): 11,
        port(FIRST, netdev=FIRST, priority="4"): 12,
        port(SECOND, netdev=SECOND, priority="3"): 13,
        port(SECOND, netdev=SECOND, priority="4"): 14,
        port("Slot 2 Port 1", netdev="Slot 2 Port 1", priority="5"): 15,
        # what is not understood stays visible and keeps the whole instance as its device
        port("Slot 2 Port 1 Q5", netdev="Slot 2 Port 1 Q5", priority="in_device"): 16,
    },
    **{
        metric: {
            port(one, netdev=one, priority=str(number)): (
                counters()[PORT_QOS][counter][f"{one} Priority {number}"] or 0.0
            )
            * unit
            for one in ADAPTERS
            for number in range(8)
        }
        for metric, counter, unit in (
            ("roce_pfc_receive_frames_total", "Rcv Pause Frames", 1),
            # WinOF's `Sent Pause Duration` is how long this host was paused: that of received frames on Linux
            ("roce_pfc_receive_pause_seconds_total", "Sent Pause Duration", 1e-6),
            ("roce_pfc_transmit_pause_seconds_total", "Rcv Pause Duration", 1e-6),
        )
    },
    # other collectors are left to other jobs
    "windows_cpu_time_total": {},
}
"""Series by the labels that Linux hosts have."""


@pytest.mark.ci
@pytest.mark.parametrize("metric", JOINED)
def test_series_have_the_labels_of_a_linux_host(server, metric) -> None:
    found = {
        frozenset(pair for pair in labels if pair[0] != "__name__"): value
        for labels, value in server.values(metric).items()
    }
    assert found == pytest.approx(JOINED[metric])


# --- alerts, by promtool

WHERE = 'cluster="default",job="roce-windows",instance="win1"'
LINUX = 'cluster="default",job="roce",instance="lin1",device="mlx5_0",port="1",netdev="eth0",priority="3"'
LABELS = {
    "adapter": 'device="CX6",port="1",netdev="CX6",',
    "port": 'device="CX6",port="1",',
    "priority": 'device="CX6",port="1",netdev="CX6",priority="3",',
    "nic": 'nic="CX6",',
    "up": 'nic="CX6",status="up",',
    "host": "",
}
STILL, BUSY = "0+0x360", "0+1000000000x360"
HEALTHY = {
    "up": ("host", "1+0x360"),
    "winof2_adapter_received_bytes_total": ("adapter", BUSY),
    "roce_phy_receive_bytes_total": ("adapter", BUSY),
    "roce_phy_transmit_bytes_total": ("adapter", BUSY),
    "roce_phy_receive_crc_errors_total": ("adapter", STILL),
    "roce_port_receive_bytes_total": ("port", BUSY),
    "roce_port_transmit_bytes_total": ("port", BUSY),
    "roce_priority_receive_bytes_total": ("priority", BUSY),
    "roce_priority_transmit_bytes_total": ("priority", BUSY),
    "roce_ecn_marked_packets_total": ("port", "0+100x360"),
    "roce_cnp_sent_total": ("port", "0+50x360"),
    "roce_cnp_handled_total": ("port", "0+50x360"),
    "roce_cnp_ignored_total": ("port", STILL),
    "roce_pfc_receive_frames_total": ("priority", STILL),
    "roce_pfc_transmit_frames_total": ("priority", STILL),
    "winof2_sent_pause_duration_microseconds_total": ("priority", STILL),
    "winof2_rcv_pause_duration_microseconds_total": ("priority", STILL),
    "roce_pfc_watchdog_warnings_total": ("adapter", STILL),
    "roce_pfc_watchdog_trips_total": ("adapter", STILL),
    "roce_transport_out_of_sequence_total": ("port", STILL),
    "windows_net_nic_operation_status": ("up", "1+0x360"),
    "windows_net_current_bandwidth_bytes": ("nic", "12500000000+0x360"),
}
"""The series of a Windows host after the scrape, every 15 s, for one adapter."""
PAUSED = {
    "winof2_sent_pause_duration_microseconds_total": "0+9000000x360",
    "roce_pfc_receive_frames_total": "0+5000x360",
}
STALLED = {
    "roce_pfc_watchdog_warnings_total": "0+0x120 1+0x240",
    "roce_pfc_watchdog_trips_total": "0+0x240 1+0x70 3+0x49",
}
QUERY = "round(sum by (instance, priority) (rate(roce_pfc_receive_pause_seconds_total[5m])) * 100)"


def history(changes: dict[str, str], *alerts: tuple[int, tuple[str, ...]], **shown: float) -> dict[str, Any]:
    """A test of promtool: exactly these alerts fire for the host at these minutes, and the query shows these instances."""
    series = [
        {"series": f"{name}{{{LABELS[kind]}{WHERE}}}", "values": changes.get(name, values)}
        for name, (kind, values) in HEALTHY.items()
    ]
    series.append({"series": f"roce_pfc_receive_pause_seconds_total{{{LINUX}}}", "values": "0+3x360"})
    firing = 'group by (alertname) (ALERTS{alertstate="firing",instance="win1"})'
    tests = [
        {
            "expr": firing,
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names],
        }
        for minute, names in alerts
    ]
    samples = [
        {"labels": f'{{instance="{name}",priority="3"}}', "value": value} for name, value in shown.items()
    ]
    tests.append({"expr": QUERY, "eval_time": "60m", "exp_samples": samples})
    return {"interval": "15s", "input_series": series, "promql_expr_test": tests}


@pytest.mark.ci
def test_alerts_and_queries_are_those_of_linux_hosts(tmp_path) -> None:
    """Paused 60 % of the time: 9 s of each 15 s. No alert takes the missing series of a Linux host for a fault."""
    paused, tripped = ("RocePortVictim",), ("RoceNicPauseWatchdogTripped",)
    tests = [
        history({}, (5, ()), (30, ()), (60, ()), (90, ()), win1=0, lin1=20),
        history(PAUSED, (60, paused), win1=60, lin1=20),
        # one trip is over: twice within ten minutes is a page
        history(STALLED, (25, ()), (61, ()), (80, tripped), win1=0, lin1=20),
    ]
    file = tmp_path / "test.yml"
    rules = [str(ROOT / "alerts/roce.rules.yml"), str(RULES)]
    file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": tests}))
    done = ran(need("promtool"), "test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


# --- the script, which only reads: PowerShell is not available here

READING = {"Get-Content", "Get-Counter", "Join-Path", "ForEach-Object", "Where-Object", "Sort-Object"}
"""All cmdlets of the script. None of them can change a setting."""
PARSE = """
import json, sys
import tree_sitter, tree_sitter_powershell
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
for text in json.load(sys.stdin):
    tree = parser.parse(text.encode())
    names, waiting = [], [tree.root_node]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "command_name":
            names.append(node.text.decode())
    print(json.dumps([tree.root_node.has_error, sorted(set(names))]))
"""


@pytest.mark.ci
def test_the_script_is_powershell_and_runs_only_cmdlets_that_read() -> None:
    """For the grammar of tree-sitter, which finds a command that is added, and an unbalanced script."""
    text = SCRIPT.read_text()
    added = ("Set-NetQosDcbxSetting -Willing 0", "& mlx5cmd.exe -Stat", "iex $object")
    broken = text.replace("== found", "'", 1) + "\nif ($x) {\n"
    texts = json.dumps([text, broken, *(f"{text}\n{line}\n" for line in added)])
    lines = printed(tool_environment("powershell") / "python", "-c", PARSE, input=texts).splitlines()
    (error, commands), (fault, _), *others = map(json.loads, lines)
    assert (error, set(commands), fault) == (False, READING, True)
    assert len(others) == len(added)
    assert all(set(found) != READING for _, found in others)


def test_the_script_calls_no_method_of_dotnet_and_finds_every_counter_of_the_configuration() -> None:
    """A cmdlet is not the only way to change something. Its expressions read the configuration line by line."""
    text = SCRIPT.read_text()
    code = re.sub(r"<#.*?#>", "", text, flags=re.DOTALL).replace(".ContainsKey(", "")
    assert not re.search(r"\[[\w.]+\]::|New-Object|\.\w+\((?!.*'\))|Invoke-|Start-|>\s*\S+\.txt", code)
    of_object, of_counter = re.findall(r"\$line -match '(.+?)'\)", text)
    found, current = [], ""
    for line in CONFIGURATION.read_text().splitlines():
        if match := re.match(of_object, line):
            current = match[1]
        elif match := re.match(of_counter, line):
            found.append((current, match[1]))
    assert found == [(one["object"], counter["name"]) for one in objects() for counter in one["counters"]]
