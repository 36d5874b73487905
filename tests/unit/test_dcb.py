"""DCB: a recording returns the same values as the kernel did, and its values become names and numbers."""

import json

import pytest
from netlink_dumps import LITTLE_ENDIAN, PLAIN, RICH, SET, payloads

from roce_exporter.catalog import INDEX
from roce_exporter.host.kernel.dcb_netlink import decode_ieee
from roce_exporter.host.recorded.dcb_text import KINDS, read_dcb
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.host.sources.netdev import flatten

# What dcb of iproute2 6.1 printed for the devices whose netlink replies are in dcb_dumps.
BUFFER = '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[262144,131072,0,0,0,0,0,0],"total_size":524160}'
PRINTED_PLAIN = {
    "pfc": '{"pfc_cap":8,"macsec_bypass":false,"delay":7,'
    '"prio_pfc":[false,false,false,true,false,false,false,false],'
    '"requests":[0,0,0,0,0,0,0,0],"indications":[0,0,0,0,0,0,0,0]}',
    "ets": '{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[0,0,0,0,0,0,0,0],"pg_bw":[0,0,0,0,0,0,0,0],'
    '"tc_tsa":["strict","strict","strict","strict","strict","strict","strict","strict"],'
    '"prio_tc":[0,1,2,3,4,5,6,7],"reco_tc_bw":[0,0,0,0,0,0,0,0],'
    '"reco_tc_tsa":["strict","strict","strict","strict","strict","strict","strict","strict"],'
    '"reco_prio_tc":[0,0,0,0,0,0,0,0]}',
    "app": "{}",
    "buffer": BUFFER,
    "dcbx": '{"host":true,"ieee":true}',
}
PRINTED_SET = {
    **PRINTED_PLAIN,
    "pfc": '{"pfc_cap":8,"macsec_bypass":false,"delay":7,'
    '"prio_pfc":[false,false,false,true,false,false,false,false],'
    '"requests":[18446744073709551615,0,0,1234,0,0,0,0],"indications":[0,0,0,5678,0,0,0,4294967296]}',
    "app": '{"ethtype_prio":[[35093,3]],"default_prio":[1],"dscp_prio":[[26,3],[48,6]],'
    '"stream_port_prio":[[3260,5]],"dgram_port_prio":[[4791,3]],"port_prio":[[4791,4]]}',
}
PRINTED_RICH = {
    **PRINTED_PLAIN,
    "ets": '{"willing":true,"ets_cap":6,"cbs":true,"tc_bw":[10,0,60,30,0,0,0,0],'
    '"pg_bw":[20,0,50,30,0,0,0,0],'
    '"tc_tsa":["ets","strict","ets","ets","cbs","vendor","strict","strict"],'
    '"prio_tc":[7,6,5,4,3,2,1,0],"reco_tc_bw":[90,91,92,93,94,95,96,97],'
    '"reco_tc_tsa":["ets","ets","ets","ets","ets","ets","ets","ets"],"reco_prio_tc":[1,1,1,1,1,1,1,1]}',
    "dcbx": '{"lld_managed":true,"cee":true,"ieee":true,"static":true}',
}

WITHOUT_S = json.loads(
    '{"pfc_cap":8,"macsec_bypass":false,"delay":7,"prio_pfc":[false,false,false,true,false,false,false,false]}'
)


def read(printed):
    return read_dcb({kind: json.loads(text) for kind, text in printed.items()}, "roce0", "HOST")


def read_one(kind, document):
    return read_dcb({kind: document}, "roce0", "HOST")


def pfc_with(**changes):
    return {**WITHOUT_S, **changes}


@LITTLE_ENDIAN
@pytest.mark.parametrize(
    ("printed", "dump"), [(PRINTED_PLAIN, PLAIN), (PRINTED_SET, SET), (PRINTED_RICH, RICH)]
)
def test_a_recording_returns_the_kernels_values(printed, dump):
    recorded, told = read(printed), decode_ieee(payloads(dump)[0])
    for kind in ("pfc", "ets", "buffer", "dcbx"):
        assert recorded[kind] == told[kind]
    # This version of dcb omits PCP rows, and sorts the others.
    rows = {name: tuple(sorted(rows)) for name, rows in told["app"].items() if name != "pcp_prio"}
    assert recorded["app"] == rows


