"""Every alert: it fires at this time, with these labels and texts, for the faulty host alone; it ends; and it fires for nothing less."""

import pytest
from alert_checks import problems, run_case
from alert_scenario import CASES
from mutants.rules import main

pytestmark = pytest.mark.usefixtures("promtool")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_case_fires_as_it_must(case, tmp_path) -> None:
    assert not list(problems(case, run_case(tmp_path, case)))


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_nearly_all_breaks_of_the_rules_are_noticed() -> None:
    """Thousands of runs of promtool."""
    assert main() == 0
