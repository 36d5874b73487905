"""Flags and the configuration file: the same keys, flags win, and every mistake is reported in one line that names it."""

import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from recorded import recording

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health import HEALTH
from roce_exporter.checks.settings import built_in
from roce_exporter.cli import flags, main
from roce_exporter.cli.options import OptionError, parse_options
from roce_exporter.cli.output import LEVELS
from roce_exporter.cli.parts import collect_settings, parts_of
from roce_exporter.collect.collector import Settings
from roce_exporter.fastloop import MODES, Pace
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.host import sources
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.host.simulated.world import VENDORS
from roce_exporter.host_sources.kernel_log import KERNEL_LOG
from roce_exporter.host_sources.namespace_helper import FOLDER
from roce_exporter.migrate import foreign
from roce_exporter.owners import OWNERS
from roce_exporter.web.application import LEAST_INTERVAL

RECORDING = recording("moving")


def config(folder: Path, text: str) -> str:
    (folder / "roce.yml").write_text(text)
    return f"--config.file={folder}/roce.yml"


def test_serve_is_the_default_command_and_the_value_of_a_flag_is_none() -> None:
    for argv in ([], ["--log.level=debug"], ["--log.level", "debug"], ["--sampler.mode", "off"]):
        assert parse_options(argv).command == "serve"
    assert parse_options(["--host.recording", "once", "explain", "once"]).name == "once"


@pytest.mark.parametrize(
    "argv",
    [
        ["once", "--log.level=debug", "--collect.timeout=3"],
        ["--log.level=debug", "once", "--collect.timeout=3"],
        ["--log.level", "debug", "--collect.timeout", "3", "once"],
        ["--collect.timeout=3", "--log.level", "debug", "once"],
    ],
)
def test_flags_may_come_before_the_command(argv) -> None:
    options = parse_options(argv)
    assert (options.command, options.log_level, options.collect_timeout) == ("once", "debug", 3.0)


def test_the_file_holds_the_same_keys(tmp_path) -> None:
    text = (
        "web.listen-address: ['127.0.0.1:1', '[::1]:2']\nweb.telemetry-path: /m\ndevice.exclude: mlx5_[0-3]\n"
        "source.disable: [counters, resources]\ncollect.timeout: 2.5\nlog.level: warn\n"
        "owners.limits: true\nowners.anonymous: false\n"
    )
    options = parse_options(["serve", config(tmp_path, text)])
    assert options.web_listen_address == ["127.0.0.1:1", "[::1]:2"]
    assert options.web_telemetry_path == "/m"
    assert (options.owners_limits, options.owners_anonymous) == (True, False)
    settings = collect_settings(options)
    assert settings.exclude.pattern == "mlx5_[0-3]"
    assert settings.disabled == {"counters", "resources"}
    assert settings.timeout == 2.5


