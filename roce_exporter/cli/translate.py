"""`roce-exporter tool translate`: dashboards, rules and PromQL of other exporters' names by ours.

Exit code 0: all is translated; 1: places were left, which the report lists; 2: a file cannot be read or is of another kind.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from roce_exporter.cli.flags import JSON
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import OutputError, harmless, print_text, progress
from roce_exporter.migrate.foreign_files import LARGEST, SUFFIXES, recorded, text_of_file, translate_file
from roce_exporter.migrate.promql_names import guessed, names_of
from roce_exporter.migrate.target_labels import target_labels
from roce_exporter.migrate.translation import FileReport, UnreadableError, report_json, report_text
from roce_exporter.words import counted, terminal_width

STANDARD_INPUT = "-"
INCOMPLETE = 1


async def translate(options: argparse.Namespace) -> int:
    """Translate the files, then write them all: an unreadable one means that none is written.

    Raises:
        OptionError: the package or a file is missing, or a file is not what can be translated.
        OutputError: a file cannot be written.
    """
    options.files = [one for name in options.files for one in _files_of(name)]
    if options.in_place and options.output:
        raise OptionError("--in-place and --output contradict each other; give one of them")
    if options.in_place and STANDARD_INPUT in options.files:
        raise OptionError("--in-place cannot replace standard input; name a file")
    if options.files.count(STANDARD_INPUT) > 1:
        raise OptionError("standard input can be read once; name - once")
    if len(options.files) > 1 and not (options.in_place or options.output):
        raise OptionError("several files need --output=FOLDER or --in-place")
    targets = _targets(options)
    texts = [(name, _read(name)) for name in options.files]
    async with progress(f"translating {counted(len(texts), 'file')}"):
        results = await _translated(texts, options)
    for (name, old), (new, _), target in zip(texts, results, targets, strict=True):
        if target is None:
            ends = new.endswith("\n") or not sys.stdout.isatty()
            print_text(new if ends else f"{new}\n")  # the report on a terminal begins a line
        elif target != Path(name) or new != old:
            _write(target, new)
    reports = [report for _, report in results]
    width = terminal_width(sys.stderr)
    is_json = options.format == JSON
    sys.stderr.write(report_json(reports) if is_json else harmless(report_text(reports, width)))
    return 0 if all(report.complete for report in reports) else INCOMPLETE


async def _translated(
    texts: list[tuple[str, str]], options: argparse.Namespace
) -> list[tuple[str, FileReport]]:
    exporters = tuple(dict.fromkeys(options.exporters or ()))
    names = names_of(exporters) if exporters else names_of()
    try:
        labels = target_labels(tuple(options.map_label))
    except ValueError as error:
        raise OptionError(f"--map-label: {error}") from None
    for name, text in texts:
        names = recorded(Path(name), text, names)
    results = []
    for name, text in texts:
        await asyncio.sleep(0)  # for the sign of life
        report = FileReport(name, guessed(text, names), labels=labels, full_set=options.metrics_set == "full")
        try:
            results.append((translate_file(Path(name), text, report), report))
        except UnreadableError as error:
            raise OptionError(f"{name}: {error}") from None
    return results


def _targets(options: argparse.Namespace) -> list[Path | None]:
    """Where each file is written; None for standard output."""
    if options.in_place:
        return [Path(name) for name in options.files]
    if not options.output:
        return [None]
    output = Path(options.output)
    if len(options.files) == 1 and not os.path.isdir(output) and not options.output.endswith("/"):
        return [output]
    if not os.path.isdir(output):
        raise OptionError(f"--output={options.output}: is not a folder that exists; create it first")
    names = ["stdin" if name == STANDARD_INPUT else Path(name).name for name in options.files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise OptionError(
            f"--output={options.output}: two files are called {twice[0]}; translate them one by one"
        )
    return [output / name for name in names]


def _files_of(name: str) -> list[str]:
    """The file, or what is in a folder of this name by the suffixes of files that can be translated."""
    if name == STANDARD_INPUT or not os.path.isdir(name):
        return [name]
    if not (found := sorted(str(one) for one in Path(name).iterdir() if one.suffix.lower() in SUFFIXES)):
        raise OptionError(f"{name}: has no file that ends in {', '.join(SUFFIXES)}")
    return found


def _read(name: str) -> str:
    try:
        if name == STANDARD_INPUT:
            content = sys.stdin.buffer.read(max(LARGEST.values()) + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(max(LARGEST.values()) + 1)
        return text_of_file(content)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else "it is not a valid path"
        raise OptionError(f"{name}: cannot be read: {problem}; check the path") from None
    except UnreadableError as error:
        raise OptionError(f"{name}: {error}") from None


def _write(target: Path, text: str) -> None:
    """Replace a file as a whole: readers see the old or the new one."""
    place = Path(os.path.realpath(target))
    try:
        before = place.stat() if os.path.exists(place) else None
        if before and before.st_nlink > 1:
            raise OutputError(
                f"{target}: has {before.st_nlink} names (hard links), of which one would be another file then; use --output"
            )
        with tempfile.NamedTemporaryFile("wb", dir=place.parent, prefix=".translate-", delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(text.encode())
                file.flush()
                if before:
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.umask(mask := os.umask(0))
                temporary.chmod(before.st_mode & 0o7777 if before else 0o666 & ~mask)
                temporary.replace(place)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror}; choose another --output") from None
