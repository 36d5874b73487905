"""The sources of the list besides files: HTTP, DNS, and a Prometheus that scrapes the hosts."""

import ipaddress
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from http_answers import answering

from roce_exporter.cli.entry import main
from roce_exporter.net.http import Access
from roce_exporter.net.login import Login
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.probe.target_source import TargetsError, read_document, read_here, read_remote

GROUPS = [{"targets": ["10.0.1.1"], "labels": {"rack": "r1", "host": "h1", "rail": "0"}}]
TARGET = ProbeTarget("r1", "h1", "0", ipaddress.ip_address("10.0.1.1"), 10124)


async def test_a_document_comes_by_http_with_its_query_and_the_login() -> None:
    with answering(lambda _: (200, GROUPS)) as server:
        url = f"{server.url}/sd?fabric=a"
        assert await read_remote(url, Access(Login("me", "secret"))) == (TARGET,)
        (request,) = server.requests
    assert request.path == "/sd?fabric=a"
    assert request.headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(500, b"", "HTTP 500"), (200, b"<html>", "is no JSON"), (200, {}, "must be a list of groups")],
)
async def test_an_answer_that_is_no_list_is_one_line_without_the_query(status, body, words) -> None:
    with answering(lambda _: (status, body)) as server, pytest.raises(TargetsError, match=words) as error:
        await read_remote(f"{server.url}/sd?token=hush", Access())
    assert "hush" not in str(error.value)


async def test_credentials_in_the_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(TargetsError, match="has credentials in it") as error:
        await read_remote("http://me:hush@127.0.0.1/sd", Access())
    assert "hush" not in str(error.value)


def test_the_addresses_of_a_name_are_targets() -> None:
    found = read_here("dns:localhost:10200")
    assert ipaddress.ip_address("127.0.0.1") in {one.address for one in found}
    assert {(one.rack, one.rail, one.port) for one in found} == {("", "", 10200)}


@pytest.mark.parametrize("source", ["dns:a..b", "dns:localhost:x", "dns:localhost:4791"])
def test_a_name_that_does_not_resolve_is_one_line(source) -> None:
    with pytest.raises(TargetsError, match=source.partition(":x")[0]):
        read_here(source)


def port(instance: str, address: str, device: str = "mlx5_0") -> dict[str, str]:
    return {"instance": instance, "device": device, "port": "1", "address": address}


GIDS = [
    port("a:10123", "10.0.0.1"),
    port("a:10123", "fe80::1"),
    port("b:10123", "10.0.0.2"),
    port("c:10123", "10.0.0.3"),
    port("d:10123", "10.0.0.4"),
    port("e:10123", "rubbish"),
]
NETDEVS = [
    port("a:10123", "") | {"netdev": "eth0", "mac": "02:00:00:00:00:01", "hostname": "gpu-a.example"},
    port("b:10123", "") | {"netdev": "eth0", "mac": "02:00:00:00:00:02", "hostname": "gpu-b"},
    port("c:10123", "") | {"netdev": "eth0", "mac": "02:00:00:00:00:03", "hostname": "gpu-c"},
]
NEIGHBORS = [
    {"device": "leaf1", "neighbor": "", "neighbor_port": "", "neighbor_mac": "02:00:00:00:00:01"},
    {"device": "leaf2", "neighbor": "gpu-b.example", "neighbor_port": "eth0", "neighbor_mac": ""},
    # Two switches say that they have it: a wrong rack is worse than none.
    {"device": "leaf1", "neighbor": "", "neighbor_port": "", "neighbor_mac": "02:00:00:00:00:03"},
    {"device": "leaf2", "neighbor": "", "neighbor_port": "", "neighbor_mac": "02:00:00:00:00:03"},
]


def prometheus(path: str) -> tuple[int, object]:
    query = parse_qs(urlsplit(path).query)["query"][0]
    rows = next(
        rows
        for name, rows in (("gid_info", GIDS), ("netdev_info", NETDEVS), ("lldp", NEIGHBORS))
        if name in query
    )
    result = [{"metric": one, "value": [1, "1"]} for one in rows]
    return 200, {"status": "success", "data": {"resultType": "vector", "result": result}}


async def test_a_prometheus_names_ports_hosts_rails_and_the_switch_as_rack() -> None:
    with answering(prometheus) as server:
        found = await read_remote(f"prometheus+{server.url}", Access())
    assert {(one.rack, one.host, one.rail, str(one.address)) for one in found} == {
        ("leaf1", "gpu-a.example", "mlx5_0", "10.0.0.1"),
        ("leaf2", "gpu-b", "mlx5_0", "10.0.0.2"),
        ("", "gpu-c", "mlx5_0", "10.0.0.3"),
        ("", "d", "mlx5_0", "10.0.0.4"),
    }


async def test_a_prometheus_without_ports_is_no_empty_list() -> None:
    empty = {"status": "success", "data": {"resultType": "vector", "result": []}}
    with answering(lambda _: (200, empty)) as server, pytest.raises(TargetsError, match="no roce_gid_info"):
        await read_remote(f"prometheus+{server.url}", Access())


def test_the_command_reads_every_source(tmp_path, capsys) -> None:
    groups = [{"targets": ["10.0.1.2"], "labels": {"host": "h2", "rail": "0"}}]
    (tmp_path / "ports.json").write_text(json.dumps(groups))
    with answering(lambda _: (200, GROUPS)) as server:
        sources = [f"--probe.targets={one}" for one in (tmp_path / "ports.json", server.url)]
        assert main(["probe", *sources, "--probe.plan=h2"]) == 0
    (_, line) = capsys.readouterr().out.splitlines()
    assert line.split() == ["h2", "10.0.1.2", "0", "h1", "10.0.1.1", "fabric", "8"]


@pytest.mark.parametrize("metric", [{"hostname": 5}, {"device": ["a"]}, [1]])
async def test_labels_that_are_no_texts_are_one_line(metric) -> None:
    data = {"resultType": "vector", "result": [{"metric": metric, "value": [1, "1"]}]}
    answer = {"status": "success", "data": data}
    with (
        answering(lambda _: (200, answer)) as server,
        pytest.raises(TargetsError, match="not a valid vector"),
    ):
        await read_remote(f"prometheus+{server.url}", Access())


def test_a_number_that_python_cannot_print_is_one_line() -> None:
    with pytest.raises(TargetsError, match="label rack must be a printable text"):
        read_document("ports.yml", f"- labels: {{rack: 0x{'f' * 5000}}}".encode(), is_yaml=True)
