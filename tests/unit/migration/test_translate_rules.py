"""Rule files: expressions, templates and recorded names, with every style and comment of YAML kept."""

from pathlib import Path

import pytest
from foreign_table import NAMES

from roce_exporter.migrate.foreign_files import recorded, translate_rules
from roce_exporter.migrate.translation import FileReport, UnreadableError
from roce_exporter.yaml_document import DocumentError

FILE = Path("a.yml")
DOWNED, OURS = "node_infiniband_link_downed_total", "roce_port_link_downed_total"
PRIO3 = "node_ethtool_received_prio3_pause"

RULES = """# why
groups:
  - name: rdma   # kept
    rules:
      - record: instance:pause:rate5m
        expr: sum by (instance, device) (rate(node_ethtool_received_prio3_pause[5m]))
      - alert: Pause
        expr: |
          # comment of the expression
          instance:pause:rate5m{device=~"eth.*"} > 100
            and on (instance, device)
          rate(node_ethtool_received_discards_phy[5m]) > 0
        annotations:
          summary: 'It''s {{ $labels.device }} on {{ .Labels.instance }}'
          description: >-
            {{ index $labels "device" }} of
            {{ $labels.instance }}: device
        labels: {nic: "{{ $labels.device }}", severity: page}
      - alert: Data
        expr: >
          rate(rdma_port_rcv_data_total{device="a"}[5m]) * 4
            > 1e9
      - alert: Sent
        expr: |
          ( rate(rdma_port_xmit_data_total[5m]) ) * 4
            > 1e9
      - alert: Quoted
        expr: "rate(node_infiniband_link_downed_total{device=\\"a\\"}[5m]) > 0"   # tail
      - {alert: Inline, expr: node_ethtool_received_prio3_pause > 0}
      - alert: Plain
        expr: rate(node_infiniband_link_downed_total[5m])
            > 0
"""
CHANGES = (
    (f"(instance, device) (rate({PRIO3}[5m]))", '(instance, netdev) (rate(roce_pfc_receive_frames_total{priority="3"}[5m]))'),
    ('rate5m{device=~"eth.*"}', 'rate5m{netdev=~"eth.*"}'),
    ("and on (instance, device)", "and on (instance, netdev)"),
    ("node_ethtool_received_discards_phy", "roce_phy_receive_discards_total"),
    ("{{ $labels.device }}", "{{ $labels.netdev }}"),
    ('$labels "device"', '$labels "netdev"'),
    ('rate(rdma_port_rcv_data_total{device="a"}[5m]) * 4', 'rate(roce_port_receive_bytes_total{device="a"}[5m])'),
    ("( rate(rdma_port_xmit_data_total[5m]) ) * 4", "( rate(roce_port_transmit_bytes_total[5m]) )"),
    (DOWNED, OURS),
    (f"expr: {PRIO3} > 0", 'expr: "roce_pfc_receive_frames_total{priority=\\"3\\"} > 0"'),
)  # fmt: skip


def translated(text: str) -> tuple[str, FileReport]:
    report = FileReport(str(FILE), recorded(FILE, text, NAMES))
    return translate_rules(FILE, text, report), report


def test_rules_are_translated_and_all_else_stays() -> None:
    expected = RULES
    for old, new in CHANGES:
        assert old in expected
        expected = expected.replace(old, new)
    found, report = translated(RULES)
    assert found == expected
    assert report.left == []
    assert translated(found)[0] == found


def test_an_alert_with_another_label_is_noted() -> None:
    _, report = translated(RULES)
    notes = {one.title: one.text for one in report.notes}
    assert set(notes) == {"Pause", "Inline"}
    assert "`device` is `netdev`" in notes["Pause"]


def test_the_users_own_names_stay() -> None:
    text = f"groups:\n- rules:\n  - record: rdma_own_rate\n    expr: rate({DOWNED}[5m])\n  - record: b\n    expr: sum(rdma_own_rate)\n"
    found, report = translated(text)
    assert found == text.replace(DOWNED, OURS)
    assert report.left == []


@pytest.mark.parametrize(
    "around",
    [
        "kind: PrometheusRule\nspec:\n  groups:\n  - rules:\n    - alert: A\n      expr: {}\n",
        "kind: List\nitems:\n- kind: PrometheusRule\n  spec:\n    groups: [{{rules: [{{alert: A, expr: '{}'}}]}}]\n",
        "apiVersion: 1\ngroups:\n- rules:\n  - title: A\n    data:\n    - model: {{expr: '{}', refId: A}}\n",
        "---\na: b\n---\ngroups:\n- rules:\n  - {{alert: A, expr: '{}'}}\n",
    ],
)
def test_every_form_of_rule_file_is_known(around) -> None:
    found, report = translated(around.format(f"rate({DOWNED}[5m]) > 0"))
    assert found == around.format(f"rate({OURS}[5m]) > 0")
    assert (report.translated, report.left) == (1, [])
    _, report = translated(around.format("node_infiniband_new"))
    assert report.left[0].title == "A"


def test_what_is_left_names_its_document_and_place() -> None:
    text = "groups: []\n---\ngroups:\n- rules:\n  - alert: A\n    expr: node_infiniband_new\n"
    _, report = translated(text)
    assert [(one.path, one.title) for one in report.left] == [("document 2: groups[0].rules[0].expr", "A")]


def test_a_query_in_a_template_is_left() -> None:
    text = f"groups:\n- rules:\n  - alert: A\n    expr: up == 0\n    annotations:\n      a: '{{{{ query \"{DOWNED}\" }}}}'\n      b: of {DOWNED}\n"
    found, report = translated(text)
    assert found == text
    assert [one.path for one in report.left] == ["groups[0].rules[0].annotations.a"]
    assert [one.path for one in report.notes] == ["groups[0].rules[0].annotations.b"]


def test_a_template_whose_label_has_no_equal_is_left() -> None:
    text = "groups:\n- rules:\n  - alert: A\n    expr: rdma_pause_total{direction=\"rx\"} > 0\n    annotations: {a: '{{ $labels.direction }}'}\n"
    _, report = translated(text)
    assert [one.path for one in report.left] == ["groups[0].rules[0].annotations.a"]


@pytest.mark.parametrize(
    ("expr", "new"),
    [
        (f"'{DOWNED}{{device=\"it''s\"}}'", f"'{OURS}{{device=\"it''s\"}}'"),
        (f'"{DOWNED}\\\n    > 1"', f'"{OURS}> 1"'),
        (f'"{DOWNED} \\u003e 1"', f'"{OURS} > 1"'),
        (
            f"|-\n      {PRIO3}\n\n      > 1",
            '|-\n      roce_pfc_receive_frames_total{priority="3"}\n\n      > 1',
        ),
    ],
)
def test_styles_of_yaml_are_kept_where_it_allows_that(expr, new) -> None:
    text = f"groups:\n- rules:\n  - alert: A\n    expr: {expr}\n    for: 5m # kept\n"
    found, _ = translated(text)
    assert found == text.replace(expr, new)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a: b\n", UnreadableError),
        ("- a\n", UnreadableError),
        ("groups: x\n", UnreadableError),
        ("groups: [\n", DocumentError),
        ("groups:\n- rules:\n  - {expr: &a up}\n  - {expr: *a}\n", DocumentError),
        ("groups: " + "[" * 50 + "]" * 50, DocumentError),
    ],
)
def test_what_has_no_rules_is_refused_in_one_line(text, kind) -> None:
    with pytest.raises(kind) as refused:
        translated(text)
    assert "\n" not in str(refused.value)
