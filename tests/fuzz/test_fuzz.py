"""Every decoder accepts every input of its corpus, and some thousand new inputs that are guided by coverage."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import fuzz_targets
import pytest
from tools import lacking

HERE = Path(__file__).parent
RUNS = {"config_file": 200, "web_config_file": 500, "http_head": 2_000, "recording": 2_000, "translate": 500}
"""Inputs of the slow decoders, about a second's worth. Longer runs: `make fuzz`."""
OTHER_RUNS = 2_000
LARGEST = 20_480
"""Largest input of a corpus in bytes."""


@pytest.mark.parametrize("name", fuzz_targets.NAMES)
def test_the_corpus_is_decoded(name) -> None:
    inputs = fuzz_targets.corpus(name)
    assert inputs
    decode = fuzz_targets.load(name).decode
    for one, content in inputs.items():
        assert len(content) <= LARGEST, one
        try:
            decode(content)
        except Exception as error:  # noqa: BLE001 - any exception at all is a finding
            pytest.fail(f"{one}: {error!r}")


@pytest.mark.parametrize("name", fuzz_targets.NAMES)
def test_the_modules_that_count_as_covered_exist(name) -> None:
    package = Path(str(importlib.util.find_spec("roce_exporter").submodule_search_locations[0]))
    assert all((package / file).is_file() for file in fuzz_targets.load(name).core)


def test_every_corpus_has_a_target() -> None:
    assert sorted(file.stem for file in fuzz_targets.CORPUS.iterdir()) == sorted(fuzz_targets.NAMES)


@pytest.mark.nightly
@pytest.mark.parametrize("name", fuzz_targets.NAMES)
def test_new_inputs_find_nothing(name, tmp_path) -> None:
    """The seed is fixed, and so is the number of inputs: every run tries the same ones."""
    if not importlib.util.find_spec("atheris"):
        lacking("atheris is not installed (pip install '.[fuzz]')")
    command = [sys.executable, str(HERE / "fuzz.py"), name, f"--runs={RUNS.get(name, OTHER_RUNS)}"]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
    assert "stat::number_of_executed_units" in ran.stderr
