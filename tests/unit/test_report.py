"""The text of a report: ports with the same fault are one block, in ascending order, with the numbers of all of them."""

from dataclasses import replace

from roce_exporter.checks.finding import Finding, Report, Status, Topic, joined
from roce_exporter.checks.health.causes import NAMED
from roce_exporter.checks.report import document, text


def marked(number: int, ratio: str, cnps: str, harm: float = 9.0) -> Finding:
    return NAMED["incast"].finding(
        f"mlx5_{number}",
        "1",
        (f"{ratio} % of the packets received were marked within 5 min", f"{cnps} CNPs sent within 5 min"),
        netdev=f"eth{number}",
        since=1000.0 + number,
        harm=harm,
    )


FOUR = (marked(10, "2.06", "1,500", 9.4), marked(2, "2.02", "15,871", 9.3), marked(3, "2.02", "900", 9.2))


def test_ports_with_one_fault_are_one_block() -> None:
    said = text(Report(FOUR), "A host", width=120)
    assert "mlx5_2 port 1 (eth2), mlx5_3 port 1 (eth3), mlx5_10 port 1 (eth10)" in said
    assert said.count("(incast)") == 1
    assert "2.02 to 2.06 % of the packets received were marked within 5 min" in said
    assert "900 to 15,871 CNPs sent within 5 min" in said
    assert "since 00:16:42 UTC" in said
    assert "check which senders share the path\n" in said
    assert "grep -e ecn -e cnp (likewise on the other ports)" in said
    two = [replace(FOUR[0], device="mlx5_0", port=port, netdev="") for port in "12"]
    assert text(Report((*two,)), "A host").splitlines()[2] == "mlx5_0 ports 1, 2"


def test_the_document_has_every_port() -> None:
    found = document(Report(FOUR), "A host", None)["findings"]
    assert [(one["device"], one["evidence"]) for one in found] == [
        (one.device, list(one.evidence)) for one in FOUR
    ]


def test_other_words_are_a_line_per_port() -> None:
    other = replace(FOUR[1], evidence=("a capture saw CNPs of this port to 5 senders",))
    said = text(Report((FOUR[0], other)), "A host", width=120)
    assert "mlx5_2/1: a capture saw CNPs of this port to 5 senders" in said
    assert "mlx5_10/1: 2.06 % of the packets received were marked within 5 min\n" in said
    assert "mlx5_10/1: 1,500 CNPs sent within 5 min\n" in said


def test_what_all_ports_say_is_one_line_and_the_rest_a_line_per_port() -> None:
    """A device has no port to name."""
    more = replace(FOUR[1], port="", evidence=(*FOUR[1].evidence, "the port is slow"))
    said = text(Report((replace(FOUR[0], port=""), more)), "A host", width=120)
    assert "2.02 to 2.06 % of the packets received were marked within 5 min\n" in said
    assert "  mlx5_2: the port is slow\n" in said


def test_the_last_line_counts_notes_apart_and_names_the_flag_that_shortens() -> None:
    right = replace(FOUR[0], topic=Topic.SETTINGS, status=Status.OK, evidence=())
    report = Report(
        (replace(FOUR[0], status=Status.DEGRADED), replace(FOUR[1], status=Status.OK), *[right] * 20)
    )
    assert text(report, "A host").endswith("\n1 degraded, 1 note, 20 ok (--failed leaves these out).\n")
    assert text(report, "A host", failed=True).endswith("\n1 degraded, 1 note, 20 ok.\n")
    fit = Report(tuple(one for one in report.findings if not one.is_wrong))
    assert text(fit, "A host").endswith("\nNothing needs action: 1 note, 20 ok.\n")
    nothing = text(Report((), fine=("driver", "link")), "A host")
    assert nothing == "A host\n\nFine: driver, link.\n\nNothing wrong was found.\n"


