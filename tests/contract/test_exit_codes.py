"""The table of exit codes in docs/troubleshooting.md is what the commands do."""

import re
from pathlib import Path

import pytest

from roce_exporter.cli import main
from roce_exporter.cli.commands import COMMANDS

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


@pytest.mark.parametrize(("command", "code"), [(name, code) for name, runs in RUNS.items() for code in runs])
def test_the_code_is_that_of_the_table(command, code, tmp_path, capsys) -> None:
    for folder in ("class/infiniband", "class/net"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "good.promql").write_text("node_infiniband_link_downed_total")
    (tmp_path / "bad.promql").write_text('node_infiniband_link_downed_total{job="node"}')
    assert main([word.format(empty=tmp_path) for word in RUNS[command][code]]) == code
    out, err = capsys.readouterr()
    if code:
        # What was not seen, is unknown or is wrong is said in words too.
        assert out + err
