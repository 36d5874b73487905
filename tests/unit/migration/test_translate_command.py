"""`translate`: files in and out, exit codes, the report, and every invalid input in one line."""

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest

from roce_exporter.cli import main
from roce_exporter.migrate import foreign_files

RULES = "# c\ngroups:\n- rules:\n  - alert: A\n    expr: rate(node_infiniband_link_downed_total[5m]) > 0\n"
OURS = RULES.replace("node_infiniband_link_downed_total", "roce_port_link_downed_total")
PANEL = '{"panels": [{"title": "T", "targets": [{"expr": "%s"}]}]}'
LEFT = PANEL % "node_infiniband_new"


def file(folder: Path, name: str, text: str | bytes) -> str:
    place = folder / name
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(place)


def run(*argv: str) -> int:
    return main(["tool", "translate", *argv])


def test_the_result_is_on_standard_output_and_the_report_on_standard_error(tmp_path, capsys) -> None:
    name = file(tmp_path, "a.yml", RULES)
    assert run(name) == 0
    out, err = capsys.readouterr()
    assert out == OURS
    assert err.startswith(f"{name}: 1 translated, 0 left\n")
    assert Path(name).read_text() == RULES


def test_what_is_left_is_listed_with_place_and_title(tmp_path, capsys) -> None:
    name = file(tmp_path, "a.json", LEFT)
    assert run(name) == 1
    out, err = capsys.readouterr()
    assert out == LEFT
    assert (
        "  left  panels[0].targets[0].expr (T): node_infiniband_new: not a name that this version knows\n"
        in err
    )


def test_the_report_can_be_json(tmp_path, capsys) -> None:
    run(
        file(tmp_path, "a.yml", RULES),
        file(tmp_path, "b.json", LEFT),
        f"--output={tmp_path}",
        "--format=json",
    )
    first, second = json.loads(capsys.readouterr().err)["files"]
    assert first["translated"] == 1
    assert first["metrics"][0]["to"] == "roce_port_link_downed_total"
    assert second["left"][0]["path"] == "panels[0].targets[0].expr"


def test_files_are_written_to_a_folder_or_a_file(tmp_path) -> None:
    (tmp_path / "out").mkdir()
    names = (
        file(tmp_path, "a.yml", RULES),
        file(tmp_path, "b.promql", "node_infiniband_link_downed_total # c\n"),
    )
    assert run(*names, f"--output={tmp_path}/out") == 0
    assert (tmp_path / "out/a.yml").read_text() == OURS
    assert (tmp_path / "out/b.promql").read_text() == "roce_port_link_downed_total # c\n"
    assert run(names[0], f"--output={tmp_path}/c.yml") == 0
    assert (tmp_path / "c.yml").read_text() == OURS
    assert Path(names[0]).read_text() == RULES


def test_in_place_keeps_mode_and_link_and_leaves_no_other_file(tmp_path) -> None:
    place = Path(file(tmp_path, "a.yml", RULES))
    place.chmod(0o640)
    link = tmp_path / "link.yml"
    link.symlink_to(place)
    assert run(str(link), "--in-place") == 0
    assert place.read_text() == OURS
    assert place.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["a.yml", "link.yml"]


def test_in_place_refuses_a_file_with_several_names(tmp_path, capsys) -> None:
    place = Path(file(tmp_path, "a.yml", RULES))
    os.link(place, tmp_path / "b.yml")
    assert run(str(place), "--in-place") == 2
    assert "a.yml: has 2 names (hard links)" in capsys.readouterr().err
    assert place.read_text() == RULES


