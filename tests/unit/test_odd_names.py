"""Names from the operating system: any bytes become text, and the text converts back to the same bytes."""

import errno
import io
import json
import logging
import os
import re
from collections.abc import Callable

import pytest
from host_tree import HostTree
from hypothesis import given
from hypothesis import strategies as st
from observed import exposition, samples
from prometheus_client.parser import text_string_to_metric_families

from roce_exporter.catalog.row import Row
from roce_exporter.cli import main
from roce_exporter.cli.output import LineFormatter, print_text
from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.names import decode_name, encode_name, encode_netdev
from roce_exporter.model.owner import ProcessFacts
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.owners.identify import label_text as owner_text
from roce_exporter.owners.identify import owner_of
from roce_exporter.switches.readings import label_text as switch_text
from roce_exporter.wire.decode.link_frames import _text as lldp_text

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
def test_a_name_is_text_that_converts_back_to_its_bytes(raw, text) -> None:
    assert decode_name(raw) == text
    assert encode_name(text) == raw.partition(b"\0")[0]


@given(st.lists(st.binary(max_size=6), max_size=4, unique=True))
def test_every_name_comes_back_and_two_stay_two(raw) -> None:
    names = {one.partition(b"\0")[0] for one in raw}
    texts = [decode_name(name) for name in names]
    assert [encode_name(text) for text in texts] == [*names]
    assert len({text.encode() for text in texts}) == len(names)


@pytest.mark.parametrize("name", ["", "a" * 16, "\\xff" * 16, "a\0b"])
def test_an_impossible_device_name_is_not_on_this_host(name) -> None:
    with pytest.raises(OSError, match="No such device") as caught:
        encode_netdev(name)
    assert caught.value.errno == errno.ENODEV
    assert encode_netdev("\\xff" * 15) == b"\xff" * 15, "the length that counts is that of the bytes"


async def test_a_network_device_of_an_odd_name_is_read_like_any_other(tmp_path) -> None:
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


NAMES: dict[str, Callable[[bytes], str]] = {
    "device, network device and namespace": decode_name,
    "cgroup, user and command": lambda raw: owner_text(raw.decode("utf-8", "surrogateescape")),
    "object of a switch": lambda raw: switch_text(raw.decode("utf-8", "surrogateescape")),
    "neighbour by LLDP": lldp_text,
}
HOSTILE = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [
            b"\x1b]0;owned\x07",
            b"\xc2\x9b2J",
            b"a\nroce_port_up 1",
            b'"} 1\n# EOF',
            "\u202egnp.exe".encode(),
            b"\xed\xa0\x80",
            b"%s{}$()",
        ]
    ),
)
RED = "\x1b[31m\n"
ROW = Row("roce_x_info", "gauge", "", "X.", labels=("device",))


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", NAMES)
@given(raw=HOSTILE)
def test_no_outside_name_costs_a_scrape_a_line_or_a_terminal(kind, raw) -> None:
    """It is one series, one line of a log in both forms, and nothing that a terminal obeys but colours; also before it is made a label."""
    for name in (NAMES[kind](raw), raw.decode("utf-8", "surrogateescape")):
        text = Renderer((ROW,)).render((Samples((Series(ROW, (name,)),), (1,)),), Format.TEXT).decode()
        (family,) = text_string_to_metric_families(text)
        assert len(family.samples) == 1
        record = logging.LogRecord("roce_exporter.x", logging.WARNING, "f.py", 1, "of %s", (name,), None)
        lines = [LineFormatter(form).format(record) for form in ("logfmt", "json")]
        assert all(line.isprintable() for line in lines)
        assert json.loads(lines[1])["msg"] == f"of {name}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", shown := Terminal())
            print_text(f"{name}{RED}")
        colourless = re.sub(r"\x1b\[[0-9]{1,2}m", "", shown.getvalue()).removesuffix("\n")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", colourless)


def test_messages_of_commands_do_nothing_to_a_terminal(tmp_path, capsys) -> None:
    """Errors name what was given, and `translate` what is in the dashboards of others."""
    odd = "x\x1b]0;owned\x07\u202e\u061c"
    dashboard = tmp_path / "d.json"
    panel = {"title": odd, "targets": [{"expr": "rate(node_infiniband_no_such_total[5m])"}]}
    dashboard.write_text(json.dumps({"title": odd, "schemaVersion": 39, "panels": [panel]}))
    for command in (["check", f"--host.recording={odd}"], ["tool", "translate", str(dashboard)]):
        assert main(command) != 0
        said = capsys.readouterr().err
        assert "owned" in said
        assert not set(odd) - set("x]0;owned") & set(said)


@given(
    raw=HOSTILE, below=st.sampled_from(["kubepods/pod1", "docker", "system.slice/slurmstepd.scope/job_4711"])
)
def test_no_name_below_a_user_makes_another_owner(raw, below) -> None:
    name = raw.decode("utf-8", "surrogateescape").replace("\n", "")
    cgroups = f"0::/user.slice/user-1000.slice/user@1000.service/{below}/{name}\n"
    assert owner_of(ProcessFacts(7, 1.0, name, name, cgroups)).kind not in ("pod", "container", "slurm")
