"""The table of exit codes in docs/troubleshooting.md is what the commands do, and what --format=json prints agrees with the code."""

import json
import re
import struct
from pathlib import Path

import pytest

from roce_exporter.cli import main
from roce_exporter.cli.commands import COMMANDS
from roce_exporter.cli.flags import FLAGS

DOCUMENT = (Path(__file__).parents[2] / "docs/troubleshooting.md").read_text()
CODES = ("0", "1", "2", "3")
NO_DEVICE = "--path.sysfs={empty}"
QUIET = "--host.simulate=quiet"
RUNS = {
    "once": {0: ("once", NO_DEVICE), 2: ("once", "--host.recording={empty}/none")},
    "explain": {
        0: ("explain", "np_cnp_sent", NO_DEVICE),
        1: ("explain", "np_cnp_snt", NO_DEVICE),
        3: ("explain", NO_DEVICE),
    },
    "capture": {0: ("capture", QUIET, "--output={empty}/a.txt"), 2: ("capture", NO_DEVICE, "--output={empty}/b.txt")},
    "check": {
        0: ("check", "settings", QUIET),
        1: ("check", "settings", "--host.simulate=misconfigured"),
        2: ("check", "weather", QUIET),
        3: ("check", "settings", NO_DEVICE),
    },
    "tool otel-config": {0: ("tool", "otel-config"), 2: ("tool", "otel-config", "extra")},
    "wire": {2: ("wire", "{empty}/none.pcap")},
    "tool translate": {
        0: ("tool", "translate", "{empty}/good.promql"),
        1: ("tool", "translate", "{empty}/bad.promql"),
        2: ("tool", "translate", "{empty}/none.promql"),
    },
}  # fmt: skip


def documented() -> dict[str, set[int]]:
    """Per command the exit codes that the table gives a meaning."""
    table = DOCUMENT.partition("## Exit codes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z ]+(?:-[a-z]+)?)`(.*)\|$", table, re.MULTILINE)
    return {
        command: {int(code) for code, cell in zip(CODES, cells.split("|")[1:], strict=True) if cell.strip() != "-"}
        for command, cells in rows
    }  # fmt: skip


def test_every_command_is_in_the_table_and_every_run_in_its_row() -> None:
    table = documented()
    assert set(table) == set(COMMANDS)
    for command, runs in RUNS.items():
        assert set(runs) <= table[command], command


def write_inputs(folder: Path) -> None:
    for name in ("class/infiniband", "class/net"):
        (folder / name).mkdir(parents=True)
    (folder / "good.promql").write_text("node_infiniband_link_downed_total")
    (folder / "bad.promql").write_text('node_infiniband_link_downed_total{job="node"}')
    (folder / "full.promql").write_text("node_infiniband_link_error_recovery_total")
    ends = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    roce = struct.pack(
        ">12xHBBHHHBBH8s4HB19x", 0x800, 0x45, 0, 48, 0, 0, 64, 17, 0, ends, 4791, 4791, 28, 0, 4
    )
    record = struct.pack("<IIII", 1, 0, len(roce), len(roce)) + roce
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for name, packets in {"good": record, "cut": record + record[:-9], "empty": b""}.items():
        (folder / f"{name}.pcap").write_bytes(head + packets)
    (folder / "garbage").write_bytes(bytes(range(256)))
    (folder / "switches.yml").write_text("targets: {a: {module: sonic, address: 'unix:///no/redis.sock'}}")
    ports = [
        {"targets": [f"10.0.0.{one}"], "labels": {"host": f"h{one}", "rail": str(one % 2)}}
        for one in (1, 2, 3)
    ]
    (folder / "ports.json").write_text(json.dumps(ports))


@pytest.mark.parametrize(("command", "code"), [(name, code) for name, runs in RUNS.items() for code in runs])
def test_the_code_is_that_of_the_table(command, code, tmp_path, capsys) -> None:
    write_inputs(tmp_path)
    assert main([word.format(empty=tmp_path) for word in RUNS[command][code]]) == code
    out, err = capsys.readouterr()
    if code:
        # What was not seen, is unknown or is wrong is said in words too.
        assert out + err


TOPICS = ("setup", "settings", "health")
SHOWN = (
    *(("check", topic, f"--host.simulate={name}") for name in ("quiet", "misconfigured", "broken") for topic in TOPICS),
    ("check", "--host.simulate=pfc-storm"),
    *(("check", topic, NO_DEVICE) for topic in TOPICS),
    *(("check", topic, QUIET, "--device.include=none") for topic in TOPICS),
    ("check", "switches", "--switches.config={empty}/switches.yml"),
    *(("tool", "translate", f"{{empty}}/{name}.promql") for name in ("good", "bad", "full")),
    *(("wire", f"{{empty}}/{name}.pcap") for name in ("good", "cut", "empty")),
    *(("probe", "plan", host, "--probe.targets={empty}/ports.json", QUIET) for host in ("h1", "h2", "all")),
    *(("explain", *words, host) for words in ((), ("np_cnp_sent",), ("np_cnp_snt",)) for host in (NO_DEVICE, QUIET)),
    *(("explain", name, QUIET) for name in ("RocePortDown", "incast", "node_infiniband_link_downed_total")),
    ("capture", QUIET, "--output={empty}/a.txt"),
)  # fmt: skip
REFUSED = (
    ("check", "--host.recording={empty}/garbage"),
    ("check", QUIET, "--thresholds.file={empty}"),
    ("check", QUIET, "--config.file={empty}/garbage"),
    ("check", "switches", "--switches.config={empty}/garbage"),
    ("tool", "translate", "{empty}"),
    ("wire", "{empty}/garbage"),
    ("wire", "--wire.interface=nosuch0"),
    ("explain", "--host.recording={empty}/garbage"),
    ("capture", NO_DEVICE, "--output={empty}/b.txt"),
    ("probe", "plan", "h9", "--probe.targets={empty}/ports.json", QUIET),
    ("probe", "plan", "h1", "--probe.targets={empty}/garbage", QUIET),
)
ROWS = {"findings", "pairs", "files", "plan", "explained"}
STATUS = {"ok": 0, "degraded": 1, "failed": 1, "unknown": 3}


def test_every_command_with_a_document_is_shown_and_refused() -> None:
    formats = {command for flag in FLAGS if flag.name == "--format" for command in flag.commands}
    for runs in (SHOWN, REFUSED):
        assert {one for one in formats if any(" ".join(words).startswith(one) for words in runs)} == formats


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_the_document_has_one_shape_and_says_what_the_code_says(words, tmp_path, capsys) -> None:
    write_inputs(tmp_path)
    code = main([*(word.format(empty=tmp_path) for word in words), "--format=json"])
    out, err = capsys.readouterr()
    document = json.loads(err if words[0] == "tool" else out)
    assert type(document["version"]) is int
    (rows,) = ROWS & document.keys()
    assert all(isinstance(row, dict) for row in document[rows])
    unseen = [one["what"] for one in document["not_checked"] if one["needed"]]
    assert all(unseen)
    assert code == STATUS[document["status"]] if "status" in document else bool(code) == bool(unseen)
    assert code or not unseen


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_bad_input_is_one_line_and_no_document(words, tmp_path, capsys) -> None:
    write_inputs(tmp_path)
    assert main([*(word.format(empty=tmp_path) for word in words), "--format=json"]) == 2
    out, err = capsys.readouterr()
    (line,) = err.splitlines()
    assert (out, line.startswith("roce-exporter: ")) == ("", True)
