"""Names from the operating system: any bytes become text, and the text converts back to the same bytes."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from host_tree import HostTree
from hypothesis import given
from hypothesis import strategies as st
from observed import exposition, samples

from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.names import decode_name, encode_name, encode_netdev

if TYPE_CHECKING:
    from pathlib import Path

ODD = b"eth\xff0"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"eth0", "eth0"),
        (b"eth0\0garbage", "eth0"),
        ("straße".encode(), "straße"),
        (ODD, "eth\\xff0"),
        (b"eth\\xff0", "eth\\x5cxff0"),
        (b"a\\xzz", "a\\xzz"),
        (b"\\", "\\"),
        (b"", ""),
    ],
)
def test_a_name_is_text_that_converts_back_to_its_bytes(raw: bytes, text: str) -> None:
    assert decode_name(raw) == text
    assert encode_name(text) == raw.partition(b"\0")[0]


@given(st.lists(st.binary(max_size=6), max_size=4, unique=True))
def test_every_name_comes_back_and_two_stay_two(raw: list[bytes]) -> None:
    names = {one.partition(b"\0")[0] for one in raw}
    texts = [decode_name(name) for name in names]
    assert [encode_name(text) for text in texts] == [*names]
    assert len({text.encode() for text in texts}) == len(names)


@pytest.mark.parametrize("name", ["", "a" * 16, "\\xff" * 16, "a\0b"])
def test_an_impossible_device_name_is_not_on_this_host(name: str) -> None:
    with pytest.raises(OSError, match="No such device") as caught:
        encode_netdev(name)
    assert caught.value.errno == errno.ENODEV
    assert encode_netdev("\\xff" * 15) == b"\xff" * 15, "the length that counts is that of the bytes"


async def test_a_network_device_of_an_odd_name_is_read_like_any_other(tmp_path: Path) -> None:
    """Sysfs has it by its bytes, and labels by its text."""
    tree = HostTree(tmp_path, devices=2)
    (tree.infiniband / "mlx5_0/device/net" / os.fsdecode(ODD)).mkdir(parents=True)
    net = tmp_path / "class/net" / os.fsdecode(ODD)
    net.mkdir(parents=True)
    (net / "carrier_changes").write_text("2\n")
    kernel = LiveKernel(str(tmp_path), netlink=False)
    assert kernel.entries("class/net") == ("eth\\xff0",)
    assert kernel.text("class/net/eth\\xff0/carrier_changes") == "2"
    found = samples(await exposition(kernel))
    odd = {series: value for series, value in found.items() if r'netdev="eth\\xff0"' in series}
    assert "2" in odd.values()
    assert found['roce_port_up{device="mlx5_1",port="1"}'] == "1"