def test_in_place_keeps_the_owner_or_refuses(tmp_path, capsys, monkeypatch) -> None:
    place, owners = Path(file(tmp_path, "a.yml", RULES)), []
    monkeypatch.setattr(os, "fchown", lambda _, *owner: owners.append(owner))
    assert run(str(place), "--in-place") == 0
    assert owners == [(place.stat().st_uid, place.stat().st_gid)]

    def refuse(*_: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    place.write_text(RULES)
    assert run(str(place), "--in-place") == 2
    assert "cannot be written: Operation not permitted" in capsys.readouterr().err
    assert (place.read_text(), os.listdir(tmp_path)) == (RULES, ["a.yml"])


def test_one_unreadable_file_means_that_none_is_written(tmp_path, capsys) -> None:
    good, bad = file(tmp_path, "a.yml", RULES), file(tmp_path, "b.json", "{")
    assert run(good, bad, "--in-place") == 2
    assert Path(good).read_text() == RULES
    assert capsys.readouterr().err.startswith(f"roce-exporter: {bad}: is not JSON: ")


def test_rules_decide_about_the_labels_of_a_dashboard(tmp_path) -> None:
    rules = (
        "groups:\n- rules:\n  - record: own:pause\n    expr: rate(node_ethtool_received_prio3_pause[5m])\n"
    )
    (tmp_path / "out").mkdir()
    board = file(tmp_path, "b.json", PANEL % "max by (device) (own:pause)")
    assert run(board, file(tmp_path, "a.yml", rules), f"--output={tmp_path}/out") == 0
    assert (tmp_path / "out/b.json").read_text() == PANEL % "max by (netdev) (own:pause)"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PANEL % "up", foreign_files.DASHBOARD),
        (RULES, foreign_files.RULES),
        ("up\n", foreign_files.PROMQL),
        ('{job="a"}', foreign_files.PROMQL),
        ("{", foreign_files.DASHBOARD),
    ],
)
def test_a_file_without_a_known_suffix_is_recognised(content, kind) -> None:
    assert foreign_files.kind_of(Path("x"), content) == kind


def test_standard_input_is_read(monkeypatch, capsys) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"# c\nup\n\nnode_infiniband_link_downed_total\n"))
    )
    assert run("-") == 0
    assert capsys.readouterr().out == "# c\nup\n\nroce_port_link_downed_total\n"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.json", b"", "is empty"),
        ("a.json", b" \n", "is empty"),
        ("a.json", b"\x89PNG\0", "is not text: it has NUL bytes"),
        ("a.json", '{"é": 1}'.encode("latin-1"), "is not UTF-8 text, at byte 2"),
        ("a.json", "{}".encode("utf-16"), "is not text"),
        ("a.json", b"[" * 3000, "nested more than 100 levels"),
        ("a.yml", b"a: [", "1: is not YAML"),
        ("a.yml", b"a: b", "has no rules"),
        ("a.promql", b"up\nup up\n", "not PromQL: line 2: promql-parser refuses it"),
        ("a.promql", b"x" * ((1 << 20) + 1), "is larger than 1 MiB"),
    ],
)
def test_bad_input_is_one_line(name, content, why, tmp_path, capsys) -> None:
    assert run(place := file(tmp_path, name, content)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"roce-exporter: {place}: ")
    assert why in err


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["a", "b"], "several files need --output=FOLDER or --in-place"),
        (["a", "--in-place", "--output=x"], "contradict each other"),
        (["-", "--in-place"], "cannot replace standard input"),
        (["-", "-", "--output=x"], "can be read once"),
        (["a", "--from=netdata"], "invalid choice"),
        ([], "the following arguments are required: FILE"),
    ],
)
def test_flags_that_contradict_are_refused(argv, why, capsys) -> None:
    assert main(["tool", "translate", *argv]) == 2
    assert why in capsys.readouterr().err


def test_paths_that_cannot_be_used_are_one_line(tmp_path, capsys) -> None:
    good = file(tmp_path, "a.yml", RULES)
    (tmp_path / "sub").mkdir()
    (tmp_path / "empty").mkdir()
    same = file(tmp_path / "sub", "a.yml", RULES)
    for argv, why in (
        ([f"{tmp_path}/none.yml"], "No such file"),
        ([f"{tmp_path}/empty"], "has no file that ends in .json"),
        ([good, same, f"--output={tmp_path}/none"], "is not a folder that exists"),
        ([good, f"--output={tmp_path}/none/"], "is not a folder that exists"),
        ([good, same, f"--output={tmp_path}"], "two files are called a.yml"),
        ([good, f"--output={tmp_path}/none/x.yml"], "cannot be written: No such file"),
    ):
        assert run(*argv) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert why in err


