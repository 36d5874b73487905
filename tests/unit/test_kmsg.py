"""Reading /dev/kmsg: every answer of the kernel, and what is left open."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from descriptors import open_descriptors

from roce_exporter.kernel import Absent
from roce_exporter.kernel.kmsg import LiveKernelLog, LogHiddenError, LogPart, open_live_log
from roce_exporter.kernel.live import LiveKernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


def test_records_are_read_until_there_is_no_new_one() -> None:
    log = LiveKernelLog(-1, script(b"1", b"2"))
    assert log.read(10) == LogPart((b"1", b"2"), 0)
    assert log.read(10) == LogPart((), 0)


def test_a_read_ends_after_the_most_records() -> None:
    log = LiveKernelLog(-1, script(b"1", b"2", b"3"))
    assert log.read(2) == LogPart((b"1", b"2"), 0)
    assert log.read(2) == LogPart((b"3",), 0)


def test_an_overrun_is_counted_and_reading_continues() -> None:
    log = LiveKernelLog(-1, script(b"1", error(errno.EPIPE), b"9"))
    assert log.read(10) == LogPart((b"1", b"9"), 1)


def test_a_log_that_is_overwritten_faster_than_it_is_read_holds_no_thread() -> None:
    log = LiveKernelLog(-1, script(*[error(errno.EPIPE)] * 50))
    assert log.read(20) == LogPart((), 20)


@pytest.mark.parametrize("answer", [error(errno.EIO), error(errno.EBADF), error(errno.ENXIO), b""])
def test_other_answers_are_failures(answer: bytes | OSError) -> None:
    reads = iter([answer])

    def read(_: int, __: int) -> bytes:
        found = next(reads)
        if isinstance(found, OSError):
            raise found
        return found

    with pytest.raises(OSError):  # noqa: PT011 - each of the errors above
        LiveKernelLog(-1, read).read(10)


@pytest.fixture
def node(tmp_path: Path) -> str:
    """A regular file in place of the device node: it has positions, too."""
    place = tmp_path / "kmsg"
    place.write_bytes(b"6,1,1,-;text\n")
    return str(place)


def test_it_begins_at_the_end_or_at_the_begin_and_closes_what_it_opens(node: str) -> None:
    before = open_descriptors()
    oldest = open_live_log(oldest=True, path=node)
    newest = open_live_log(oldest=False, path=node)
    # A file ends, which a log never does.
    with pytest.raises(OSError, match="no end"):
        newest.read(1)
    assert oldest.read(1) == LogPart((b"6,1,1,-;text\n",), 0)
    for log in (oldest, newest):
        log.close()
        log.close()
    assert open_descriptors() == before


def test_a_node_without_positions_is_closed_again(tmp_path: Path) -> None:
    before = open_descriptors()
    os.mkfifo(tmp_path / "kmsg")
    with pytest.raises(OSError, match="Illegal seek"):
        open_live_log(oldest=False, path=str(tmp_path / "kmsg"))
    assert open_descriptors() == before


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOENT])
def test_a_missing_privilege_is_hidden_and_not_broken(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise error(number)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LogHiddenError) as caught:
        open_live_log(oldest=False)
    assert (caught.value.errno, caught.value.filename) == (number, "/dev/kmsg")


def test_another_error_of_open_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise error(errno.ENXIO)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="No such device") as caught:
        open_live_log(oldest=False)
    assert not isinstance(caught.value, LogHiddenError)


def test_the_log_of_this_kernel_is_not_that_of_another_host(tmp_path: Path) -> None:
    with pytest.raises(Absent):
        LiveKernel(str(tmp_path)).open_kernel_log(oldest=False)
