"""Profiles: those of the package are valid, a site's own may extend one, and invalid ones are refused with their line."""

import re
from pathlib import Path

import pytest

from roce_exporter.checks.settings import ProfileError, load_profile
from roce_exporter.checks.settings import profile as profile_module
from roce_exporter.checks.settings.port_settings import expected_tos
from roce_exporter.cli.options import parse_options
from roce_exporter.errors import UserError


def site(folder: Path, text: str) -> str:
    place = folder / "site.yml"
    place.write_text(text)
    return str(place)


def test_the_table_of_keys_is_complete() -> None:
    table = (
        (Path(profile_module.__file__).parent / "profiles/README.md")
        .read_text()
        .split("| key |")[1]
        .split("\n\n")[0]
    )
    keys = {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.partition(" | ")[0])}
    assert keys == profile_module._RULES.keys()


def test_marks_are_required_where_ecn_is_on() -> None:
    assert expected_tos(load_profile("nvidia-lossless")) == 106
    assert expected_tos(load_profile("pfc-only")) == 104
    assert expected_tos(load_profile("auto")) is None


def test_a_site_changes_single_keys_of_a_profile(tmp_path) -> None:
    profile = load_profile(site(tmp_path, "extends: nvidia-lossless\ncable_metres: 100\nroce_dscp: 24\n"))
    assert (profile.cable_metres, profile.roce_dscp) == (100, 24)
    assert profile.cnp_priority == 6
    assert profile.name.endswith("site.yml")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("# a\n\nroce_dscp: 64\n", 3, "roce_dscp is 64, not a whole number from 0 to 63"),
        ("cnp_dscp: -1\n", 1, "cnp_dscp is -1, not a whole number from 0 to 63"),
        ("ecn: true\nroce_priority: 8\n", 2, "roce_priority is 8, not a whole number from 0 to 7"),
        (
            "lossless_priorities: [3, 8]\n",
            1,
            "lossless_priorities is [3, 8], not a list of different priorities",
        ),
        (
            "lossless_priorities: [3, 3]\n",
            1,
            "lossless_priorities is [3, 3], not a list of different priorities",
        ),
        ("lossless_priorities: 3\n", 1, "lossless_priorities is 3, not a list of different priorities"),
        ("roce_dscp: true\n", 1, "roce_dscp is True, not a whole number"),
        ("roce_dscp: 26.0\n", 1, "roce_dscp is 26.0, not a whole number"),
        ('trust: "vlan"\n', 1, "trust is 'vlan', not dscp or pcp"),
        ("rdma_mtu: 1500\n", 1, "rdma_mtu is 1500, not one of 4096, 2048, 1024, 512, 256"),
        ("roce_version: true\n", 1, "roce_version is True, not 1 or 2"),
        ("ecn: 1\n", 1, "ecn is 1, not true or false"),
        (
            "pfc_prevention: 79\n",
            1,
            "pfc_prevention is 79, not a whole number of milliseconds from 80 to 8000",
        ),
        ("\ndcscp: 26\n", 2, "unknown key 'dcscp'; keys are adaptive_retransmission, "),
        ("ecn: true\npfc:\n  priority: 3\n", 2, "unknown key 'pfc'"),
        ("a.b: 1\n", 1, "unknown key 'a.b'"),
        ("trust: yes\n", 1, "trust is True, not dscp or pcp"),
        (
            "ecn: true\nroce_priority: 4\nlossless_priorities: [3]\n",
            2,
            "roce_priority 4 is not one of lossless_priorities [3]",
        ),
        ("cnp_priority: 3\nlossless_priorities: [3]\n", 1, "cnp_priority 3 is lossless"),
    ],
)
def test_an_invalid_value_is_refused_with_its_line(tmp_path, text, line, said) -> None:
    file = site(tmp_path, text)
    with pytest.raises(ProfileError, match=re.escape(f"profile {file} line {line}: {said}")) as refusal:
        load_profile(file)
    assert "\n" not in str(refusal.value)


def test_changed_keys_must_agree_with_the_extended_profile(tmp_path) -> None:
    file = site(tmp_path, "extends: nvidia-lossless\n\nlossless_priorities: [6]\n")
    with pytest.raises(ProfileError, match=re.escape(f"profile {file} line 3: ")):
        load_profile(file)


def test_an_unknown_profile_is_refused_with_the_known_ones(tmp_path) -> None:
    with pytest.raises(
        ProfileError, match=r"profile nvidia: there is no such profile; give one of amd-pollara, "
    ):
        load_profile("nvidia")
    with pytest.raises(
        UserError, match=r"none\.yml: cannot be read: No such file or directory; check --audit.profile"
    ):
        load_profile(str(tmp_path / "none.yml"))


@pytest.mark.parametrize(
    ("suffix", "content", "said"),
    [
        ("yml", b"ecn: true\nroce_dscp: [\n", r"site\.yml:3: is not YAML"),
        ("yml", b"roce_dscp: " + b"[" * 5000, "nested more than"),
        ("yml", b"roce_dscp: " + b"9" * 5000, "site.yml:1: roce_dscp: is not a plain value"),
        ("yml", b"roce_dscp: !!bool maybe", "site.yml:1: roce_dscp: is not a plain value"),
        (
            "yml",
            b"switch_ports: !!python/name:os.system x\n",
            "site.yml:1: switch_ports: is not a plain value",
        ),
        ("yml", b"- ecn\n", "is not a mapping"),
        ("yml", b"ecn: true\necn: false\n", "site.yml:2: ecn: is given twice"),
        ("yml", b"extends: nvidia\n", "there is no such profile"),
        ("yml", b"\xff\xfe\x00", "not UTF-8 text"),
        ("yml", b"extends: FILE\n", "extend one another; remove the cycle"),
        ("toml", b"ecn = true\nroce_dscp = \n", r"not TOML: .*line 2"),
        ("toml", b"roce_dscp = " + b"9" * 5000, "not TOML: "),
        ("toml", b"ecn = true\n\nroce_dscp = 64\n", "line 3: roce_dscp is 64, not a whole number"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path, suffix, content, said) -> None:
    file = tmp_path / f"site.{suffix}"
    file.write_bytes(content.replace(b"FILE", bytes(file)))
    with pytest.raises(UserError, match=said) as refusal:
        load_profile(str(file))
    assert "\n" not in str(refusal.value)


def test_a_profile_of_an_earlier_version_still_works(tmp_path, capsys) -> None:
    old, new = tmp_path / "site.toml", tmp_path / "site.yml"
    old.write_text('extends = "nvidia-lossless"\nname = "ours"\nlossless_priorities = [3]\nroce_dscp = 24\n')
    new.write_text("extends: nvidia-lossless\nname: ours\nlossless_priorities: [3]\nroce_dscp: 24\n")
    assert load_profile(str(old)) == load_profile(str(new))
    parse_options(["serve", f"--audit.profile={new}"])
    assert capsys.readouterr().err == ""
    parse_options(["serve", f"--audit.profile={old}"])
    assert (
        capsys.readouterr().err
        == "roce-exporter: profiles in TOML are deprecated; use YAML: `key: value` per line\n"
    )
