"""Counters of real NICs during faults (`hardware/SOURCES.md`): what `check health` says first, and how soon."""

from collections import defaultdict

import pytest
from hardware_trials import APART, Trial, first_said, load_trials, said

TRIALS = load_trials()
SECOND = load_trials(2)
SCORED = [one for one in TRIALS if one.truth != "hidden"]
RIGHT_AT_FIRST = [one for one in SECOND if one.truth != "hidden" and not one.missed]
CONTROLS = {
    "congestion": {"rp_cnp_handled": 700, "np_cnp_sent": 300},
    "much congestion": {"rp_cnp_handled": 20_000, "np_cnp_sent": 9_000},
    "loss with NAKs": {"packet_seq_err": 400, "roce_adp_retrans": 9},
}
"""What real CNPs and loss look like on such a pair."""


def test_at_least_sixty_rows_have_a_truth_and_a_prediction() -> None:
    assert len(TRIALS) == len({one.key for one in TRIALS}) >= 60
    assert all(one.truth and one.predicted for one in TRIALS)


def test_the_rows_of_the_second_batch_are_others() -> None:
    assert len({one.key for one in (*TRIALS, *SECOND)}) == len(TRIALS) + len(SECOND)
    assert sum(one.truth != "hidden" for one in SECOND) >= 40
    assert all(one.truth and one.predicted for one in SECOND)


@pytest.mark.parametrize("trial", [*SCORED, *RIGHT_AT_FIRST], ids=lambda one: one.key)
async def test_what_is_said_first_is_right(trial) -> None:
    if not trial.within:
        first = await first_said(trial)
        assert trial.is_said(first, trial.truth), first
        return
    for seconds in range(0, int(trial.within) + 1, APART):
        first = await first_said(trial, seconds)
        if first is not None:
            break
    assert trial.is_said(first, trial.truth), first


@pytest.mark.parametrize("moved", CONTROLS.values(), ids=CONTROLS)
async def test_no_control_is_taken_for_a_silent_peer(moved) -> None:
    steps = tuple((0.0, name, delta) for name, delta in moved.items())
    trial = Trial("control", "none", "1", "requester", "", "nothing", "", "nothing", 60.0, steps, older=True)
    assert not {one.check for one in await said(trial)} & {
        "peer_silent",
        "retransmissions_uncounted",
        "retries_exceeded",
        "ack_timeouts",
    }


async def test_the_predictions_were_right_for_most() -> None:
    """One event is one finding, too: but for a driver whose counter of retries follows its error."""
    right: defaultdict[bool, int] = defaultdict(int)
    for trial in SCORED:
        findings = await said(trial)
        right[trial.is_said(next(iter(findings), None), trial.predicted)] += 1
        assert len(findings) <= 1 or trial.dataset in {"timeline", "counter_mapping"}, findings
    # Predicted for the time before the request ends; here it has ended.
    assert right[False] == sum(one.dataset == "ack_timeout_20" for one in SCORED)