def test_pcp_rows_of_newer_versions_are_read_by_name_and_by_number():
    """The kernel encodes priority code point 5 with drop eligibility as 13; `dcb -N` prints 13."""
    told = read_one("app", {"pcp_prio": [["5de", 2], ["5nd", 3], [7, 1]]})
    assert told["app"] == {"pcp_prio": (("5de", 2), ("5nd", 3), (7, 1))}


def test_what_is_not_printed_or_recorded_is_absent_and_not_zero() -> None:
    pfc = read_one("pfc", WITHOUT_S)["pfc"]
    assert pfc.keys() == WITHOUT_S.keys()
    assert pfc["prio_pfc"].index(True) == 3
    assert read({}) == {}
    assert flatten(read_one("dcbx", {})) == {"dcbx_mode": 0}, "no mode at all is a mode"
    for kind, text in PRINTED_SET.items():
        assert [*read({kind: text})] == [kind]
        document = json.loads(PRINTED_RICH[kind])
        assert read_one(kind, {**document, "new": [1]}) == read_one(kind, document), "additions are ignored"


EIGHT = [0] * 8
MALFORMED = {
    "not an object": ("pfc", []),
    "pfc_cap holds None, not a whole number": ("pfc", {}),
    "delay holds -1, not a whole number": ("pfc", pfc_with(delay=-1)),
    "delay holds True, not a whole number": ("pfc", pfc_with(delay=True)),
    "delay holds 1.5, not a whole number": ("pfc", pfc_with(delay=1.5)),
    "macsec_bypass holds 0, neither true nor false": ("pfc", pfc_with(macsec_bypass=0)),
    "prio_pfc is None, not a list": ("pfc", pfc_with(prio_pfc=None)),
    "prio_pfc holds 7 values, not 8": ("pfc", pfc_with(prio_pfc=[True] * 7)),
    "prio_pfc holds 0, neither true nor false": ("pfc", pfc_with(prio_pfc=EIGHT)),
    "requests is None, not a list": ("pfc", pfc_with(requests=None)),
    "tc_tsa holds '???', none of strict, cbs, ets, vendor": (
        "ets",
        {**json.loads(PRINTED_RICH["ets"]), "tc_tsa": ["???"] * 8},
    ),
    "dscp_prio is {}, not a list": ("app", {"dscp_prio": {}}),
    "dscp_prio holds [26], not a pair": ("app", {"dscp_prio": [[26]]}),
    "dscp_prio holds 'AF31', not a whole number": ("app", {"dscp_prio": [["AF31", 3]]}),
    "default_prio holds [0, 1], not a whole number": ("app", {"default_prio": [[0, 1]]}),
    "total_size holds None, not a whole number": ("buffer", {"prio_buffer": EIGHT, "buffer_size": EIGHT}),
    "host holds 1, neither true nor false": ("dcbx", {"host": 1}),
}


@pytest.mark.parametrize(("why", "kind", "document"), [(why, *rest) for why, rest in MALFORMED.items()])
def test_a_malformed_document_is_reported_in_one_line_with_the_remedy(why, kind, document):
    with pytest.raises(RecordingError) as caught:
        read_one(kind, document)
    text = str(caught.value)
    assert text.startswith(f"recording HOST: dcb/roce0.{kind}.json: {why}")
    assert text.endswith(f"; record it with `dcb -s -j {kind} show dev roce0`")
    assert "\n" not in text


# The source

PFC = {
    "pfc_cap": 8,
    "macsec_bypass": False,
    "delay": 7,
    "prio_pfc": tuple(priority == 3 for priority in range(8)),
    "requests": tuple(range(8)),
    "indications": tuple(range(10, 18)),
}
ETS = {
    "willing": False,
    "ets_cap": 8,
    "cbs": False,
    "tc_bw": (0, 0, 0, 60, 0, 0, 40, 0),
    "pg_bw": (0,) * 8,
    "tc_tsa": ("strict", "strict", "strict", "ets", "strict", "strict", "ets", "strict"),
    "prio_tc": (0, 1, 2, 3, 4, 5, 6, 7),
}
WHOLE = {
    "pfc": PFC,
    "ets": ETS,
    "max_rate": (0,) * 8,
    "app": {"dscp_prio": ((26, 3), (48, 6)), "ethtype_prio": ((0x8906, 3),)},
    "trust": (5, 255),
    "buffer": {
        "prio_buffer": (0, 0, 0, 1, 0, 0, 0, 0),
        "buffer_size": (262144, 131072, 0, 0, 0, 0, 0, 0),
        "total_size": 524160,
    },
    "peer_pfc": PFC,
    "dcbx": {"host": True, "ieee": True},
}


