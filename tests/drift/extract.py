"""The names of every RoCE driver's counters, from a kernel source tree.

    python tests/drift/extract.py 7.3 TREE

writes them into `names.tsv` as those of Linux 7.3, in place of those that it had for it. A statistic of the physical port is marked,
as far as a driver keeps these apart. TREE is an unpacked kernel (Debian: the package linux-source-7.3); only drivers/infiniband and drivers/net/ethernet are
read. The driver's own macros make the names, so the C preprocessor (`cpp`) expands them, with every option of the
kernel's configuration on. A number that a driver inserts at run time is written {priority}, {lane}, {queue} or {class}.

Fails when the tree has a table, a format or a file of names that `drivers.py` does not describe.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from drivers import COUNTERS, ETHTOOL, FIRMWARE, NET, NO_COUNTERS, OTHERS, PLACES, RDMA, WITHOUT, Place
from series import CORE, TABLE, Named, with_kernel, written

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*')
"""Adjacent literals, which C joins: `"rx%d_" "packets"`."""
ARRAY = re.compile(r"(\w+)\s*\[[^\]=;]*\](?:\s*\[[^\]=;]*\])?\s*=\s*\{")
FUNCTION = re.compile(
    r"^(?:static\s+)?[\w\s*]+?\b(\w*string\w*|\w*fill_str\w*)\s*\([^;{]*\)\s*\{", re.MULTILINE
)
PRINT = re.compile(r"\b(?:ethtool_sprintf|ethtool_puts|s[cn]*printf|strscpy|strcpy)\s*\(([^;]*);")
CONVERSION = re.compile(r"%(?:[du]|lu)")
PMA = re.compile(r"^static PORT_PMA_ATTR(?:_EXT)?\((\w+)", re.MULTILINE)
MENTIONS = re.compile(
    r"rdma_stat_desc\b[^;]*\[\]|rdma_alloc_hw_stats_struct|ETH_SS_STATS|ethtool_(?:puts|sprintf)"
)


class UnknownError(Exception):
    """The tree contains something that `drivers.py` does not describe."""


def port_names(tree: Path) -> Iterator[Named]:
    """The names of the tables that hold statistics of the physical port alone."""
    for place in PLACES:
        if (tree / place.files[-1]).exists():
            for table, strings in _tables(_expanded(tree, place.files)):
                if table in place.port:
                    for name in chain.from_iterable(_spelt(string, place, table) for string in strings):
                        yield Named(place.driver, place.source, name)


def names(tree: Path) -> Iterator[Named]:
    """Every name of every driver in the tree."""
    _nothing_new(tree)
    for name in PMA.findall((tree / RDMA / "core/sysfs.c").read_text()):
        yield Named(CORE, COUNTERS, name)
    for place in PLACES:
        if (tree / place.files[-1]).exists():
            for name in _of_place(tree, place):
                yield Named(place.driver, place.source, name)


def _of_place(tree: Path, place: Place) -> Iterator[str]:
    text = _expanded(tree, place.files)
    for table, strings in _tables(text):
        if table in place.tables:
            for string in strings:
                yield from _spelt(string, place, table)
        elif not re.fullmatch(NO_COUNTERS, table):
            raise UnknownError(f"{place.files[-1]}: table {table} with {strings[0]!r}")
    if place.source == ETHTOOL:
        for form in _formats(text):
            if form not in ("%s", *place.formats):
                if "%s" in form:
                    raise UnknownError(f"{place.files[-1]}: format {form!r}")
                yield _placeholders(form)


def _spelt(string: str, place: Place, table: str) -> Iterator[str]:
    for word in place.words.get(table, ("%s",)):
        filled = _placeholders(string.replace("%s", word))
        if "%" in filled:
            raise UnknownError(f"{place.files[-1]}: {string!r} of {table}")
        for form in place.tables[table]:
            yield form.replace("{name}", filled)


def _placeholders(form: str) -> str:
    while found := CONVERSION.search(form):
        form = form[: found.start()] + _placeholder(form[: found.start()]) + form[found.end() :]
    return form


def _placeholder(before: str) -> str:
    if re.search(r"prio(rity)?[_-]?$", before):
        return "{priority}"
    if re.search(r"tc_?$", before):
        return "{class}"
    return "{entry}" if "{queue}" in before else "{queue}"


def _expanded(tree: Path, files: tuple[str, ...]) -> str:
    text = "\n".join((tree / file).read_text(errors="replace") for file in files)
    text = re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^([ \t]*#[ \t]*)ifdef[ \t]+CONFIG_\w+", r"\1if 1", text, flags=re.MULTILINE)
    text = re.sub(r"^([ \t]*#[ \t]*)ifndef[ \t]+CONFIG_\w+", r"\1if 0", text, flags=re.MULTILINE)
    options = ("-D__stringify(x)=#x", "-DIS_ENABLED(x)=1", "-DIS_REACHABLE(x)=1")
    command = ("cpp", "-P", "-w", *options, "-")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _tables(text: str) -> Iterator[tuple[str, list[str]]]:
    for found in ARRAY.finditer(text):
        if strings := [string for string in _strings(_braces(text, found.end() - 1)) if string]:
            yield found[1], strings


def _formats(text: str) -> Iterator[str]:
    """The formats printed in functions that write lists of strings."""
    for function in FUNCTION.finditer(text):
        for call in PRINT.finditer(_braces(text, function.end() - 1)):
            yield from islice(_strings(call[1]), 1)


def _strings(text: str) -> Iterator[str]:
    for literals in STRINGS.finditer(text):
        yield "".join(STRING.findall(literals[0]))


def _braces(text: str, start: int) -> str:
    """The text from the opening brace at `start` to its closing brace; braces in strings do not count."""
    depth = 0
    for part in re.compile(r'"(?:[^"\\]|\\.)*"|[{}]').finditer(text, start):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if depth == 0:
            return text[start : part.end()]
    raise UnknownError(f"no closing brace after {text[start : start + 40]!r}")


def _nothing_new(tree: Path) -> None:
    known = {file for place in PLACES for file in place.files} | set(FIRMWARE)
    folders = sorted({str(Path(file).parent) for file in known if file.startswith(NET)})
    for folder in (f"{RDMA}/hw", f"{RDMA}/sw", *folders):
        for path in sorted((tree / folder).rglob("*.c")):
            file = path.relative_to(tree).as_posix()
            if file in known or any(other in file for other in OTHERS):
                continue
            if MENTIONS.search(path.read_text(errors="replace")):
                raise UnknownError(f"{file}: a file with names of counters")
    for driver, folder in WITHOUT.items():
        if any("alloc_hw" in path.read_text(errors="replace") for path in (tree / folder).glob("*.c")):
            raise UnknownError(f"{driver}: it has hardware counters now")


def main(arguments: list[str]) -> int:
    """Write the names of one tree into the table; return 1 and print one line for something unknown."""
    series, tree = arguments[0], Path(arguments[1])
    try:
        made = with_kernel(series, set(names(tree)), port_names(tree))
    except UnknownError as unknown:
        sys.stderr.write(f"extract: unknown to drivers.py: {unknown}\n")
        return 1
    TABLE.write_text(written(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
