"""The output of the ethtool command is read back unchanged, and a malformed line costs only itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.host.recorded.ethtool_text import (
    parse,
    parse_fields,
    parse_statistics,
    print_statistics,
    print_values,
)

STATISTICS = """NIC statistics:
     rx_packets: 845320277
     [0]: rx_ucast_packets: 10198513532
     [0]: rx_ucast_packets: 7
     Tx Queue#: 0
       pkts rx err: 3
     rx_prio3_pause: 18446744073709551615
     broken: line
     negative: -5
"""


def test_private_statistics_keep_their_names_and_order() -> None:
    names, values = parse_statistics(STATISTICS)
    assert names == (
        "rx_packets",
        "[0]: rx_ucast_packets",
        "[0]: rx_ucast_packets",
        "Tx Queue#",
        "pkts rx err",
        "rx_prio3_pause",
    )
    assert values == (845320277, 10198513532, 7, 0, 3, 2**64 - 1)


def test_pause_parameters_and_their_counters() -> None:
    text = (
        "Pause parameters for eth4:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\nStatistics:\n"
        "  tx_pause_frames: 2\n  rx_pause_frames: 1\n"
    )
    assert parse("pause", text) == {
        "autonegotiate": 0,
        "receive": 1,
        "transmit": 1,
        "transmit_frames": 2,
        "receive_frames": 1,
    }


def test_the_link() -> None:
    text = (
        "Settings for eth2:\n\tSpeed: 200000Mb/s\n\tLanes: 4\n\tDuplex: Full\n\tAuto-negotiation: on\n"
        "\tLink detected: yes\n\tLink Down Events: 3\n"
    )
    found = {"speed": 25_000_000_000, "lanes": 4, "full_duplex": 1, "up": 1, "down_events": 3}
    assert parse("link", text) == found


def test_a_link_that_is_down_has_no_speed() -> None:
    text = "\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tLink detected: no (No cable)\n"
    assert parse("link", text) == {"up": 0, "extended_state": 4}
    assert parse("link", "Link detected: no (who knows)\n") == {"up": 0}


@pytest.mark.parametrize(
    ("reason", "numbers"),
    [
        ("Autoneg, FEC mismatch during override", (0, 5)),
        ("Link training failure, Remote side is not ready yet", (1, 4)),
        ("Logical mismatch, RS FEC is not locked", (2, 5)),
        ("Bad signal integrity, Serdes ALOS", (3, 4)),
        ("Cable issue, Cable test failure", (5, 2)),
        ("Overheat", (9,)),
        ("Module, CMIS module is not in ModuleReady state", (10, 1)),
        ("Autoneg, 77", (0, 77)),
    ],
)
def test_a_recorded_link_says_why_it_is_down(reason, numbers) -> None:
    """In the words of ethtool 6.1; numbers of include/uapi/linux/ethtool.h."""
    found = {"up": 0} | dict(zip(("extended_state", "extended_substate"), numbers, strict=False))
    assert parse("link", f"\tLink detected: no ({reason})\n") == found
    assert print_values("link", found) == f"  Link detected: no ({reason})\n"


def test_fec_and_driver() -> None:
    assert parse(
        "fec", "FEC parameters for eth2:\nActive FEC encoding: RS\nStatistics:\n  corrected_blocks: 123\n"
    ) == {"corrected_blocks": 123}
    text = "driver: mlx5_core\nversion: 6.12.0\nfirmware-version: 28.41 (MT_0000000838)\n"
    assert parse_fields(text)["driver"] == "mlx5_core"


def test_the_fec_histogram_is_read_as_ethtool_7_prints_it() -> None:
    text = (
        "  corrected_blocks: 123\n  fec_symbols_err_0: 445 [ per_lane: 125, 320 ]\n"
        "  fec_symbols_err_1_to_3: 12\n"
    )
    found = {
        "corrected_blocks": 123,
        "fec_symbols_err_0": 445,
        "fec_symbols_err_0_lane_0": 125,
        "fec_symbols_err_0_lane_1": 320,
        "fec_symbols_err_1_to_3": 12,
    }
    assert parse("fec", text) == found
    assert print_values("fec", found) == text


COUNTS = st.integers(0, 2**64 - 1)


@given(st.dictionaries(st.from_regex(r"[a-z\[][a-z0-9_\]\-]{0,20}", fullmatch=True), COUNTS, max_size=30))
def test_printed_statistics_are_read_back(found) -> None:
    assert parse_statistics(print_statistics(tuple(found), tuple(found.values()))) == (
        tuple(found),
        tuple(found.values()),
    )


@given(
    st.fixed_dictionaries(
        {},
        optional={name: st.integers(0, 1) for name in ("autonegotiate", "receive", "transmit")}
        | dict.fromkeys(("receive_frames", "transmit_frames", "transmit_storm_events"), COUNTS),
    )
)
def test_printed_pause_is_read_back(found) -> None:
    assert parse("pause", print_values("pause", found)) == found


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "speed": st.integers(0, 2**31).map(lambda megabits: megabits * 125_000),
            "lanes": st.integers(1, 8),
            "full_duplex": st.integers(0, 1),
            "up": st.integers(0, 1),
            "down_events": st.integers(0, 2**32 - 1),
        },
    )
)
def test_a_printed_link_is_read_back(found) -> None:
    assert parse("link", print_values("link", found)) == found


def test_private_flags_and_the_pfc_watchdogs_timeout() -> None:
    text = (
        "Private flags for eth2:\nrx_cqe_moder           : on\ndropless_rq: off\npfc-prevention-tout: 100\n"
    )
    found = {"flag_rx_cqe_moder": 1, "flag_dropless_rq": 0, "pfc_prevention_timeout": 100}
    assert parse("settings", text) == found
    assert parse("settings", print_values("settings", found)) == found


def test_a_number_of_thousands_of_digits_is_not_a_counter() -> None:
    """Python raises ValueError instead of converting one."""
    digits = "9" * 5000
    assert parse_statistics(f"a: {digits}\nb: 1\n") == (("b",), (1,))
    assert parse("pause", f"tx_pause_frames: {digits}\nRX: on\n") == {"receive": 1}
    assert parse("link", f"Speed: {digits}Mb/s\nLanes: {digits}\nLink Down Events: {digits}\n") == {}
    assert parse("settings", f"stats-block-usecs: {digits}\n") == {}