def test_an_output_in_a_folder_that_cannot_be_entered_is_one_line(tmp_path, monkeypatch, capsys) -> None:
    stat = os.stat

    def refuse(place: object, **more: object) -> object:
        if "locked" in str(place):
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(place, **more)

    good = file(tmp_path, "a.yml", RULES)
    monkeypatch.setattr(os, "stat", refuse)
    assert run(good, f"--output={tmp_path}/locked/x") == 2
    assert "locked/x: cannot be written: " in capsys.readouterr().err
    assert main(["capture", "--host.simulate=quiet", f"--output={tmp_path}/locked/x.txt"]) == 2
    assert "locked is no folder to write to" in capsys.readouterr().err


def test_without_the_extra_one_line_names_it(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "promql_parser", None)
    for name in [
        one for one in sys.modules if one.startswith(("roce_exporter.migrate", "roce_exporter.cli.translate"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    assert run(file(tmp_path, "a.yml", RULES)) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "install the extra translate" in err


def test_a_folder_is_its_files(tmp_path, capsys) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    file(tmp_path / "in", "a.yml", RULES)
    file(tmp_path / "in", "b.json", LEFT)
    file(tmp_path / "in", "README.txt", "no rules")
    assert run(str(tmp_path / "in"), f"--output={tmp_path / 'out'}") == 1
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a.yml", "b.json"]
    assert run(str(tmp_path / "out" / ".."), "--in-place") == 2
    assert "has no file that ends in" in capsys.readouterr().err


def test_what_another_file_records_and_what_a_switch_counts_is_left_with_its_reason(tmp_path, capsys) -> None:
    recorded = "infiniband:switch_port_symbol_errors:rate5m"
    rules = file(tmp_path, "a.yml", RULES.replace("rate(node_infiniband_link_downed_total[5m])", recorded))
    assert run(rules) == 1
    assert f"{recorded}: recorded by a rule that is in none of these files" in capsys.readouterr().err
    record = f"groups:\n- rules:\n  - record: {recorded}\n    expr: rate(infiniband_switch_symbol_errors_total[5m])\n"
    other = file(tmp_path, "b.yml", record)
    (tmp_path / "out").mkdir()
    assert run(rules, other, f"--output={tmp_path / 'out'}") == 1
    said = capsys.readouterr().err
    assert "recorded by a rule" not in said
    assert (
        "infiniband_switch_symbol_errors_total: not a metric of an exporter that this version knows\n" in said
    )
    assert (
        run(
            file(tmp_path, "c.json", PANEL % "nexus_pfc_rx_pause"),
            file(tmp_path, "d.json", PANEL % "my_rdma_np_cnp_sent"),
            f"--output={tmp_path / 'out'}",
        )
        == 1
    )
    said = capsys.readouterr().err
    assert "nexus_pfc_rx_pause: not a metric of an exporter that this version knows\n" in said
    assert "`np_cnp_sent` is roce_cnp_sent_total here" in said


def test_our_own_recording_rules_are_ours(tmp_path, capsys) -> None:
    assert run(file(tmp_path, "a.json", PANEL % "port:roce_port_used:info")) == 0


def test_on_a_terminal_the_report_begins_a_line(tmp_path, capsys, monkeypatch) -> None:
    file = tmp_path / "a.promql"
    file.write_text("node_infiniband_link_downed_total")
    for terminal, end in ((False, "total"), (True, "total\n")):
        monkeypatch.setattr(sys.stdout, "isatty", lambda answer=terminal: answer)
        assert main(["tool", "translate", str(file)]) == 0
        assert capsys.readouterr().out.endswith(end)
