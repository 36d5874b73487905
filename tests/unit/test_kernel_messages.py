"""The table of kernel messages: every row has a line that it matches, and every pattern is linear in time."""

import re
from re import _constants as codes
from re import _parser as parser
from typing import Any

import pytest
from kernel_log_lines import lines

from roce_exporter.catalog.kernel_events import EVENTS, FAILED_EVENTS, MESSAGES, KernelMessage, Severity
from roce_exporter.model import LogRecord
from roce_exporter.normalise import log_lines
from roce_exporter.normalise.log_lines import ERROR, UNKNOWN_ERROR, event_of, events_of, read_line

REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def line_of(text: str) -> log_lines.LogLine:
    line = read_line(LogRecord(1, text, "", ERROR))
    assert line is not None, text
    return line


def test_each_line_means_its_event() -> None:
    examples = list(lines())
    assert len(examples) > 100
    assert [(event_of(line_of(text)), text) for _, text in examples] == examples
    assert [text for _, text in examples if not {"eth0", "0000:3b:00.0"} & set(line_of(text).names)] == []


WARNINGS = """
mlx5_core 0000:3b:00.0: pages_work_handler:604:(pid 48120): give fail -12
mlx4_core 0000:3b:00.0: CQ overrun on CQN 0000a1
irdma 0000:3b:00.0 eth0: MTU setting [512] too low for RDMA traffic. Minimum MTU is 576 for IPv4
erdma_0: failed to deregister MR 0x3fb: -62
qede 0000:3b:00.0: queue 3 is stuck
mlx5_core 0000:3b:00.0: fwp_reclaim: fw returned 7, driver asked 3 => corruption
"""
HARMLESS = """
mlx5_core 0000:3b:00.0: print_health_info:387:(pid 0): synd 0x5: FFSER error
mlx5_core 0000:3b:00.0 eth0: failed to offload the filter
infiniband eth0: mlx5_handle_error_cqe:333:(pid 5771): WC error: 5, Message: Work Request Flushed Error
infiniband eth0: dump_cqe:272:(pid 5771): dump error cqe
infiniband eth0: SRQ limit reach.
mlx4_core 0000:3b:00.0: MLX4_CMD_MAD_IFC Get Module info attr(ff60) port(1) i2c_addr(51) offset(0) size(48): Response Mad Status(71c) - invalid I2C slave address
qede 0000:3b:00.0: device [1077:8070] error status/mask=00000041/00002000
qede 0000:3b:00.0: [ 6] BadTLP
ice 0000:3b:00.0 eth0: ICE OICR event notification: oicr = 0x10000003
ice 0000:3b:00.0: The DDP package failed to load, its version is not supported
cxgb4 0000:3b:00.0: 1 MC/MC0 correctable ECC data error
bnxt_en 0000:3b:00.0 eth0: Module part number AFBR-735SMZ
hns3 0000:3b:00.0: failed to reset VF(4)
hns3 0000:3b:00.0: CMDQ move tail from 840 to 839
"""


def test_a_warning_of_a_failure_without_a_row_is_a_weak_sign() -> None:
    """What drivers do without, what a program or a VF asked for, and what was corrected, is none."""
    found = [
        [(event_of(line), one) for one in block.split("\n") if (line := read_line(LogRecord(1, one, "", 4)))]
        for block in (WARNINGS, HARMLESS)
    ]
    assert {event for event, _ in found[0]} == {"driver_warning"}
    assert [one for one in found[1] if one[0]] == []
    assert [len(one) for one in found] == [6, 14]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("host_stalled", "watchdog: BUG: soft lockup - CPU#6 stuck for 22s! [ksoftirqd/6:39]"),
        ("host_stalled", "AMD-Vi: Completion-Wait loop timed out"),
        ("host_stalled", "DMAR: VT-d detected Invalidation Time-out Error: SID 3b00"),
        ("neighbours_full", "neighbour: arp_cache: neighbor table overflow!"),
        ("neighbours_full", "neighbour: ndisc_cache: neighbor table overflow!"),
    ],
)
def test_what_the_kernel_says_of_itself_concerns_all_devices(event, text) -> None:
    line = line_of(text)
    assert (line.names, event_of(line)) == ((log_lines.EVERY_DEVICE,), event)


def test_other_words_of_the_kernel_concern_no_device() -> None:
    assert read_line(LogRecord(1, "host: link down", "", 3)).names == ("host",) != (log_lines.EVERY_DEVICE,)
    assert read_line(LogRecord(1, "watchdog: NMI not fully supported", "", 4)).driver != log_lines.HOST


def test_every_row_is_the_first_to_match_one_of_the_lines() -> None:
    def first(line: log_lines.LogLine) -> KernelMessage | None:
        speaks = [one for one in MESSAGES if line.driver in one.drivers or not one.drivers]
        return next((one for one in speaks if re.match(one.pattern, line.text)), None)

    matched = {first(line_of(text)) for _, text in lines()}
    alone = ("driver_warning", "host_stalled", "neighbours_full")  # of warnings only, and of no device
    assert [one for one in MESSAGES if one not in matched and one.event not in alone] == []


def test_every_event_has_messages_and_every_message_an_event() -> None:
    names = [event.name for event in EVENTS]
    assert len(set(names)) == len(names)
    assert set(names) == {message.event for message in MESSAGES} | {UNKNOWN_ERROR}
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in names)
    order = list(Severity)
    assert [event.severity for event in EVENTS] == sorted(
        (event.severity for event in EVENTS), key=order.index
    )


def test_every_row_names_its_source() -> None:
    assert not [one for one in MESSAGES if not re.match(r"(drivers|kernel|net)/[\w/]+\.c\b", one.source)]


