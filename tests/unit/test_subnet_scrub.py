"""Stand-ins of IP addresses: what is kept of subnets, what is left of the host, and captures with them."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observed import observe
from recorded import HOSTS, files, recording

from roce_exporter.audit import Profile, audit
from roce_exporter.recording.capture import capture
from roce_exporter.recording.recorded import load_recording
from roce_exporter.recording.scrub import Scrubber
from roce_exporter.recording.subnet_scrub import SubnetScrubber

if TYPE_CHECKING:
    from pathlib import Path

ADDRESSES = "ip/address.json"
WITH_ADDRESSES = [host for host in HOSTS if ADDRESSES in files(host)]
IP_ONLY = Profile("IP side", addresses=True, multi_rail=True)

four = (
    st.integers(0x0B000000, 0xDFFFFFFF)
    .map(ipaddress.IPv4Address)
    .filter(lambda one: not (one.is_link_local or one.is_loopback))
)
six = st.integers(0x2 << 124, (0x4 << 124) - 1).map(ipaddress.IPv6Address)


def shared(one: int, other: int, bits: int) -> int:
    """Number of equal leading bits."""
    return bits - (one ^ other).bit_length()


@given(four, four)
def test_ipv4_addresses_share_as_many_bits_as_before(
    one: ipaddress.IPv4Address, other: ipaddress.IPv4Address
) -> None:
    """Below the first octet; different first octets stay different."""
    scrub = SubnetScrubber(b"key")
    first, second = (ipaddress.IPv4Address(scrub.address(str(each))) for each in (one, other))
    assert first >= ipaddress.IPv4Address("240.0.0.0")
    before, after = shared(int(one), int(other), 32), shared(int(first), int(second), 32)
    assert before == after or (before < 8 and after < 8)


@given(six, st.integers(32, 128))
def test_ipv6_addresses_stay_in_their_prefix(address: ipaddress.IPv6Address, length: int) -> None:
    scrub = SubnetScrubber(b"key")
    prefix = str(ipaddress.ip_network(f"{address}/{length}", strict=False))
    stand_in = ipaddress.ip_address(scrub.address(str(address)))
    assert stand_in in ipaddress.ip_network(scrub.prefix(prefix))
    assert stand_in in ipaddress.ip_network("2001:db8::/32")


@given(four, st.integers(8, 32))
def test_ipv4_addresses_stay_in_their_prefix(address: ipaddress.IPv4Address, length: int) -> None:
    scrub = SubnetScrubber(b"key")
    prefix = str(ipaddress.ip_network(f"{address}/{length}", strict=False))
    assert ipaddress.ip_address(scrub.address(str(address))) in ipaddress.ip_network(scrub.prefix(prefix))


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0", "127.0.0.1", "::", "::1", "224.0.0.1", "ff02::1", "169.254.0.7", "203.0.113.1"],  # noqa: S104 - no socket is opened
)
def test_addresses_without_an_owner_are_kept(text: str) -> None:
    assert SubnetScrubber(b"key").address(text) == text


def test_link_local_addresses_stay_so_and_lose_their_mac_address() -> None:
    stand_in = SubnetScrubber(b"key").address("fe80::a288:c2ff:fe12:3456")
    assert ipaddress.ip_address(stand_in) in ipaddress.ip_network("fe80::/64")
    assert not stand_in.endswith("3456")


@pytest.mark.parametrize("prefix", ["0.0.0.0/0", "::/0", ""])
def test_everything_is_itself(prefix: str) -> None:
    assert SubnetScrubber(b"key").prefix(prefix) == prefix


def test_another_capture_has_other_stand_ins() -> None:
    found = set()
    for _ in range(4):
        scrub = Scrubber()
        scrub.keep_subnets()
        found.add(scrub.ip("10.1.2.3"))
    assert len(found) > 1


def test_gids_and_peers_have_the_same_stand_in() -> None:
    scrub = Scrubber()
    scrub.keep_subnets()
    for address in ("10.1.2.3", "2001:db8:7::9"):
        found = ipaddress.IPv6Address(scrub.gid(address))
        assert str(found.ipv4_mapped or found) == scrub.ip(address) == scrub.peer(address)


@pytest.mark.parametrize("host", WITH_ADDRESSES)
async def test_a_capture_has_the_same_findings_and_none_of_the_addresses(host: str, tmp_path: Path) -> None:
    source = load_recording(recording(host))
    await capture(source, str(tmp_path / "c"), 1, 1.0)
    _, (before,) = await observe(source)
    _, (after,) = await observe(load_recording(str(tmp_path / "c")))
    assert results(after) == results(before)
    text = "".join(place.read_text() for place in (tmp_path / "c/ip").iterdir())
    owned = {
        found
        for row in json.loads(files(host)[ADDRESSES])
        for one in row["addr_info"]
        for found in [one["local"]]
    }
    assert not [one for one in owned if re.search(rf"(?<![0-9a-f:.]){re.escape(one)}(?![0-9a-f:.])", text)]


def results(observation: object) -> list[tuple[str, str, bool | None]]:
    devices = observation.snapshot.devices  # type: ignore[attr-defined]  # an Observation
    return [(one.settings.netdev, one.check.id, one.result.ok) for one in audit(devices, IP_ONLY)]


def test_a_host_without_an_ip_side_keeps_the_simple_stand_ins(tmp_path: Path) -> None:
    asyncio.run(capture(load_recording(recording("mlx5-pair")), str(tmp_path / "c"), 1, 1.0))
    assert not (tmp_path / "c/ip").exists()
