"""A second oracle: packets that scapy encodes, with every opcode, decoded by tshark and by us, field by field.

Where tshark 4.0 disagrees with the InfiniBand specification, the specification decides; DISAGREES has the reasons. tshark reads no
FECN and BECN and verifies no CRC: scapy is the oracle of those, in test_wire_headers.py.
"""

import random
import struct
import subprocess
from typing import Any, NamedTuple

import pytest
from scapy.contrib import roce as oracle
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from tools import need
from wire_frames import frames_of, pcap

from roce_exporter.wire.decode import opcodes
from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.packet_lines import packets

pytestmark = pytest.mark.ci

NETWORKS = ("IPv4", "IPv6", "v1")

DISAGREES = (
    {opcodes.RC << 5 | low: "older than annex A19" for low in (opcodes.FLUSH, opcodes.ATOMIC_WRITE)}
    | {
        opcodes.RD << 5 | low: "reads RDETH and what follows 8 bytes late"
        for low in opcodes.DEFINED[opcodes.RD]
    }
    | {opcodes.XRC << 5 | low: "does not know XRC (annex A14)" for low in opcodes.DEFINED[opcodes.XRC]}
)
"""Opcodes whose extended headers tshark does not read as the specification says, and why."""

BTH_FIELDS = ("opcode", "se", "m", "padcnt", "tver", "p_key", "destqp", "a", "psn")
EXTENDED_FIELDS = (
    "deth.q_key", "deth.srcqp", "reth.va", "reth.r_key", "reth.dmalen", "atomiceth.swapdt", "atomiceth.cmpdt",
    "aeth.syndrome", "aeth.msn", "atomicacketh.origremdt", "immdt", "ieth",
)  # fmt: skip
FIELDS = (
    *(f"infiniband.bth.{name}" for name in BTH_FIELDS),
    *(f"infiniband.{name}" for name in EXTENDED_FIELDS),
    "infiniband.invariant.crc", "infiniband.grh.tclass", "infiniband.grh.sgid", "infiniband.grh.dgid",
    "ip.dsfield", "ip.src", "ip.dst", "ipv6.tclass", "ipv6.src", "ipv6.dst", "vlan.priority", "vlan.id", "udp.srcport", "frame.len",
)  # fmt: skip
TEXT = ("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "infiniband.grh.sgid", "infiniband.grh.dgid")
HEXADECIMAL = ("infiniband.immdt", "infiniband.ieth")


class Case(NamedTuple):
    """One frame as tshark and as we decode it."""

    frame: bytes
    opcode: int
    network: str
    fields: dict[str, list[int] | list[str]]
    """Values by tshark's names, each as often as it is in the frame."""
    packet: dict[str, Any]

    def one(self, name: str) -> int | str | None:
        """The first value of a field; None where the frame has none. tshark prints the bytes of some headers twice."""
        values = self.fields[name if "." in name and name in self.fields else f"infiniband.{name}"]
        return values[0] if values else None


def make_frame(chance: random.Random, opcode: int, network: str) -> bytes:
    """A frame that scapy encodes."""
    below = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    for _ in range(chance.randrange(3)):
        below /= Dot1Q(vlan=chance.randrange(1, 4095), prio=chance.randrange(8))
    base = oracle.BTH(
        opcode=opcode,
        solicited=chance.randrange(2),
        migreq=chance.randrange(2),
        padcount=chance.randrange(4),
        pkey=chance.randrange(1 << 16),
        fecn=chance.randrange(2),
        becn=chance.randrange(2),
        dqpn=chance.randrange(2, 1 << 24),  # 0 and 1 carry management datagrams
        ackreq=chance.randrange(2),
        psn=chance.randrange(1 << 24),
    )
    rest = chance.randbytes(60 + 4 * chance.randrange(20))
    traffic_class = chance.randrange(256)
    if network == "v1":
        body = bytes(base)[:12] + rest + chance.randbytes(4)  # scapy computes no CRC of version 1
        grh = oracle.GRH(
            tclass=traffic_class, flowlabel=chance.randrange(1 << 20), paylen=len(body), nexthdr=0x1B,
            hoplmt=chance.randrange(256), sgid=chance.getrandbits(128), dgid=chance.getrandbits(128),
        )  # fmt: skip
        return bytes(below / grh) + body
    if network == "IPv4":
        below /= IP(
            src="10.1.2.3", dst="10.3.2.1", tos=traffic_class, flags="DF", ttl=chance.randrange(1, 256)
        )
    else:
        below /= IPv6(src="fd00::1:2", dst="fd00::3", tc=traffic_class, fl=chance.randrange(1 << 20))
    return bytes(below / UDP(sport=chance.randrange(0xC000, 0x10000), dport=4791) / base / rest)


def value(name: str, text: str) -> int | str:
    """A value that tshark printed."""
    if name in TEXT:
        return text
    return int(text, 16) if name in HEXADECIMAL else int(text, 0)


def decoded_by_tshark(content: bytes) -> list[dict[str, list[int] | list[str]]]:
    """The fields of every frame of a capture, by one process."""
    program = need("tshark")
    flags = [flag for name in FIELDS for flag in ("-e", name)]
    command = [program, "-n", "-T", "fields", "-E", "separator=/t", "-E", "aggregator=,", *flags, "-r", "-"]
    ran = subprocess.run(command, input=content, capture_output=True, check=True)
    return [
        {
            name: [value(name, one) for one in cell.split(",") if one]
            for name, cell in zip(FIELDS, line.split("\t"), strict=True)
        }
        for line in ran.stdout.decode().splitlines()
    ]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Frames of all opcodes and forms of network headers."""
    chance = random.Random(4791)  # noqa: S311 - no secret
    made = [
        (make_frame(chance, opcode, network), opcode, network)
        for opcode in range(256)
        for network in NETWORKS
    ]
    found = decoded_by_tshark(pcap(frame for frame, _, _ in made))
    ours = packets(frames_of(frame for frame, _, _ in made))
    return [Case(*one, fields, packet) for one, fields, packet in zip(made, found, ours, strict=True)]


def test_base_headers(cases: list[Case]) -> None:
    for case in cases:
        ours = [number for name, number in case.packet["bth"].items() if name not in ("fecn", "becn")]
        assert [case.one(f"bth.{name}") for name in BTH_FIELDS] == ours, case


def test_network_headers_and_tags(cases: list[Case]) -> None:
    names = {
        "IPv4": ("ip.dsfield", "ip.src", "ip.dst"),
        "IPv6": ("ipv6.tclass", "ipv6.src", "ipv6.dst"),
        "v1": ("grh.tclass", "grh.sgid", "grh.dgid"),
    }
    for case in cases:
        ours = case.packet
        shown = [ours["dscp"] << 2 | ours["ecn"], ours["source"], ours["destination"]]
        assert [case.one(name) for name in names[case.network]] == shown, case
        assert case.fields["vlan.priority"] == ours["vlan_priority"]
        assert case.fields["vlan.id"] == ours["vlan"]
        assert case.one("udp.srcport") == ours["source_port"]


def test_extended_headers(cases: list[Case]) -> None:
    compared = set()
    for case in cases:
        if case.opcode in DISAGREES:
            continue
        ours = dict.fromkeys(EXTENDED_FIELDS) | extended(case.packet)
        theirs = {name: case.one(name) for name in EXTENDED_FIELDS}
        if theirs["aeth.syndrome"] is not None:
            theirs["aeth.syndrome"] &= 0x7F  # its highest bit is reserved
        assert theirs == ours, case
        compared |= {name for name, one in ours.items() if one is not None}
    assert compared == set(EXTENDED_FIELDS)


OUR_NAMES = {
    "deth.q_key": ("deth", "key"), "deth.srcqp": ("deth", "source_qp"),
    "reth.va": ("reth", "address"), "reth.r_key": ("reth", "key"), "reth.dmalen": ("reth", "length"),
    "atomiceth.swapdt": ("atomic", "swap"), "atomiceth.cmpdt": ("atomic", "compare"), "aeth.msn": ("aeth", "msn"),
}  # fmt: skip


def extended(packet: dict[str, Any]) -> dict[str, int]:
    """Our extended headers by tshark's names, which has the address and key of an atomic among those of the RETH."""
    found = {theirs: packet[header][name] for theirs, (header, name) in OUR_NAMES.items() if header in packet}
    if atomic := packet.get("atomic"):
        found |= {"reth.va": atomic["address"], "reth.r_key": atomic["key"]}
    if aeth := packet.get("aeth"):
        found["aeth.syndrome"] = aeth["kind"] << 5 | aeth["value"]
    for name, header in (("atomicacketh.origremdt", "atomic_ack"), ("immdt", "immediate"), ("ieth", "invalidate")):  # fmt: skip
        if header in packet:
            found[name] = packet[header]
    return found


def test_the_place_of_the_crc(cases: list[Case]) -> None:
    """It is shown, its bytes in the order of the wire, behind packets with a payload."""
    shown = [case for case in cases if case.one("invariant.crc") is not None]
    assert len(shown) > 100
    for case in shown:
        assert struct.pack("<I", case.packet["icrc"]) == struct.pack(">I", case.one("invariant.crc"))


def test_the_columns_of_a_batch(cases: list[Case]) -> None:
    """The batch decoder, in one batch, against tshark."""
    columns = decode_frames(frames_of(case.frame for case in cases)).columns
    first = {"IPv4": "ip.dsfield", "IPv6": "ipv6.tclass", "v1": "grh.tclass"}
    assert columns.opcodes.tolist() == [case.one("bth.opcode") for case in cases]
    assert columns.queues.tolist() == [case.one("bth.destqp") for case in cases]
    assert columns.sequences.tolist() == [case.one("bth.psn") for case in cases]
    assert columns.ack_requests.tolist() == [bool(case.one("bth.a")) for case in cases]
    assert columns.versions.tolist() == [1 if case.network == "v1" else 2 for case in cases]
    assert columns.lengths.tolist() == [case.one("frame.len") for case in cases]
    classes = [case.one(first[case.network]) for case in cases]
    assert (columns.dscp << 2 | columns.ecn).tolist() == classes
    outer = [case.fields["vlan.priority"] or [-1] for case in cases]
    assert columns.priorities.tolist() == [tags[0] for tags in outer]
    for case, syndrome, length in zip(cases, columns.syndromes, columns.read_lengths, strict=True):
        if case.opcode in DISAGREES:
            continue
        shown = case.one("aeth.syndrome")
        assert syndrome == (-1 if shown is None else shown & 0x7F)
        wanted = case.one("reth.dmalen") if case.opcode & 0x1F == opcodes.READ_REQUEST else None
        assert length == (-1 if wanted is None else wanted)
