"""The documents are right: the metrics, flags, commands and files that they name exist."""

import re
import shlex
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path

import yaml

from roce_exporter.catalog import CATALOG, DIALECTS
from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.left_out import LEFT_OUT
from roce_exporter.catalog.windows import WINDOWS_SETTINGS
from roce_exporter.cli.flags import FLAGS, KEYS
from roce_exporter.cli.options import OptionError, parse_options

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    place.relative_to(ROOT).as_posix(): place.read_text()
    for place in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}
README = DOCUMENTS["README.md"]
OTHERS = {"roce_exporter", "roce_packets", "roce_mode"}
"""The package, a key of JSON, and one of Windows' registry."""


def unknown(
    pattern: str, known: Callable[[str], object], at_least: int, without: str = "$^"
) -> dict[str, set[str]]:
    """Per document what matches the pattern and is not known; in all documents together so many must match."""
    named = {name: set(re.findall(pattern, re.sub(without, "", text))) for name, text in DOCUMENTS.items()}
    assert sum(map(len, named.values())) > at_least
    return {
        name: wrong for name, found in named.items() if (wrong := {one for one in found if not known(one)})
    }


def test_every_metric_named_exists() -> None:
    known = {raw for row in CATALOG for spelling in row.spellings for raw in spelling.raw} | OTHERS
    known |= {row.name for row in CATALOG} | {setting.name for setting in WINDOWS_SETTINGS}
    known |= {f"roce_exporter_{one}" for one in ("build_info", "kernel_info", "http_requests_total")}
    assert unknown(r"\broce_[a-z0-9_]+\b(?!\*)", lambda one: one in known or one.endswith("_"), 500) == {}


def test_every_flag_named_exists() -> None:
    names = {flag.name for flag in FLAGS if not flag.instead}
    others = r"(?m)^(prometheus|prometheus-alertmanager|amtool) .*"
    assert unknown(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]", names.__contains__, 30, others) == {}


def test_every_key_that_is_no_flag_has_its_meaning() -> None:
    text = (ROOT / "docs/operating.md").read_text()
    assert [
        key.name for key in KEYS if f"| `{key.name.removeprefix('--')}` |" not in text or key.help not in text
    ] == []


BEFORE = r"(?:^ *|[&;] |-- |sudo (?:-u \S+ )?|\$\()(?:\S*python\S* )?"
PROGRAM = r"(?:\S*/)?roce-exporter(?:-[\d.]+pyz)?"


