"""One expression: what it becomes, and what is refused. Expectations are worked out by hand."""

import re

import pytest
from foreign_table import NAMES, NODE, SPIDER, TABLE, names
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.migrate.promql import PromqlError, outline, parse
from roce_exporter.migrate.promql_names import UntranslatedError
from roce_exporter.migrate.translation import translate

RCV, XMIT = "rdma_port_rcv_data_total", "rdma_port_xmit_data_total"
OURS, OURS_X = "roce_port_receive_bytes_total", "roce_port_transmit_bytes_total"
PRIO3, PRIO4 = "node_ethtool_received_prio3_pause", "node_ethtool_received_prio4_pause"
FRAMES = "roce_pfc_receive_frames_total"
DOWNED = "node_infiniband_link_downed_total"

TRANSLATED = {
    "names": {
        DOWNED: "roce_port_link_downed_total",
        f'{{__name__="{DOWNED}", device="a"}}': '{__name__="roce_port_link_downed_total", device="a"}',
        f'{{"{DOWNED}"}}': '{"roce_port_link_downed_total"}',
        f"rate( {DOWNED}{{ instance = 'a' }} [5m] ) # why\n": "rate( roce_port_link_downed_total{ instance = 'a' } [5m] ) # why\n",
        f"{DOWNED} offset -1h @ end()": "roce_port_link_downed_total offset -1h @ end()",
        f"{DOWNED} + fill_left (0) {DOWNED}": "roce_port_link_downed_total + fill_left (0) roce_port_link_downed_total",
        f"{DOWNED} + fill (0) {DOWNED}": "roce_port_link_downed_total + fill (0) roce_port_link_downed_total",
        f"up * on (instance) group_right () {DOWNED}": "up * on (instance) group_right () roce_port_link_downed_total",
    },
    "labels": {
        f'{PRIO3}{{device=~"eth.*",}}': f'{FRAMES}{{netdev=~"eth.*",priority="3",}}',
        f"{PRIO3}": f'{FRAMES}{{priority="3"}}',
        f"{PRIO3}{{}}": f'{FRAMES}{{priority="3"}}',
        f'{{"{PRIO3}"}}': f'{{"{FRAMES}",priority="3"}}',
        f"sum by (device) (rate({PRIO3}[5m]))": f'sum by (netdev) (rate({FRAMES}{{priority="3"}}[5m]))',
        f"sum(rate({PRIO3}[5m])) by (device,)": f'sum(rate({FRAMES}{{priority="3"}}[5m])) by (netdev,)',
        f'sum by ("device") ({PRIO3})': f'sum by ("netdev") ({FRAMES}{{priority="3"}})',
        f"sum without (device) ({PRIO3})": f'sum without (netdev, device, port, priority) ({FRAMES}{{priority="3"}})',
        f"sum by (device) ({DOWNED} * on (instance) group_right () {PRIO3})": f'sum by (netdev) (roce_port_link_downed_total * on (instance) group_right () {FRAMES}{{priority="3"}})',
        f"sum without (x) ({DOWNED} * on (instance) group_left (device) {PRIO3})": f'sum without (x) (roce_port_link_downed_total * on (instance) group_left (netdev) {FRAMES}{{priority="3"}})',
        f'count_values by (device) ("device", {PRIO3})': f'count_values by (netdev) ("netdev", {FRAMES}{{priority="3"}})',
        f"sum without () ({PRIO3})": f'sum without (device, port, priority) ({FRAMES}{{priority="3"}})',
        f"{PRIO3} / {PRIO4}": f'{FRAMES}{{priority="3"}} / ignoring (priority) {FRAMES}{{priority="4"}}',
        f"{PRIO3} > bool ignoring (x) {PRIO4}": f'{FRAMES}{{priority="3"}} > bool ignoring (x, priority) {FRAMES}{{priority="4"}}',
        f"{PRIO3} / {PRIO3}": f'{FRAMES}{{priority="3"}} / {FRAMES}{{priority="3"}}',
        f"{PRIO3} / on (instance, device) {PRIO4}": f'{FRAMES}{{priority="3"}} / on (instance, netdev) {FRAMES}{{priority="4"}}',
        f'label_replace({PRIO3}, "x", "$1", "device", "(.*)")': f'label_replace({FRAMES}{{priority="3"}}, "x", "$1", "netdev", "(.*)")',
        f'label_join({PRIO3}, "x", "-", "device", "job")': f'label_join({FRAMES}{{priority="3"}}, "x", "-", "netdev", "job")',
        f'count_values("v", {DOWNED})': 'count_values("v", roce_port_link_downed_total)',
        f"sum by (instance) ({PRIO3}) / sum by (instance) (up)": f'sum by (instance) ({FRAMES}{{priority="3"}}) / sum by (instance) (up)',
        'rdma_pause_total{direction="rx"}': f"{FRAMES}{{}}",
        'rdma_pause_total{job="a", direction="tx",priority="3"}': 'roce_pfc_transmit_frames_total{job="a", priority="3"}',
    },
    "units": {
        f"rate({RCV}[5m]) * 4": f"rate({OURS}[5m])",
        f"topk($n, 4 * rate({RCV}[$interval]))": f"topk($n, rate({OURS}[$interval]))",
        f"sum(rate({RCV}[5m])) * 8 * 4": f"sum(rate({OURS}[5m])) * 8",
        f"(rate({RCV}[5m]) + rate({XMIT}[5m])) * 4": f"(rate({OURS}[5m]) + rate({OURS_X}[5m]))",
        f"rate({RCV}[5m]) + rate({XMIT}[5m])": f"(rate({OURS}[5m]) + rate({OURS_X}[5m])) / 4",
        f"rate({RCV}[5m]) / rate({XMIT}[5m])": f"rate({OURS}[5m]) / rate({OURS_X}[5m])",
        f"rate({RCV}[5m])": f"rate({OURS}[5m]) / 4",
        f"rate({RCV}[5m]) > 5": f"(rate({OURS}[5m]) / 4) > 5",
        f"-{RCV}": f"-({OURS} / 4)",
        f"1 - {RCV} ^ 2": f"1 - ({OURS} / 4) ^ 2",
        f"{RCV} and {XMIT}": f"({OURS} / 4) and ({OURS_X} / 4)",
        f"sum(rate({RCV}[5m])) or vector(0)": f"(sum(rate({OURS}[5m])) / 4) or vector(0)",
        f"max_over_time({RCV}[1h:5m])": f"max_over_time(({OURS} / 4)[1h:5m])",
        f"clamp_max({RCV}, 5)": f"clamp_max({OURS} / 4, 5)",
        f"changes({RCV}[5m])": f"changes({OURS}[5m])",
        f"count({RCV})": f"count({OURS})",
        f"absent({RCV})": f"absent({OURS})",
        f"timestamp({RCV})": f"timestamp({OURS})",
        f"stdvar({RCV})": f"stdvar({OURS} / 4)",
        f"quantile_over_time(0.9, {RCV}[5m])": f"quantile_over_time(0.9, {OURS}[5m]) / 4",
        "rate(rdma_pause_microseconds_total[5m])": "rate(roce_pfc_receive_pause_seconds_total[5m]) * 1000000",
    },
    "Grafana": {
        f'rate({DOWNED}{{device=~"$device", host="${{host:regex}}"}}[$__rate_interval])': 'rate(roce_port_link_downed_total{device=~"$device", host="${host:regex}"}[$__rate_interval])',
        f"rate({DOWNED}[[[interval]]]) > $limit": "rate(roce_port_link_downed_total[[[interval]]]) > $limit",
        f"max_over_time({DOWNED}[$__range:$step] offset ${{ago}})": "max_over_time(roce_port_link_downed_total[$__range:$step] offset ${ago})",
        f"sum by ($a, $b) ({DOWNED}{{$one, device='a', $two}}) / $c{{x='y'}}": "sum by ($a, $b) (roce_port_link_downed_total{$one, device='a', $two}) / $c{x='y'}",
        f"rate({DOWNED}[$i] @ $t) > ${{n}}m": "rate(roce_port_link_downed_total[$i] @ $t) > ${n}m",
        f"sum by ($group) ({DOWNED}{{$filters}})": "sum by ($group) (roce_port_link_downed_total{$filters})",
        f"{DOWNED} + $metric{{a=~'b'}}": "",
    },
}
CASES = [(text, new) for group in TRANSLATED.values() for text, new in group.items() if new]