def repeats(pattern: Any) -> list[tuple[int, Any]]:
    """The upper bound and the repeated part of each repetition."""
    found = []
    for operation, argument in pattern:
        if operation in REPEATS:
            found.append((argument[1], argument[2]))
            found += repeats(argument[2])
        elif operation is codes.SUBPATTERN:
            found += repeats(argument[3])
        elif operation is codes.BRANCH:
            found += [one for branch in argument[1] for one in repeats(branch)]
    return found


def excessive(pattern: str, bound: int) -> list[int]:
    """The bounds of its repetitions that are too large or hold another repetition. An optional group is tried twice at most."""
    return [
        most for most, part in repeats(parser.parse(pattern)) if most > bound or (most > 1 and repeats(part))
    ]


def test_no_pattern_of_a_message_repeats_without_bound_or_nests_repetitions() -> None:
    patterns = {one.pattern for one in MESSAGES}
    assert sum(bool(repeats(parser.parse(pattern))) for pattern in patterns) > 20
    assert [pattern for pattern in patterns if excessive(pattern, 200)] == []


def test_heads_repeat_within_bounds_until_the_rest_of_the_line() -> None:
    """Their last part takes all that is left, once; nothing follows it that could fail."""
    heads = [form.pattern.partition("(?P<text>.*)") for form in log_lines._FORMS]
    assert len(heads) > 2
    assert [head for head, rest, end in heads if excessive(head, 64) or not rest or end] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mlx5_core 0000:3b:00.0 eth0 (unregistering): Link down", ("eth0", "0000:3b:00.0")),
        ("mlx5_core.sf mlx5_core.sf.4 eth7: Link down", ("eth7", "mlx5_core.sf.4")),
        ("infiniband mlx5_0: text", ("mlx5_0",)),
        ("[qed_hw_error_occurred:2775(sp-0-11:00.01)]text", ("0000:11:00.1",)),
    ],
)
def test_names_in_the_head_of_a_line(text, names) -> None:
    assert line_of(text).names == names


def test_the_tag_is_the_last_resort() -> None:
    line = read_line(LogRecord(1, "mlx5_core 0000:3b:00.0: text", "0000:3b:00.1"))
    assert line is not None
    assert line.names == ("0000:3b:00.0", "0000:3b:00.1")


@pytest.mark.parametrize(
    "text", ["", "Linux version 7.3", "00000000: 5a 00", "a b c d", "[mlx5(", "x" * 1024, ": " * 500]
)
def test_a_line_about_no_device_has_no_event(text) -> None:
    line = read_line(LogRecord(1, text, ""))
    assert line is None or event_of(line) == ""


def test_the_text_of_another_driver_is_not_matched() -> None:
    """`Link down` of a disk controller is not that of a port; a device of no interest is told by its names."""
    assert event_of(line_of("ahci 0000:3b:00.0: Link down")) == UNKNOWN_ERROR
    assert event_of(line_of("mlx5_core.sf mlx5_core.sf.4 eth7: Link down")) == "link_down"


def test_events_of_a_driver_contain_those_of_every_device() -> None:
    assert {"module_unplugged", "tx_timeout", "pcie_aer_uncorrectable"} <= events_of("mlx5_core")
    assert events_of("unknown") == {
        "recovery_failed",
        "tx_timeout",
        "pcie_unreachable",
        "pcie_aer_correctable",
        "pcie_aer_uncorrectable",
        "driver_error",
        "duplicate_address",
        "packet_damaged",
        "lag_unanswered",
        *(one.event for one in MESSAGES if one.source.startswith("drivers/base/core.c") and not one.drivers),
    }
    assert "device_removed" in events_of("pcieport")
    assert set(FAILED_EVENTS) & events_of("ionic") == {
        "firmware_fatal",
        "command_timeout",
        "recovery_failed",
        "pcie_aer_uncorrectable",
        "pcie_unreachable",
        "tx_timeout",
    }


def test_an_error_without_a_row_is_counted() -> None:
    """A text of another kernel is not silent, nor of any driver below an RDMA device; what is no error is left out."""
    text = "mlx5_core 0000:3b:00.0 eth0: a text of another kernel"
    found = [
        event_of(line)
        for level, one in ((3, text), (4, text), (3, text.replace("mlx5_core", "ixgbe")))
        if (line := read_line(LogRecord(1, one, "", level)))
    ]
    assert found == [UNKNOWN_ERROR, "", UNKNOWN_ERROR]


def test_an_error_without_a_row_that_says_what_does_not_work_is_an_error_of_the_device() -> None:
    said = {
        "Unable to reset the function": "driver_error",
        "the mailbox timed out": "command_timeout",
        "the unit timed out": "driver_error",
        "re-init of the client failed, ret = -16": "driver_error",
        "Reset never finished (0)": "driver_error",
        "the reset of the queue did not complete": "driver_error",
        "a non-fatal event of a queue": UNKNOWN_ERROR,
        "the query failed, which is not fatal": UNKNOWN_ERROR,
        "PTP reset failed, error: -110 (-ETIMEDOUT)": UNKNOWN_ERROR,
        "read of the transmit timestamp timed out": UNKNOWN_ERROR,
        "cannot set the link mode": UNKNOWN_ERROR,
    }
    for text, event in said.items():
        assert event_of(line_of(f"mlx5_core 0000:3b:00.0: {text}")) == event, text


def test_a_text_that_newer_kernels_also_use_for_warnings_counts_as_an_error_only() -> None:
    text = "mlx5_core 0000:3b:00.0: print_health_info:387:(pid 0): synd 0x5: FFSER error"
    levels = (3, 4, 6)
    found = [event_of(line) for level in levels if (line := read_line(LogRecord(1, text, "", level)))]
    assert found == ["health_syndrome", "", ""]
