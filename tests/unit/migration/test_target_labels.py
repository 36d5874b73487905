"""Labels of the other exporter's target, metrics that no exporter has, and sets: each is mapped or reported, and the exit code says it."""

import json
from pathlib import Path

import pytest

from roce_exporter.cli import main
from roce_exporter.migrate.promql_names import guessed, names_of

BYTES, OURS = "node_infiniband_port_data_received_bytes_total", "roce_port_receive_bytes_total"
CLASH = "rdma_rp_cnp_ignored_total"


def run(folder: Path, text: str, *flags: str, name: str = "a.promql") -> int:
    (folder / name).write_text(text)
    return main(["tool", "translate", str(folder / name), *flags])


@pytest.mark.parametrize(
    ("expr", "why"),
    [
        (f'{BYTES}{{job="node"}}', 'job="node" selects the job of the other exporter'),
        (f'{BYTES}{{job=~"node|$x"}}', "selects the job"),
        (f'{BYTES}{{instance="$hostname:9100"}}', "has the port of the other exporter"),
        (f'{BYTES}{{instance=~".+:(9100|9200)"}}', "has the port of the other exporter"),
        (f'{BYTES}{{hostname=~"gpu.+"}}', "no label of the exporter but of its target"),
        (f'{BYTES}{{pod!=""}}', "the label `pod`"),
        (f"sum by (nodename) (rate({BYTES}[5m]))", "the label `nodename`"),
        (f"{BYTES} * on(instance) group_left(nodename) node_uname_info", "joined with node_uname_info by `instance`"),
        (f"{BYTES} / on(Hostname) DCGM_FI_DEV_GPU_UTIL", "the label `Hostname`"),
        (f"{BYTES} and up", "joined with up by `instance`"),
        (f"sum without (x) (bottomk(1, {BYTES})) and up", "joined with up by `instance`"),
        ("rate(my_efa_tx_bytes[5m])", "`tx_bytes` is roce_port_transmit_bytes_total here"),
        ("rdma_np_cnp_sent", "not a name that this version knows; `np_cnp_sent` is roce_cnp_sent_total here"),
        ("my_pfc_storms > 0", "not a metric of an exporter that this version knows"),
        (f"{BYTES} / my_rdma_limit", "my_rdma_limit: not a metric"),
        (f'{CLASH}{{device="a"}}', f"{CLASH} is a name of rdma_exporter and of spiderpool: name one by --from"),
    ],
)  # fmt: skip
def test_what_would_select_nothing_is_left(expr, why, tmp_path, capsys) -> None:
    """With the flag that helps, once, where one helps."""
    assert run(tmp_path, expr) == 1
    out, err = capsys.readouterr()
    assert out == expr
    assert why in err
    assert err.count("--map-label=LABEL:OLD=NEW") == expr.startswith((BYTES, "sum"))


def test_a_report_is_wrapped_on_a_terminal(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run(tmp_path, f"sum by (nodename) (rate({BYTES}[5m]))") == 1
    report = capsys.readouterr().err.partition("1 left\n")[2]
    assert [line[:8].strip() for line in report.splitlines()] == ["left", "", "map", "", ""]
    assert max(map(len, report.splitlines())) <= 60


@pytest.mark.parametrize(
    ("expr", "flags", "becomes"),
    [
        ('{job="node"}', ("job:node=roce",), '{job="roce"}'),
        ('{job=~"$job", instance=~"$instance"}', (), '{job=~"$job", instance=~"$instance"}'),
        ('{job=~".*", instance=~"gpu-1.*"}', (), '{job=~".*", instance=~"gpu-1.*"}'),
        ('{job!="node", cluster="a"}', (), '{job!="node", cluster="a"}'),
        ('{instance=~".+:9100"}', ("instance:9100=10123",), '{instance=~".+:10123"}'),
        ('{instance="a:19100"}', ("instance:9100=10123",), '{instance="a:19100"}'),
        ('{hostname="a"}', ("hostname",), '{hostname="a"}'),
        (" * on(instance) node_uname_info", ("instance",), " * on(instance) node_uname_info"),
    ],
)
def test_what_is_the_same_or_mapped_is_translated(expr, flags, becomes, tmp_path, capsys) -> None:
    assert run(tmp_path, BYTES + expr, *(f"--map-label={one}" for one in flags)) == 0
    assert capsys.readouterr().out == OURS + becomes


def test_labels_that_the_expression_makes_and_the_sites_own_rules_are_no_fault(tmp_path) -> None:
    made = f'sum by (host) (label_replace({BYTES}, "host", "$1", "instance", "(.*):.*"))'
    assert run(tmp_path, made) == 0
    assert run(tmp_path, f"{BYTES} * on(instance) site:weight:now") == 0
    assert run(tmp_path, f"sum by (device) ({BYTES}) + sum(node_memory_MemTotal_bytes)") == 0
    assert run(tmp_path, f"sum({BYTES}) / scalar(sum(node_memory_MemTotal_bytes))") == 0


def test_a_mapping_has_one_form(tmp_path, capsys) -> None:
    assert run(tmp_path, BYTES, "--map-label=job=roce") == 2
    assert "neither LABEL:OLD=NEW nor LABEL" in capsys.readouterr().err


@pytest.mark.parametrize("used", [True, False])
def test_a_variable_that_lists_others_targets_is_left_if_a_translated_query_uses_it(
    used, tmp_path, capsys
) -> None:
    variable = {"type": "query", "name": "host", "query": "label_values(node_uname_info, instance)"}
    expr = f'{BYTES}{{instance="{"${host}" if used else "a"}"}}'
    board = {"templating": {"list": [variable]}, "panels": [{"title": "p", "targets": [{"expr": expr}]}]}
    assert run(tmp_path, json.dumps(board), name="b.json") == int(used)
    assert ("lists targets of another exporter" in capsys.readouterr().err) is used
    assert run(tmp_path, json.dumps(board), "--map-label=instance", name="b.json") == 0


def test_a_metric_of_the_full_set_needs_it(tmp_path, capsys) -> None:
    expr = "increase(node_infiniband_symbol_error_total[5m]) > 0"
    assert run(tmp_path, expr) == 1
    assert "need --metrics.set=full" in capsys.readouterr().err
    assert run(tmp_path, expr, "--metrics.set=full") == 0


@pytest.mark.parametrize(
    ("text", "exporters"),
    [
        (CLASH, {"rdma_exporter", "spiderpool"}),
        (f"{CLASH} rdma_port_info", {"rdma_exporter"}),
        (f"{CLASH} job=rdma_exporter", {"rdma_exporter"}),
        (f"{CLASH} rdma_vport_speed_mbps_total", {"spiderpool"}),
    ],
)
def test_the_exporter_is_guessed_from_the_whole_file(text, exporters) -> None:
    assert {one.exporter for one in guessed(text, names_of()).known[CLASH]} == exporters