@pytest.mark.parametrize(("text", "new"), CASES)
def test_an_expression_becomes_ours(text, new) -> None:
    found = translate(text, NAMES)
    assert found is not None
    assert found.text == new


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("node_ethtool_info", "node_ethtool_info: it is about the driver"),
        ("node_infiniband_new_total + rdma_qp_x_total", "node_infiniband_new_total: not a name.*; rdma_qp_x_total: queue pairs"),
        ("rate(node_infiniband_${what}_total[5m])", "a part of the name is a variable"),
        ('{__name__=~"node_infiniband_.*"}', "selected by `__name__=~`"),
        ('{__name__=~"node_(infiniband|ethtool)_.*"}', "selected by `__name__=~`"),
        ('{job="a", __name__!="rdma_link_downed_total"}', "selected by `__name__!=`"),
        ('{__name__=~"(x+)+y"}', "selected by `__name__=~`"),  # what could take hours is not tried
        ('{__name__=~"cpu.*a.*b.*c.*d.*e"}', "selected by `__name__=~`"),
        (f'{DOWNED}{{device="a" or port="1"}}', "joined by `or`"),
        ("rdma_pause_total", 'depends on a matcher that is not there: direction="rx", direction="tx"'),
        ('rdma_pause_total{direction=~"rx|tx"}', "depends on a matcher"),
        ('sum by (direction) (rdma_pause_total{direction="rx"})', "label `direction` of rdma_pause_total has no equal"),
        (f"{PRIO3} * on (device) group_left (speed) node_network_info", "becomes `device` with node_network_info and `netdev` with"),
        (f"{PRIO3} and up", "used together"),
        (f"sum by (device) ({DOWNED} * on (instance) group_left (device) {PRIO3})", "used together"),
        (f"sum by (device) ({PRIO3} or {DOWNED})", "used together"),
        (f"sum by (netdev) ({PRIO3})", "label `netdev` is used, and means something else"),
        (f"sum by (priority) ({PRIO3})", "label `priority` is used"),
        (f'label_replace({PRIO3}, "netdev", "$1", "device", "(.*)")', "label `netdev` is used"),
        (f"sum without (x) ({PRIO3} or on () up)", "has the label `device` in addition"),
        ("rdma_discards_total and up", "has the label `netdev` in addition, which up next to it can have too"),
        ("rdma_two_total", "several metrics here have this fact: roce_cnp_sent_total, roce_cnp_handled_total"),
        (f"sum by (__name__) ({DOWNED})", "`__name__` is used"),
        (f"sum by ($group) ({PRIO3})", "variable \\$group is in the place of a label"),
        (f"{PRIO3}{{$filters}}", "a variable is in the place of a label or a matcher"),
        (f"stdvar_over_time({RCV}[5m])", "`stdvar_over_time` of values in another unit"),
        (f"info({DOWNED})", "`info` joins"),
        (f"sum({DOWNED}", "promql-parser refuses it"),
        (f"${{function}}({DOWNED})", "promql-parser refuses it"),
        ("sum by (ifname) (rdma_np_cnp_sent_total)", "means something else in rdma_exporter and spiderpool: name one by --from"),
        ("rdma_np_cnp_sent_total + on () node_infiniband_link_downed_total", "several exporters; name one by --from"),
        ('sum(rdma_np_cnp_sent_total{is_root="true"})', "means something else|has no equal"),
    ],
)  # fmt: skip
def test_what_would_be_a_guess_is_refused(text, why) -> None:
    with pytest.raises(UntranslatedError) as refused:
        translate(text, NAMES)
    assert re.search(why, str(refused.value)), refused.value
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "up",
        'up{metric="rdma_link_downed_total"}',
        '{__name__=~".+", job="node"}',
        '{__name__=~"node_cpu.*"}',
        '{__name__=~"node_cpu.*|a.*|b.*|c.*|d.*|e.*"}',
        "instance:rdma_link_downed:rate5m",
        'sum(rate({job="rdma_exporter"} |= "error" [5m]))',
        "roce_port_link_downed_total",
        "",
    ],
)
def test_what_has_no_name_of_theirs_is_not_touched(text) -> None:
    assert translate(text, NAMES) is None


