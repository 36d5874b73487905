"""Records of /dev/kmsg: Documentation/ABI/testing/dev-kmsg."""

from __future__ import annotations

import pytest

from roce_exporter.kernel_log_record import MOST_TEXT, LogRecord, decode_record


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            b"3,160,424069,-;mlx5_core 0000:3b:00.0: text\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n",
            LogRecord(160, "mlx5_core 0000:3b:00.0: text", "0000:3b:00.0"),
        ),
        (b"6,0,1,-,caller=T1;text\n", LogRecord(0, "text", "")),
        (b"6,1,1,c,caller=C3,more=1;a;b\n", LogRecord(1, "a;b", "")),
        (b"6,2,1,-;no line end", LogRecord(2, "no line end", "")),
        (b"6,3,1,-;\n", LogRecord(3, "", "")),
        (b"4,4,1,-;eth0: text\n SUBSYSTEM=net\n DEVICE=n5\n", LogRecord(4, "eth0: text", "")),
        (b"4,5,1,-;text\n DEVICE=+platform:rocelab.0\n", LogRecord(5, "text", "rocelab.0")),
        (b"6,18446744073709551615,1,-;x\n", LogRecord(2**64 - 1, "x", "")),
        (b"6,6,1,-;\xff\n", LogRecord(6, "\N{REPLACEMENT CHARACTER}", "")),
        (b"6,7,1,-;" + b"a" * 5000 + b"\n", LogRecord(7, "a" * MOST_TEXT, "")),
    ],
)
def test_decode(raw: bytes, expected: LogRecord) -> None:
    assert decode_record(raw) == expected


@pytest.mark.parametrize("priority", [8 + 3, 12, 30, 1 << 3, 4095])
def test_what_a_process_has_written_has_no_text(priority: int) -> None:
    """Facility 0 is the kernel's own: /dev/kmsg refuses it to processes."""
    raw = f"{priority},9,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n".encode()
    assert decode_record(raw) == LogRecord(9, "", "")


@pytest.mark.parametrize(
    "raw", [b"", b"text", b"6,1;x", b"6,1,1;x", b",,,;", b"6,a,1,-;x", b"-6,1,1,-;x", b"6,1,1,-\n;x"]
)
def test_what_is_no_record(raw: bytes) -> None:
    assert decode_record(raw) is None


def test_a_tag_within_the_text_is_none() -> None:
    """The kernel escapes line ends in texts, so a tag cannot be forged by one."""
    found = decode_record(b"6,1,1,-;x\\x0a DEVICE=+pci:0000:3b:00.0\n")
    assert found == LogRecord(1, "x\\x0a DEVICE=+pci:0000:3b:00.0", "")
