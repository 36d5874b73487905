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
limits: {cache: 500ms, targets_at_once: 4, timeout: 1m, connect_timeout: 1s}
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
    assert found.limits == ProbeLimits(0.5, 4, 60.0, 1.0, lossless=(3, 5))
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
    with pytest.raises(DocumentError, match="has no networks"):
        read(folder, "discovery: [{allow: [10.1.0.0/16], module: nxos}, {module: eos}]")
    with pytest.raises(DocumentError, match="'8' is not a whole number from 0 to 7"):
        read(folder, "lossless: [3, 8]\ntargets: {a: {module: nxos, address: x}}")


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("{address: x}", "has no module; add one of sonic"),
        ("{module: junos, address: x}", "'junos' is not supported; choose from sonic"),
        ("{module: nxos}", "has no address"),
        ("{module: nxos, address: x, adress: y}", "is not a valid key; known here: address"),
        ("{module: nxos, address: 'ftp://x'}", "has no scheme ftp; use one of https://, http://"),
        ("{module: nxos, address: 'https://x/path'}", "is not an address; write SCHEME://HOST:PORT"),
        ("{module: nxos, address: 'https://x:99999'}", "is not an address"),
        ("{module: nxos, address: 'https://'}", "is not an address"),
        ("{module: nxos, address: 'unix:///run/x'}", "has no scheme unix"),
        ("{module: nxos, address: [x]}", "has no single value"),
        ("{module: nxos, address: x, basic_auth: {username: ro}}", "has no password_file; add it"),
        ("{module: nxos, address: x, basic_auth: {password: x}}", "is not a valid key; known here: username"),
        (
            "{module: nxos, address: x, basic_auth: {username: ro, password_file: none}}",
            "none cannot be read: No such file or directory; correct the path",
        ),
        ("{module: nxos, address: x, tls: {cert_file: pw}}", "needs cert_file and key_file together"),
        ("{module: nxos, address: x, tls: {insecure_skip_verify: maybe}}", "'maybe' is not supported"),
        ("{module: nxos, address: x, priorities: 3}", "'3' is not supported; choose from pfc, all"),
        ("{module: nxos, address: x, timeout: 10}", "'10' is not a duration from 0.1 s to 300 s"),
        ("{module: nxos, address: x, timeout: 1h}", "is not a duration"),
        ("{module: nxos, address: x, ports: {https: 0}}", "'0' is not a whole number from 1 to 65535"),
        ("{module: nxos, address: x, ports: {ssh: 22}}", "is not a valid key; known here: https, http"),
        ("{module: nxos, address: x, links: {Ethernet1/1: gpu}}", "'gpu' is not HOST/NETDEV"),
        ("{module: nxos, address: x, database_config: pw}", "is for module sonic only"),
        ("{module: nxos, address: x, stream: true}", "module nxos has no gNMI; remove it"),
        ("{module: eos, address: x, stream: 1}", "'1' is not supported; choose from true, false"),
        ("{module: nxos, address: x, stream: {every: 1s}}", "module nxos has no gNMI; remove it"),
        ("{module: openconfig, address: x, stream: {every: 1s}}", "has no PFC to sample; write stream: true"),
        ("{module: eos, address: x, stream: {every: 500ms}}", "'500ms' is not a duration from 1 s to 10 s"),
        ("{module: eos, address: x, stream: {ports: ['*']}}", "'*' is not the name of a port"),
        ("{module: eos, address: x, stream: {port: x}}", "is not a valid key; known here: every, ports"),
        ("nxos", "is not a mapping"),
    ],
)
def test_a_bad_target_is_one_line_with_a_remedy(folder: Path, target: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        read(folder, f"targets:\n  leaf1: {target}\n")
    line = str(refusal.value)
    assert problem in line
    assert line.startswith(f"{folder / 'switches.yml'}:2: targets.leaf1")
    assert "\n" not in line


def test_the_refusal_of_an_address_with_a_password_does_not_repeat_it(folder: Path) -> None:
    with pytest.raises(DocumentError, match="write basic_auth with username and password_file") as refusal:
        read(folder, "targets:\n  leaf1: {module: nxos, address: 'https://ro:hunter2@x'}\n")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("targets: {}", "has no targets; add them under `targets`"),
        ("switches: {}", "is not a valid key; known here: targets, discovery, limits"),
        ("targets: {'a b': {module: nxos, address: x}}", "is not a valid name"),
        ("discovery: {module: nxos}", "has no networks; list them under `allow`"),
        ("discovery: {module: nxos, allow: [10.1.2.3/8]}", "10.1.2.3/8 has host bits set; write a network"),
        ("limits: {targets_at_once: 0}\ntargets: {}", "'0' is not a whole number from 1 to 1000"),
        ("limits: {cache: 1d}\ntargets: {}", "'1d' is not a duration from 0 s to 300 s"),
        ("targets: [", "is not YAML"),
    ],
)
def test_a_bad_file_is_one_line(folder: Path, text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        read(folder, text)
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)