def test_a_name_of_two_exporters_is_translated_where_they_agree() -> None:
    found = translate("sum by (instance) (rate(rdma_np_cnp_sent_total[5m]))", NAMES)
    assert found is not None
    assert found.text == "sum by (instance) (rate(roce_cnp_sent_total[5m]))"


def test_the_exporter_named_decides() -> None:
    text = 'sum by (ifname) (rdma_np_cnp_sent_total{pod_name=""})'
    found = translate(text, names(SPIDER))
    assert found is not None
    assert found.text == 'sum by (device) (roce_cnp_sent_total{pod_name=""})'
    with pytest.raises(UntranslatedError, match="`is_root` of rdma_np_cnp_sent_total has no equal"):
        translate('rdma_np_cnp_sent_total{is_root="true"}', names(SPIDER))
    assert translate("up", names(NODE)) is None


@pytest.mark.parametrize(
    "text",
    ["((" * 40 + "1" + "))" * 40, "-" * 80 + "1", "1" + "^-1" * 80, "x" * 30_000, "1 1", 'a{b="c}', "a" + "+a" * 160],
)  # fmt: skip
def test_what_is_no_expression_or_too_deep_is_refused(text) -> None:
    with pytest.raises(PromqlError):
        parse(text)


THEIRS = st.sampled_from(sorted({one.name for one in TABLE}))
OTHER = st.sampled_from(["up", "node_cpu_seconds_total", "a:b:c", "roce_port_state", "rdma_qp_x", "$metric"])
MATCHERS = st.sampled_from(["", "{}", '{device="$d"}', '{a!~"b",}', '{direction="rx", port="1"}', "{$all}"])
LABELS = st.lists(st.sampled_from(["device", "port", "instance", "ifname", "netdev", "$g"]), max_size=3).map(
    ", ".join
)


