"""The log of the kernel that runs the tests, where it may be read; nothing is written to it."""

import pytest

from roce_exporter.host.kernel.kmsg import LogHiddenError, open_live_log
from roce_exporter.model import decode_record

pytestmark = pytest.mark.ci


def test_every_record_of_this_kernel_is_decoded_in_order() -> None:
    try:
        log = open_live_log(oldest=True)
    except LogHiddenError as error:
        pytest.skip(f"/dev/kmsg: {error.strerror}")
    part = log.read(5000)
    log.close()
    if not part.records:
        pytest.skip("the log is empty")
    records = [decode_record(raw) for raw in part.records]
    numbers = [record.sequence for record in records if record]
    assert len(numbers) == len(part.records)
    assert numbers == sorted(set(numbers))
    if not part.overruns:
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_log_that_is_opened_at_its_end_has_no_old_record() -> None:
    try:
        newest, oldest = open_live_log(oldest=False), open_live_log(oldest=True)
    except LogHiddenError as error:
        pytest.skip(f"/dev/kmsg: {error.strerror}")
    before = [decode_record(raw) for raw in oldest.read(100_000).records]
    since = [decode_record(raw) for raw in newest.read(100_000).records]
    newest.close()
    oldest.close()
    assert all(record.sequence > before[0].sequence for record in since if record and before and before[0])
    assert len(since) < len(before)