def test_flags_win_over_the_file_also_where_a_key_may_be_repeated(tmp_path) -> None:
    file = config(tmp_path, "web.listen-address: [':1', ':2']\nlog.level: debug\n")
    options = parse_options(["serve", file, "--web.listen-address=:3", "--log.level", "error"])
    assert options.web_listen_address == [":3"]
    assert options.log_level == "error"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colect.timeout: 3\n", r":1: colect\.timeout: unknown key"),
        ("config.file: other.yml\n", r":1: config\.file: unknown key"),
        ("help: true\n", ":1: help: unknown key"),
        ("log.level: debug\ncollect.timeout: soon\n", ":2: .*'soon' is not a number of seconds"),
        ("collect.timeout: -1\n", ":1: .*'-1' is not a number"),
        ("collect.timeout: .inf\n", ":1: .*'.inf' is not a number"),
        ("log.level: loud\n", ":1: .*invalid choice: 'loud'"),
        ("owners.limits: perhaps\n", r":1: owners\.limits.*must be true or false"),
        ("log.level: [warn, info]\n", r":1: log\.level: is empty, or has several values and takes one"),
        ("host.recording: ''\n", r":1: host\.recording: is empty, or has several"),
        ("source.disable: [nothing]\n", ":1: .*invalid choice: 'nothing'"),
        ("device.include: 'mlx5_['\n", r":1: .*'mlx5_\[' is not a valid regular expression"),
        ("web.telemetry-path: metrics\n", ":1: .*'metrics' is no plain absolute path"),
        ("web.listen-address: {a: b}\n", r":1: web\.listen-address: has no single value; give it one"),
        ("log.level: debug\nlog.level: info\n", r":2: log\.level: is given twice; keep one"),
        ("- a\n- b\n", ":1: the file: is not a mapping"),
        ("a: [\n", ":2: is not YAML: .*; correct it"),
        ("\x00", "is not YAML: special characters are not allowed"),
        ("log.level:\n", r":1: log\.level: has no single value"),
        ("[" * 5000, ":1: is not YAML: it is nested more than 16 levels deep; correct it"),
        ("device.include: '" + "(" * 5000 + ")" * 5000 + "'\n", ":1: .* is not a valid regular expression"),
        ("device.include: a{4294967296}\n", ":1: .* is not a valid regular expression"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, text, message) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        parse_options(["serve", config(tmp_path, text)])
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["counters", "enable"], "counters was removed; iproute2 does it: rdma statistic qp set link"),
        (["plan", "--hosts=10"], "plan was removed; docs/operating.md"),
        (
            ["once", "--web.listen-address=:1"],
            "unrecognized arguments: --web.listen-address=:1; see roce-exporter once --help",
        ),
        (["once", "--host.simulate=no"], "(choose from "),
        (["demo", "--duration=0"], "'0' is not a number of seconds above 0"),
        (["once", "--device.include=("], "is not a valid regular expression"),
        (
            ["once", "--config.file=/no/such.yml"],
            "/no/such.yml: cannot be read: No such file or directory; check --config.file",
        ),
        (["once", "--host.recording=/no/such"], "recording /no/such: no such file or folder"),
        (["once", "--path.sysfs=/no/such"], "--path.sysfs=/no/such: no such folder"),
        (["once", "--host.recording=/a", "--path.sysfs=/b"], "name different hosts"),
        (["serve", f"--host.recording={RECORDING}", "--web.listen-address=nowhere"], "nowhere"),
        (["serve", "--web.config.file=/no/such.yml"], "/no/such.yml"),
        (["serve", "--metrics.exclude=roce_nothing"], "is not a metric of this version"),
        (["check", "--host.recording="], "--host.recording= is empty, as of a variable that is not set"),
        (["explain", "", "--host.simulate=quiet"], "an argument is empty"),
        (["capture", "--path.sysfs=/proc/self/fdinfo"], "nothing to record: no RDMA device"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, argv, message) -> None:
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.startswith("roce-exporter: ")
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.parametrize(
    ("before", "today", "line"),
    [
        (
            ["translate", "a", "--in-place"],
            ["tool", "translate", "a", "--in-place"],
            "is deprecated; use tool translate\n",
        ),
        (["namespaces"], ["tool", "namespaces"], "is deprecated; use tool namespaces\n"),
        (
            ["switches", "--config.file", "s.yml", "--web.config.file=w.yml"],
            [
                "serve",
                "--no-host",
                "--switches.config=s.yml",
                "--web.config.file=w.yml",
                "--web.listen-address=:10124",
            ],
            "is deprecated; use serve --no-host --switches.config=FILE\n",
        ),
        (
            [
                "--log.level=debug",
                "wire",
                "--interface=eth1",
                "--serve",
                "--top",
                "7",
                "--web.listen-address=:1",
            ],
            [
                "serve",
                "--no-host",
                "--log.level=debug",
                "--wire.interface=eth1",
                "--wire.top=7",
                "--web.listen-address=:1",
            ],
            "is deprecated; use serve --no-host --wire.interface=DEV\n",
        ),
        (
            ["wire", "-", "--serve"],
            ["serve", "--no-host", "--wire.file=-", "--web.listen-address=:10125"],
            "is deprecated; use serve --no-host --wire.interface=DEV\n",
        ),
    ],
)
def test_a_word_of_an_earlier_version_is_one_line_and_means_the_same(before, today, line, capsys) -> None:
    expected = parse_options(today)
    capsys.readouterr()
    assert parse_options(before) == expected
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "today", "line"),
    [
        (
            ["demo", "--demo.seconds", "3"],
            ["demo", "--duration=3"],
            "--demo.seconds is deprecated; use --duration",
        ),
        (["wire", "a", "--interface=b"], ["wire", "a", "--wire.interface=b"], "use --wire.interface"),
        (
            ["tool", "translate", "a", "--report=json"],
            ["tool", "translate", "a", "--format=json"],
            "use --format",
        ),
        (
            ["serve", "--owners.load=5"],
            ["serve", "--config.file=FILE"],
            "use its key in the file of --config.file",
        ),
    ],
)
def test_a_flag_of_an_earlier_version_is_one_line_and_means_the_same(
    before, today, line, tmp_path, capsys
) -> None:
    file = config(tmp_path, "owners.load: 5\n")
    expected = vars(parse_options([file if word == "--config.file=FILE" else word for word in today]))
    assert capsys.readouterr().err == ""
    old = vars(parse_options(before))
    assert {**old, "config_file": ""} == {**expected, "config_file": ""}
    told = capsys.readouterr().err
    assert line in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["tool"], "the following arguments are required: {translate,namespaces,otel-config}"),
        (["tool", "hammer"], "invalid choice: 'hammer'"),
        (["serve", "--no-host"], "--no-host leaves nothing to serve"),
        (["serve", "--no-host", "--switches.config=/no/such.yml"], "/no/such.yml: cannot be read"),
        (["serve", "--no-host", "--wire.interface=nosuchdevice0"], "nosuchdevice0"),
    ],
)
def test_a_part_that_cannot_be_served_is_one_line(argv, message, capsys) -> None:
    assert main(argv) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_help_and_version_are_no_mistakes(capsys) -> None:
    for argv in (["--help"], ["--version"], ["explain", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(argv)
        assert caught.value.code == 0
    assert "roce-exporter 0." in capsys.readouterr().out


def test_the_fast_loop_is_set_by_flags() -> None:
    options = parse_options(
        ["serve", "--sampler.mode=fixed", "--sampler.interval=0.2", "--sampler.detection-time=1"]
    )
    pace, limits = parts_of(options).pace, parts_of(options).storms
    assert pace is not None
    assert (pace.mode, pace.interval, pace.idle) == ("fixed", 0.2, 1.0)
    assert (limits.detect, limits.restore) == (1.0, 2.0)
    assert parts_of(parse_options(["serve", "--sampler.restoration-time=3"])).storms.restore == 3.0


def test_a_recording_is_static_and_has_no_fast_loop() -> None:
    assert parts_of(parse_options(["serve", f"--host.recording={RECORDING}"])).pace is None
    assert parts_of(parse_options(["serve", "--host.simulate=quiet"])).pace == Pace("adaptive")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sampler.interval=0.01"], "--sampler.interval: '0.01' is not a number of seconds from 0.05 to 1"),
        (["--sampler.detection-time=20"], "'20' is not a number of seconds from 0.2 to 10"),
        (["--sampler.restoration-time=0.01"], "'0.01' is not a number of seconds from 0.1 to 60"),
        (["--sampler.interval=0.5"], "shorter than two sampling intervals; use at least 1"),
        (["--sampler.mode=always"], "invalid choice"),
        (["--host.simulate=meltdown"], "invalid choice"),
        (["--host.simulate=quiet", "--path.sysfs=/tmp"], "name different hosts"),
        (["--host.simulate=quiet", "--host.simulate-ports=mlx6"], "no vendor 'mlx6'"),
        (["--host.simulate=quiet", "--host.simulate-ports=" + ",".join(["mlx5"] * 17)], "1 to 16"),
    ],
)
def test_a_mistake_about_watching_is_one_line(flags, message, capsys) -> None:
    assert main(["serve", "--web.listen-address=127.0.0.1:0", *flags]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") - told.count("is deprecated") == 1


def test_defaults_and_choices_are_those_of_the_parts() -> None:
    """The table has literals, so that a command imports no part of another one."""
    options = parse_options(["serve"])
    parts = (sources.NAMES, (OWNERS, KERNEL_LOG, HEALTH))
    assert tuple(chain(*parts)) == flags.SOURCES
    assert (tuple(SCENARIOS), VENDORS) == (flags.SCENARIOS, flags.VENDORS)
    assert built_in() == flags.PROFILES
    assert tuple(LEVELS) == flags.LOG_LEVELS
    assert collect_settings(options) == Settings(least=LEAST_INTERVAL)
    assert (parts_of(options).pace, parts_of(options).storms) == (Pace(), StormLimits())
    assert tuple(sorted(foreign.EXPORTERS)) == flags.EXPORTERS
    choices = {flag.name: flag.choices for flag in flags.FLAGS if flag.choices}
    assert choices["--sampler.mode"] == MODES
    assert choices["--metrics.set"] == tuple(one.value for one in MetricSet)
    assert parse_options(["tool", "namespaces"]).namespaces_folder == FOLDER


def test_a_name_in_the_help_is_never_broken_at_a_hyphen(monkeypatch, capsys) -> None:
    for columns in range(60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit):
            main(["once", "--help"])
        assert "lossy-path" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "most", "rooms"),
    [
        (["--version"], 20, {"collect", "catalog", "host", "web"}),
        (["wire", "--help"], 20, {"collect", "catalog", "host", "web"}),
        (["wire", "/no/such.pcap"], 100, {"checks", "fastloop", "owners", "switches", "web"}),
        (
            ["serve", "--no-host", "--switches.config=/no/such.yml"],
            110,
            {"checks", "fastloop", "owners", "wire"},
        ),
    ],
)
def test_a_command_imports_only_what_it_needs(argv, most, rooms) -> None:
    code = "import sys; from roce_exporter.cli import main\ntry: main(sys.argv[1:])\nfinally: print(*sys.modules, file=sys.stderr)"
    found = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    ours = [name.split(".") for name in found.stderr.split() if name.startswith("roce_exporter")]
    assert len(ours) <= most
    assert not rooms & {name[1] for name in ours if name[1:]}


def test_a_daemon_does_not_import_what_only_a_feature_needs() -> None:
    """Each of these costs a third to two thirds of a megabyte."""
    code = "import sys; import roce_exporter.assemble, roce_exporter.cli.serve; from roce_exporter.web.server import listening_socket; listening_socket('localhost:0').close(); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"bcrypt", "decimal", "zipfile", "encodings.idna"} & {*found.stdout.split()}