def expressions(metrics: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    selectors = st.builds("{}{}".format, metrics, MATCHERS)
    ranged = st.builds(
        "{}({}[{}])".format,
        st.sampled_from(["rate", "changes", "delta"]),
        selectors,
        st.sampled_from(["5m", "$i", "1h30m"]),
    )
    leaves = st.one_of(selectors, ranged, st.sampled_from(["1", "4", "1e6", "$limit", "vector(0)", "time()"]))

    def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        operators = st.sampled_from(
            ["+", "-", "*", "/", "^", "> bool", "and", "or", "* on (instance)", "/ ignoring(x)"]
        )
        return st.one_of(
            st.builds("{} {} {}".format, inner, operators, inner),
            st.builds("({})".format, inner),
            st.builds("-{}".format, inner),
            st.builds(
                "{} {} ({}) ({}) # {{x}}\n".format,
                st.sampled_from(["sum", "count", "max"]),
                st.sampled_from(["by", "without"]),
                LABELS,
                inner,
            ),
            st.builds("{}({})".format, st.sampled_from(["abs", "ceil", "absent", "scalar"]), inner),
            st.builds("max_over_time(({})[1h:])".format, inner),
        )

    return st.recursive(leaves, around, max_leaves=6)  # fmt: skip


@given(expressions(THEIRS | OTHER))
def test_a_result_is_promql_without_their_names_and_final(text) -> None:
    try:
        found = translate(text, NAMES)
    except UntranslatedError:
        return
    if found is None:
        return
    parse(found.text)
    assert not any(re.search(rf"\b{one.name}\b", found.text) for one in TABLE)
    assert translate(found.text, NAMES) is None


@given(expressions(THEIRS | OTHER))
def test_the_places_are_those_of_the_tree(text) -> None:
    try:
        tree = parse(text)
    except PromqlError:
        return
    assert outline(parse(text[tree.start : tree.end])) == outline(tree)
