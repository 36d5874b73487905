"""A recorded host returns the same DCB values as the kernel did, and nothing where nothing was recorded."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import PLAIN, RICH, SET, payloads

from roce_exporter.kernel.dcb_netlink import App, Dcb, decode_ieee
from roce_exporter.recording.dcb_recorded import KINDS, read_dcb
from roce_exporter.recording.tree import RecordingError

LITTLE_ENDIAN = pytest.mark.skipif(
    sys.byteorder != "little", reason="the dumps are a little-endian machine's"
)

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
    assert (recorded.pfc, recorded.ets, recorded.buffer) == (told.pfc, told.ets, told.buffer)
    assert recorded.dcbx == told.dcbx
    # This version of dcb omits PCP rows, and sorts the others.
    assert set(recorded.app) == {app for app in told.app if app.selector != 255}


def test_pcp_rows_of_newer_versions_are_read_by_name_and_by_number():
    """The kernel encodes priority code point 5 with drop eligibility as 13; `dcb -N` prints 13."""
    told = read_one("app", {"pcp_prio": [["5de", 2], ["5nd", 3], [7, 1]]})
    assert told.app == (App(255, 13, 2), App(255, 5, 3), App(255, 7, 1))


def test_frames_that_were_not_printed_are_not_zero():
    pfc = read_one("pfc", WITHOUT_S).pfc
    assert (pfc.requests, pfc.indications) == ((), ())
    assert pfc.enabled.index(True) == 3


def test_unrecorded_values_are_absent():
    assert read({}) == Dcb()
    for kind in KINDS:
        told = read({kind: PRINTED_SET[kind]})
        assert [field for field in Dcb.__slots__ if getattr(told, field) is not None] == [kind]


def test_no_dcbx_mode_at_all_is_a_mode():
    assert read_one("dcbx", {}).dcbx == 0


def test_additions_of_newer_versions_are_ignored():
    for kind in KINDS:
        document = json.loads(PRINTED_RICH[kind])
        assert read_one(kind, {**document, "new": [1]}) == read_one(kind, document)


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
    "pcp_prio holds '8nd', none of 0nd, 0de": ("app", {"pcp_prio": [["8nd", 3]]}),
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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(KINDS), st.data())
def test_any_value_in_any_place_is_read_or_refused(kind, data):
    document = json.loads(PRINTED_SET[kind])
    for key in data.draw(st.lists(st.sampled_from([*document, "host", "pcp_prio", "dscp_prio"]), max_size=3)):
        document[key] = data.draw(json_values)
    for tried in (document, data.draw(json_values)):
        try:
            told = read_one(kind, tried)
        except RecordingError as error:
            assert f"dcb/roce0.{kind}.json" in str(error)  # noqa: PT017 - which places are refused depends on the value
            assert len(str(error)) < 300  # noqa: PT017 - the same
        else:
            assert getattr(told, kind) is not None
