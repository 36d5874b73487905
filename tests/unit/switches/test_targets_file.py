"""The configuration file of `roce-exporter serve --switches.config`: what it says, and one line for everything that is wrong."""

import ipaddress
from pathlib import Path

import pytest

from roce_exporter.net.login import Credentials
from roce_exporter.net.tls import TlsFiles
from roce_exporter.switches.targets import FastSamples, Link, ProbeLimits, read_switches_file
from roce_exporter.yaml_document import DocumentError

FULL = """\
targets:
  leaf1: {module: sonic, address: "redis://127.0.0.1:6379", links: {Ethernet0: "gpu-001/eth0"}}
  leaf2:
    module: sonic_gnmi
    address: leaf2.example.com:50052
    tls: {ca_file: ca.pem, server_name: leaf2}
    basic_auth: {username: ro, password_file: pw}
    priorities: all
    lossless: []
    timeout: 5s
    connect_timeout: 500ms
    stream: {ports: [Ethernet0, Ethernet4], every: 2s}
  leaf3: {module: sonic, address: "unix:///var/run/redis/redis.sock", database_config: ca.pem}
  leaf4: {module: eos, address: "grpc://[2001:db8::1]", ports: {https: 8443}, stream: true}
  spine1: {module: nxos, address: "https://spine1.example.com"}
discovery:
  allow: [10.1.0.0/16, "2001:db8::/32"]
  module: nxos
lossless: [5, 3]
limits: {cache: 500ms, targets_at_once: 4, timeout: 1m, connect_timeout: 1s, series: 5000}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ca.pem").write_text("certificate")
    (tmp_path / "pw").write_text("secret\n")
    return tmp_path


def read(folder: Path, text: str) -> object:
    file = folder / "switches.yml"
    file.write_text(text)
    return read_switches_file(str(file))


def test_every_key_has_its_effect(folder: Path) -> None:
    found = read(folder, FULL)
    assert found.limits == ProbeLimits(0.5, 4, 60.0, 1.0, 5000, (3, 5))
    leaf1, leaf2, leaf3, leaf4, spine1 = found.targets.values()
    assert (leaf1.scheme, leaf1.host, leaf1.ports["redis"]) == ("redis", "127.0.0.1", 6379)
    assert leaf1.links == (Link("Ethernet0", "gpu-001", "eth0"),)
    assert (leaf2.scheme, leaf2.host, leaf2.ports["grpc"]) == ("grpc", "leaf2.example.com", 50052)
    assert leaf2.tls == TlsFiles(ca_file=folder / "ca.pem", server_name="leaf2")
    assert leaf2.basic_auth == Credentials("ro", folder / "pw")
    assert (leaf2.priorities, leaf2.timeout, leaf1.timeout) == ("all", 5.0, 60.0)
    assert (leaf2.connect_timeout, leaf1.connect_timeout) == (0.5, 1.0)
    assert (leaf2.stream, leaf2.samples) == (True, FastSamples(2.0, ("Ethernet0", "Ethernet4")))
    assert (leaf4.stream, leaf4.samples, leaf1.stream) == (True, FastSamples(), False)
    assert (leaf3.scheme, leaf3.host) == ("unix", "/var/run/redis/redis.sock")
    assert leaf3.database_config == folder / "ca.pem"
    assert (leaf4.scheme, leaf4.host, leaf4.ports) == (
        "grpc",
        "2001:db8::1",
        {"grpc": 6030, "grpc+insecure": 6030, "https": 8443},
    )
    assert (spine1.scheme, spine1.ports["https"], spine1.name) == ("https", 443, "spine1")
    (discovery,) = found.discovery
    assert discovery.networks == (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("2001:db8::/32"))
    assert discovery.pattern.module == "nxos"
    assert (leaf1.lossless, leaf2.lossless, discovery.pattern.lossless) == ((3, 5), (), (3, 5))


def test_service_discovery_can_have_several_entries(folder: Path) -> None:
    """Each with its own networks, module and credentials."""
    text = "discovery: [{allow: [10.1.0.0/16], module: nxos}, {allow: [10.2.0.0/16], module: eos, lossless: [0, 7]}]"
    nxos, eos = read(folder, text).discovery
    assert (nxos.pattern.module, nxos.pattern.lossless) == ("nxos", None)
    assert (eos.pattern.module, eos.pattern.lossless) == ("eos", (0, 7))


TARGETS = (
    "{address: x}",
    "{module: junos, address: x}",
    "{module: nxos}",
    "{module: nxos, address: x, adress: y}",
    "{module: nxos, address: 'ftp://x'}",
    "{module: nxos, address: 'https://x/path'}",
    "{module: nxos, address: 'https://x:99999'}",
    "{module: nxos, address: 'https://'}",
    "{module: nxos, address: 'unix:///run/x'}",
    "{module: nxos, address: [x]}",
    "{module: nxos, address: x, basic_auth: {username: ro}}",
    "{module: nxos, address: x, basic_auth: {password: x}}",
    "{module: nxos, address: x, basic_auth: {username: ro, password_file: none}}",
    "{module: nxos, address: x, tls: {cert_file: pw}}",
    "{module: nxos, address: x, tls: {insecure_skip_verify: maybe}}",
    "{module: nxos, address: x, priorities: 3}",
    "{module: nxos, address: x, timeout: 10}",
    "{module: nxos, address: x, timeout: 1h}",
    "{module: nxos, address: x, ports: {https: 0}}",
    "{module: nxos, address: x, ports: {ssh: 22}}",
    "{module: nxos, address: x, links: {Ethernet1/1: gpu}}",
    "{module: nxos, address: x, database_config: pw}",
    "{module: nxos, address: x, stream: true}",
    "{module: eos, address: x, stream: 1}",
    "{module: nxos, address: x, stream: {every: 1s}}",
    "{module: openconfig, address: x, stream: {every: 1s}}",
    "{module: eos, address: x, stream: {every: 500ms}}",
    "{module: eos, address: x, stream: {ports: ['*']}}",
    "{module: eos, address: x, stream: {port: x}}",
    "nxos",
    "{module: nxos, address: x, links: {Ethernet1/1: gpu/eth0/1}}",
    "{module: nxos, address: x, links: {Ethernet1/1: /eth0}}",
    "{module: nxos, address: x, timeout: 0}",
    "{module: nxos, address: x, timeout: 301s}",
    "{module: nxos, address: x, timeout: 99ms}",
    "{module: nxos, address: x, ports: {https: 65536}}",
    "{module: eos, address: x, stream: {every: 10.1s}}",
    "{module: sonic, address: 'unix://'}",
    "{module: nxos, address: 'https://-x'}",
)
FILES = (
    "targets: {}",
    "switches: {}",
    "targets: {'a b': {module: nxos, address: x}}",
    "discovery: {module: nxos}",
    "discovery: {module: nxos, allow: [10.1.2.3/8]}",
    "limits: {targets_at_once: 0}\ntargets: {}",
    "limits: {cache: 1d}\ntargets: {}",
    "lossless: [3, 8]\ntargets: {a: {module: nxos, address: x}}",
    "discovery: [{allow: [10.1.0.0/16], module: nxos}, {module: eos}]",
    "discovery: {allow: [10.1.0.0/16]}",
    "limits: {targets_at_once: 1001}\ntargets: {}",
    "limits: {series: 0}\ntargets: {}",
    "limits: {series: 10000001}\ntargets: {}",
    "limits: {cache: 5m1s}\ntargets: {}",
)


def test_every_refusal_is_one_line_with_the_place_and_a_remedy(folder: Path, golden) -> None:
    refused = []
    for text in (*(f"targets:\n  leaf1: {target}" for target in TARGETS), *FILES):
        with pytest.raises(DocumentError) as refusal:
            read(folder, text)
        refused.append(f"{text!r} {refusal.value}\n".replace(f"{folder}/", ""))
    golden(Path(__file__).parent / "golden/switches-file.txt", "".join(refused))


def test_the_refusal_of_an_address_with_a_password_does_not_repeat_it(folder: Path) -> None:
    with pytest.raises(DocumentError, match="write basic_auth with username and password_file") as refusal:
        read(folder, "targets:\n  leaf1: {module: nxos, address: 'https://ro:hunter2@x'}\n")
    assert "hunter2" not in str(refusal.value)
    with pytest.raises(DocumentError, match="is not YAML"):
        read(folder, "targets: [")