def test_what_a_port_says_twice_in_the_same_words_stays_two_lines() -> None:
    twice = [
        replace(one, evidence=("queue 3 dropped 5 packets", "queue 4 dropped 6 packets")) for one in FOUR
    ]
    said = text(Report((*twice,)), "A host", width=120)
    assert "queue 3 dropped 5 packets\n" in said
    assert "queue 4 dropped 6 packets\n" in said


def test_numbers_of_names_are_no_ranges() -> None:
    paused = [replace(one, evidence=(f"priority {one.device[-1]} was paused for 3 %",)) for one in FOUR]
    said = text(Report((*paused,)), "A host", width=120)
    assert "mlx5_2/1: priority 2 was paused for 3 %" in said


def test_another_side_or_health_is_a_block_of_its_own() -> None:
    for other in (
        replace(FOUR[1], side=NAMED["too_hot"].side),
        replace(FOUR[1], status=NAMED["too_hot"].health),
    ):
        assert text(Report((FOUR[0], other)), "A host").count("(incast)") == 2


def test_the_consequences_of_each_port_are_said_once() -> None:
    """Where only one port has one, it is a line of the block, too."""
    paused = NAMED["pause_received"].finding(
        "mlx5_3", "1", ("priority 3 was paused for 6 % of 5 min",), harm=8.0
    )
    follows = replace(paused, netdev="eth3", caused_by=("incast",))
    said = text(Report((*FOUR, follows)), "A host", width=200)
    assert said.endswith("\n1 degraded, 3 notes.\n")
    wrong = Report((*(replace(one, status=Status.DEGRADED) for one in FOUR), follows))
    assert text(wrong, "A host").endswith("\n3 degraded with 1 consequence.\n")
    noted = Report((*wrong.findings[:-1], replace(follows, status=Status.OK)))
    assert text(noted, "A host").endswith("\n3 degraded with 1 consequence.\n"), "a line of `also`, too"
    assert "also      The switch pauses this host" in text(wrong, "A host")
    assert said.count("priority 3 was paused for 6 % of 5 min") == 1
    assert said.count("(incast)") == 1


def test_ports_without_a_fault_ascend_and_say_what_is_not_seen() -> None:
    row = Finding(Topic.SETTINGS, "mtu", "MTU", Status.UNKNOWN, expected="4096")
    said = text(
        Report(
            tuple(
                replace(row, device=one, found="1500" * (one == "b"), port="1") for one in ("a10", "a2", "b")
            )
        ),
        "",
    )
    assert "a2 port 1, a10 port 1\n" in said
    assert said.count("not seen") == 1
    assert "leave out --failed to see what" in " ".join(text(Report((row,)), "", failed=True).split())
    assert "a privilege is missing (`roce-exporter check setup`)" in " ".join(
        text(Report((row,)), "").split()
    )
    every = joined((Report((), fine=("driver", "settings")), Report((row,))))
    assert every.fine == ("driver",), "health looks at some settings only"
    consequence = replace(marked(2, "2", "9"), caused_by=("too_hot",), status=Status.DEGRADED)
    assert ("acts" in text(Report((consequence,)), ""), "acts" in text(Report(FOUR), "")) == (False, True)


def test_settings_of_which_only_the_title_is_known_are_one_line() -> None:
    right = [
        Finding(Topic.SETTINGS, check, title, Status.OK, "mlx5_0", "1")
        for check, title in (("a", "trust"), ("b", "GID table"))
    ]
    lines = text(Report((*right,)), "").splitlines()
    assert "  ok  trust, GID table" in lines
    found = [replace(one, expected="dscp", found="dscp") for one in right]
    assert len([line for line in text(Report((*found,)), "").splitlines() if line.startswith("  ok")]) == 2


def test_what_began_and_ended_in_one_second_has_one_time() -> None:
    storm = Finding(Topic.HEALTH, "a", "storm", Status.DEGRADED, "mlx5_0", "1", since=1e9, until=1e9 + 0.2)
    assert "at 01:46:40 UTC" in text(Report((storm,)), "")
    assert "01:46:40 to 01:46:42 UTC" in text(Report((replace(storm, until=1e9 + 2),)), "")