def test_every_value_is_named_by_its_priority_class_buffer_or_dscp() -> None:
    found = flatten(WHOLE)
    assert found["pfc_enabled_3"] == 1
    assert found["pfc_enabled_4"] == 0
    assert (found["pfc_requests_7"], found["pfc_indications_7"]) == (7, 17)
    assert found["ets_transmit_bandwidth_3"] == 60
    assert found["priority_traffic_class_6"] == 6
    assert {name: value for name, value in found.items() if name.startswith("dscp")} == {
        "dscp_mappings": 2,
        "dscp_priority_26": 3,
        "dscp_priority_48": 6,
    }
    assert (found["trust_dscp"], found["dcbx_mode"], found["pfc_delay"]) == (1, 9, 7)
    assert (found["priority_buffer_3"], found["buffer_bytes_1"], found["buffer_total"]) == (1, 131072, 524160)
    assert found["peer_pfc_enabled_3"] == 1


def test_settings_of_the_switch_differ_from_local_ones() -> None:
    app = {"dscp_prio": ((26, 4),), "ethtype_prio": ((0x8906, 3),)}
    found = flatten({"peer_ets": {**ETS, "willing": True}, "peer_app": app})
    assert (found["peer_ets_willing"], found["peer_ets_transmit_bandwidth_3"]) == (1, 60)
    assert (found["peer_ets_algorithm_6"], found["peer_priority_traffic_class_5"]) == (2, 5)
    assert found["peer_dscp_priority_26"] == 4
    assert all(name.startswith("peer_") for name in found)
    for name in found:
        assert INDEX.claimed("mlx5", "dcb", name), name


@pytest.mark.parametrize(
    ("dcb", "found"),
    [
        ({}, {}),
        ({"app": {}}, {"dscp_mappings": 0}),  # an empty table is a value, and means that mlx5 trusts PCP
        ({"trust": (255, 5)}, {"trust_dscp": 0}),
        ({"trust": ()}, {"trust_dscp": 0}),
        ({"trust": (5, 255)}, {"trust_dscp": 1}),
    ],
)
def test_missing_values_have_no_name(dcb, found) -> None:
    """Trust is that of the strongest selector. A delay of 0 is not exported."""
    assert flatten(dcb) == found
    assert "pfc_delay" not in flatten({"pfc": {**PFC, "delay": 0}})


def test_every_name_has_a_row_or_a_reason() -> None:
    for dialect in ("mlx5", "mlx4", "bnxt_re", "irdma", "hns", "qedr"):
        for name in flatten(WHOLE):
            assert INDEX.claimed(dialect, "dcb", name) or INDEX.left_out(dialect, "dcb", name), (
                dialect,
                name,
            )


def test_pause_frames_of_dcb_serve_only_where_they_count_enabled_priorities() -> None:
    """mlx5 counts them for priorities without PFC, too, which must not be shown."""
    assert INDEX.claimed("irdma", "dcb", "pfc_indications_3").name == "roce_pfc_receive_frames_total"
    assert INDEX.claimed("hns", "dcb", "pfc_requests_3").name == "roce_pfc_transmit_frames_total"
    assert INDEX.claimed("mlx5", "dcb", "pfc_indications_3") is None
    assert INDEX.claimed("mlx4", "dcb", "pfc_requests_3") is None


def test_the_output_of_a_capture_is_read_back() -> None:
    captured = {kind: json.loads(json.dumps(WHOLE[kind])) for kind in KINDS}
    assert read_dcb(captured, "eth0", "test") == {kind: WHOLE[kind] for kind in KINDS}