def commands(text: str) -> Iterable[list[str]]:
    """The words of each command of ours in a block of shell, up to its end, a redirection or a comment."""
    for line in shell_lines(text):
        for rest in re.findall(rf"{BEFORE}(?:-m roce_exporter|{PROGRAM})(?= |$)(.*)", line):
            lexer = shlex.shlex(rest, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            yield list(takewhile(lambda word: word[0] not in "|&;<>()", lexer))


def shell_lines(text: str) -> list[str]:
    blocks = re.findall(r"```(?:sh|shell)\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


def test_every_command_shown_is_accepted() -> None:
    shown = [argv for text in DOCUMENTS.values() for argv in commands(text)]
    assert len(shown) > 40
    assert len(list(commands(README))) >= 4
    refused = []
    for argv in shown:
        try:
            parse_options(argv)
        except OptionError as error:
            refused.append(f"{argv}: {error}")
        except SystemExit:
            if argv != ["--version"]:
                raise
    assert refused == []


def test_the_drivers_in_the_readme_have_raw_names() -> None:
    """docs/metrics.md lists them all, so a new driver need not be in the README."""
    (listed,) = re.findall(r"\* \*\*Drivers of all vendors, and Soft-RoCE\*\*: (.*?)\. \[", README, re.DOTALL)
    named = set(re.findall(r"\w+", re.sub(r"\([^)]*\)", "", listed))) - {"and"}
    assert {"mlx5", "rxe"} <= named
    assert named <= {spelling.dialect for row in CATALOG for spelling in row.spellings} & {*DIALECTS}


def test_the_first_screen_shows_what_it_is_a_picture_and_the_demo() -> None:
    first = "\n".join(README.splitlines()[:20])
    assert [one for one in ("Prometheus exporter", "![", "sh deploy/try.sh") if one not in first] == []


def test_documents_are_short() -> None:
    """What is generated (the reference, the licences) does not count; of what others say, a page has a link."""
    words = {name: len(text.split()) for name, text in DOCUMENTS.items()}
    assert words["README.md"] <= 900
    assert max(words[f"docs/{place}.md"] for place in ("bare-metal", "kubernetes", "slurm")) <= 600
    others = {"README.md", "CONTRIBUTING.md", "docs/metrics.md", "docs/licences.md"}
    assert sum(count for name, count in words.items() if name not in others) <= 44_475


def test_installation_reads_the_package_lists_first_and_needs_no_registry() -> None:
    lines = shell_lines(README)
    assert [line for line in lines if "apt-get install" in line and "apt-get update" not in line] == []
    assert (
        unknown(r"pip install (?:-\S+ )*'?[\w./-]+", lambda one: not re.search(r"'?roce[-_]exp", one), 1)
        == {}
    )


def test_every_link_leads_to_a_file() -> None:
    links = {ROOT / name: re.findall(r"\]\(((?!http|#)[^)#]+)", text) for name, text in DOCUMENTS.items()}
    assert sum(map(len, links.values())) > 100
    assert [
        link for place, found in links.items() for link in found if not (place.parent / link).exists()
    ] == []
    first = {(ROOT / link).resolve() for link in links[ROOT / "README.md"]}
    second = {
        (place.parent / link).resolve() for place, found in links.items() if place in first for link in found
    }
    pages = {ROOT / name for name in DOCUMENTS if name.startswith("docs/")}
    assert pages - first - second == set(), "not in two clicks from the README"


def test_every_file_in_backquotes_is_there() -> None:
    """Below the repository or below `roce_exporter/`; AREA, HOST, NAME and NETDEV stand for any; `drivers/` is the kernel's."""
    folders = [
        ROOT, *(place for room in ("roce_exporter", "tests/unit") for place in (ROOT / room).glob("**/") if "__pycache__" not in place.parts)
    ]  # fmt: skip
    for document in ("CONTRIBUTING.md", "docs/architecture.md", "docs/adding-a-driver.md"):
        named = set(re.findall(r"`([\w.*-]*[/.][\w./*-]+)`", DOCUMENTS[document]))
        places = {
            re.sub(r"\b(AREA|HOST|NAME|NETDEV)\b", "*", name.rstrip("/"))
            for name in named
            if re.search(r"/|\.(py|md|toml)$", name) and not name.startswith("drivers/")
        }
        assert len(places) > 10
        assert {one for one in places if not any(next(folder.glob(one), None) for folder in folders)} == set()


# ---- docs/adding-a-driver.md: at most three places, and the last driver took no other

PAGE = DOCUMENTS["docs/adding-a-driver.md"]
EXAMPLE = "ocrdma"
FOLLOWING = ("docs/", "alerts/compat/", "tests/golden/", "tests/contract/test_documents.py", "CHANGELOG.md", "README.md",
             "roce_exporter/catalog/tables/kernel_log.txt", "tests/unit/kernel_log_lines.py", "tests/diagnosis/")  # fmt: skip
"""Generated files and documents, this test, and what came later and is not needed: its messages, and hosts whose verdict is known."""


def mentioning(words: Iterable[str]) -> list[str]:
    """The text files of the repository that contain one of these words in their content or path."""
    pattern = re.compile("|".join(words))
    return [
        name
        for folder in ("roce_exporter", "tests", "dashboards", "alerts", "deploy", "bench", "docs")
        for place in (ROOT / folder).rglob("*")
        if place.is_file() and "__pycache__" not in place.parts
        if pattern.search(name := place.relative_to(ROOT).as_posix())
        or pattern.search(place.read_text(errors="replace"))
    ]


def test_the_last_driver_is_in_three_places_and_in_no_other() -> None:
    places = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    found = mentioning((EXAMPLE, *family_of(EXAMPLE).kernel_drivers))
    assert len(places) == 3
    assert all(any(file.startswith(place) for file in found) for place in places)
    assert [file for file in found if not file.startswith((*places, *FOLLOWING))] == []


def test_the_figures_of_the_last_driver_are_right() -> None:
    lines = [one for row in CATALOG for one in row.spellings if one.dialect == EXAMPLE]
    entries = [one for one in LEFT_OUT if one.dialect == EXAMPLE]
    assert f"{len(lines)} lines in rows" in PAGE
    assert f"{len(entries)} entries in `left_out.txt`" in PAGE


def test_no_alert_and_no_severity_that_went_is_named() -> None:
    """Other than where a reader looks for what became of them, and in their tests. Conditions of a Kubernetes node are no alerts."""
    went = yaml.safe_load((ROOT / "alerts/went.yml").read_text())
    tests = (
        "tests/alerts/test_generate.py",
        "tests/deploy/test_mixin.py",
        "tests/unit/migration/",
        "tests/upgrade/",
    )
    allowed = ("alerts/went.yml", "deploy/node-problem-detector/", *tests)
    words = (rf"\b({'|'.join(went)})\b", r"(?i)\bseverity\b.{0,30}[`\"' ](page|ticket)[`\"', ]")
    found = {word: mentioning([word]) for word in words}
    assert all(found.values())
    assert {name for names in found.values() for name in names if not name.startswith(allowed)} == set()


PROMISES = (ROOT / "SECURITY.md").read_text().partition("\n## Attack surface\n")[2]
COMMENT = re.compile(r"<!-- (.*?) -->")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`<\[])|(?<=-->)\s+")


def sentences(text: str) -> list[str]:
    """Each sentence, and each row of a table below its head, with the comment that follows it."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\* |#)", prose):
        if paragraph.lstrip().startswith("|"):
            found += paragraph.strip().splitlines()[2:]
            continue
        for part in SENTENCE.split(" ".join(paragraph.split())):
            if part.startswith("<!--"):
                found[-1] += f" {part}"
            elif part and not part.startswith("#"):
                found.append(part)
    return found


def test_every_sentence_about_security_names_its_test_and_each_is_there() -> None:
    files = {place: place.read_text() for place in (ROOT / "tests").rglob("test_*.py")}
    tests = {name for text in files.values() for name in re.findall(r"def (test_\w+)", text)}
    named = [(one, COMMENT.findall(one)) for one in sentences(PROMISES)]
    assert len(named) > 80
    assert [one for one, comments in named if len(comments) != 1] == []
    assert {name for _, (comment,) in named for name in comment.split(", ")} - {"advice"} - tests == set()
