"""The flags of the survey, their keys in the configuration file, and what they do to a surveyor."""

import pytest
from owner_fakes import FakeHost

from roce_exporter.assemble import assemble
from roce_exporter.cli import main
from roce_exporter.cli.options import OptionError, parse_options
from roce_exporter.cli.parts import parts_of
from roce_exporter.owners import SurveyLimits, Surveyor


def limits(*argv: str) -> SurveyLimits:
    kernel = FakeHost()
    kernel.with_cached_names = lambda: kernel  # type: ignore[attr-defined]
    surveyor = assemble(kernel, parts_of(parse_options(argv))).part(Surveyor)  # type: ignore[arg-type]
    assert surveyor is not None
    return surveyor.limits


def test_every_flag_sets_its_limit() -> None:
    given = limits(
        "serve",
        "--owners.interval=30",
        "--owners.most=5",
        "--owners.peers=3",
        "--owners.load=0.5",
        "--owners.anonymous",
        "--collect.timeout=3",
    )
    assert given == SurveyLimits(30, 5, 3, 0.005, True, 3)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--owners.interval=0", "from 1 to 86400"),
        ("--owners.interval=soon", "from 1 to 86400"),
        ("--owners.most=0", "from 1 to 1000"),
        ("--owners.most=1001", "from 1 to 1000"),
        ("--owners.peers=x", "from 1 to 1000"),
        ("--owners.load=0", "percentage from 0.1 to 100"),
        ("--owners.load=101", "percentage from 0.1 to 100"),
        ("--owners.load=nan", "percentage from 0.1 to 100"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(flag, message) -> None:
    with pytest.raises(OptionError, match=message) as refused:
        parse_options(["serve", flag])
    assert flag.partition("=")[0] in str(refused.value)


def test_once_without_the_source_has_no_owners(capsys) -> None:
    assert main(["once", "--host.simulate=quiet", "--source.disable=owners"]) == 0
    assert "owner" not in capsys.readouterr().out
