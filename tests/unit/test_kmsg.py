"""Reading /dev/kmsg: every answer of the kernel, and what is left open."""

import errno
import os
from collections.abc import Callable

import pytest
from descriptors import is_open, open_below

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.kmsg import LiveKernelLog, LogHiddenError, LogPart, open_live_log
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.model import MOST_TEXT, LogRecord, decode_record


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def script(*answers: bytes | OSError) -> Callable[[int, int], bytes]:
    """Reads that return or raise these, one after another, and then have nothing new."""
    left = iter(answers)

    def read(_: int, size: int) -> bytes:
        answer = next(left, None) or error(errno.EAGAIN)
        if isinstance(answer, OSError):
            raise answer
        assert size >= len(answer)
        return answer

    return read


EPIPE = error(errno.EPIPE)


@pytest.mark.parametrize(
    ("answers", "most", "parts"),
    [
        ((b"1", b"2"), 10, [LogPart((b"1", b"2"), 0), LogPart((), 0)]),
        ((b"1", b"2", b"3"), 2, [LogPart((b"1", b"2"), 0), LogPart((b"3",), 0)]),
        ((b"1", EPIPE, b"9"), 10, [LogPart((b"1", b"9"), 1)]),
        ([EPIPE] * 50, 20, [LogPart((), 20)]),
    ],
    ids=["until there is no new one", "the most records", "an overrun", "overwritten faster than it is read"],
)
def test_what_one_read_returns(answers, most, parts) -> None:
    log = LiveKernelLog(-1, script(*answers))
    assert [log.read(most) for _ in parts] == parts


@pytest.mark.parametrize("answer", [error(errno.EIO), error(errno.EBADF), error(errno.ENXIO), b""])
def test_other_answers_are_failures(answer) -> None:
    reads = iter([answer])

    def read(_: int, __: int) -> bytes:
        found = next(reads)
        if isinstance(found, OSError):
            raise found
        return found

    with pytest.raises(OSError):  # noqa: PT011 - each of the errors above
        LiveKernelLog(-1, read).read(10)


@pytest.fixture
def node(tmp_path) -> str:
    """A regular file in place of the device node: it has positions, too."""
    place = tmp_path / "kmsg"
    place.write_bytes(b"6,1,1,-;text\n")
    return str(place)


def test_it_begins_at_the_end_or_at_the_begin_and_closes_what_it_opens(node) -> None:
    oldest = open_live_log(oldest=True, path=node)
    newest = open_live_log(oldest=False, path=node)
    # A file ends, which a log never does.
    with pytest.raises(OSError, match="no end"):
        newest.read(1)
    assert oldest.read(1) == LogPart((b"6,1,1,-;text\n",), 0)
    for log in (oldest, newest):
        log.close()
        log.close()
    assert not is_open(node)


def test_a_node_without_positions_is_closed_again(tmp_path) -> None:
    os.mkfifo(tmp_path / "kmsg")
    with pytest.raises(OSError, match="Illegal seek"):
        open_live_log(oldest=False, path=str(tmp_path / "kmsg"))
    assert open_below(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "hidden"),
    [(errno.EPERM, True), (errno.EACCES, True), (errno.ENOENT, True), (errno.ENXIO, False)],
)
def test_a_missing_privilege_is_hidden_and_not_broken(number, hidden, monkeypatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number), "/dev/kmsg")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match=r".") as caught:
        open_live_log(oldest=False)
    assert isinstance(caught.value, LogHiddenError) is hidden
    assert (caught.value.errno, caught.value.filename) == (number, "/dev/kmsg")


def test_the_log_of_this_kernel_is_not_that_of_another_host(tmp_path) -> None:
    with pytest.raises(Absent):
        LiveKernel(str(tmp_path)).open_kernel_log(oldest=False)


# Records of the log


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            b"3,160,424069,-;mlx5_core 0000:3b:00.0: text\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n",
            LogRecord(160, "mlx5_core 0000:3b:00.0: text", "0000:3b:00.0", 3),
        ),
        (b"6,0,1,-,caller=T1;text\n", LogRecord(0, "text", "")),
        (b"6,1,1,c,caller=C3,more=1;a;b\n", LogRecord(1, "a;b", "")),
        (b"6,2,1,-;no line end", LogRecord(2, "no line end", "")),
        (b"6,3,1,-;\n", LogRecord(3, "", "")),
        (b"4,4,1,-;eth0: text\n SUBSYSTEM=net\n DEVICE=n5\n", LogRecord(4, "eth0: text", "", 4)),
        (b"4,5,1,-;text\n DEVICE=+platform:rocelab.0\n", LogRecord(5, "text", "rocelab.0", 4)),
        (b"6,18446744073709551615,1,-;x\n", LogRecord(2**64 - 1, "x", "")),
        (b"6,6,1,-;\xff\n", LogRecord(6, "\N{REPLACEMENT CHARACTER}", "")),
        (b"6,7,1,-;" + b"a" * 5000 + b"\n", LogRecord(7, "a" * MOST_TEXT, "")),
    ],
)
def test_decode(raw, expected) -> None:
    assert decode_record(raw) == expected


@pytest.mark.parametrize("priority", [8 + 3, 12, 30, 1 << 3, 4095])
def test_what_a_process_has_written_has_no_text(priority) -> None:
    """Facility 0 is the kernel's own: /dev/kmsg refuses it to processes."""
    raw = f"{priority},9,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n".encode()
    assert decode_record(raw) == LogRecord(9, "", "")


@pytest.mark.parametrize(
    "raw", [b"", b"text", b"6,1;x", b"6,1,1;x", b",,,;", b"6,a,1,-;x", b"-6,1,1,-;x", b"6,1,1,-\n;x"]
)
def test_what_is_no_record(raw) -> None:
    assert decode_record(raw) is None


def test_a_tag_within_the_text_is_none() -> None:
    """The kernel escapes line ends in texts, so a tag cannot be forged by one."""
    found = decode_record(b"6,1,1,-;x\\x0a DEVICE=+pci:0000:3b:00.0\n")
    assert found == LogRecord(1, "x\\x0a DEVICE=+pci:0000:3b:00.0", "")
