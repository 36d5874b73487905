"""The tests run against the installed package: the built wheel, with its command, its types and nothing else."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import roce_exporter

PACKAGE = Path(roce_exporter.__file__).parent
CHECKOUT = Path(__file__).parents[2] / "roce_exporter"


def test_the_tests_run_against_the_installed_wheel() -> None:
    if os.environ.get("CI") != "true" and PACKAGE == CHECKOUT:
        pytest.skip("run by hand in the checkout; tests/run.sh installs the wheel")
    assert PACKAGE != CHECKOUT
    assert PACKAGE.parent.name == "site-packages"


def test_the_wheel_holds_the_package_and_its_types_and_no_tests() -> None:
    if PACKAGE == CHECKOUT:
        pytest.skip("run by hand in the checkout; tests/run.sh installs the wheel")
    assert (PACKAGE / "py.typed").exists()
    tops = {file.parts[0] for file in metadata.files("roce-exporter") or () if file.suffix == ".py"}
    assert tops == {"roce_exporter"}
    wanted = {place.relative_to(CHECKOUT) for place in CHECKOUT.rglob("*.py")}
    assert wanted == {place.relative_to(PACKAGE) for place in PACKAGE.rglob("*.py")}


def test_the_command_prints_the_packages_version() -> None:
    command = Path(sys.executable).with_name("roce-exporter")
    for argv in ([str(command)], [sys.executable, "-m", "roce_exporter"]):
        answer = subprocess.run([*argv, "--version"], capture_output=True, text=True, check=True)
        assert answer.stdout == f"roce-exporter {metadata.version('roce-exporter')}\n"
    assert roce_exporter.__version__ == metadata.version("roce-exporter")
