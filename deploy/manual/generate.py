"""Write manual pages and completion for bash, zsh and fish: python deploy/manual/generate.py FOLDER.

FOLDER is /usr/share or the like below a package's root. Everything is made from the parser of the command line. Completion is
shtab's (requirements.lock). The pages are made here: argparse-manpage 4.8 puts all commands on one page, has no wheel that could be locked,
and escapes the date, so that mandoc cannot read it. The pages have the date SOURCE_DATE_EPOCH: a build can be repeated byte by byte.
"""
# ruff: noqa: INP001 - a script, not a package

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import shtab

from roce_exporter import __version__
from roce_exporter.cli.commands import COMMANDS
from roce_exporter.cli.flags import KEYS
from roce_exporter.cli.options import make_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = "roce-exporter"
FILES = {"FILE", "PATH"}
FOLDERS = {"DIR"}
PLACES = {
    "bash": f"bash-completion/completions/{PROGRAM}",
    "zsh": f"zsh/vendor-completions/_{PROGRAM}",
    "fish": f"fish/vendor_completions.d/{PROGRAM}.fish",
}
"""Where Debian's shells look for completion of packages."""

BASH_EQUALS = f"""
# Bash ends a word at the equals sign; shtab expects the words `--flag` and `value`.
_roce_exporter() {{
  local words=() index place=$COMP_CWORD
  for index in "${{!COMP_WORDS[@]}}"; do
    if [[ ${{COMP_WORDS[index]}} != = ]]; then
      words+=("${{COMP_WORDS[index]}}")
    elif ((index == COMP_CWORD)); then
      words+=("")
    elif ((index < COMP_CWORD)); then
      ((place -= 1))
    fi
  done
  COMP_WORDS=("${{words[@]}}") COMP_CWORD=$place
  _shtab_roce_exporter
}}
complete -o bashdefault -F _roce_exporter {PROGRAM}
"""
ZSH_VALUE = re.compile(r'^(  "\*?--[\w.-]+)(\[.*\]:)', re.MULTILINE)
"""A flag with a value, as shtab writes it: zsh then completes `--flag value`, but not `--flag=value`."""

EXIT_STATUS = (
    ("0", "success; check: nothing found, and all that is needed was seen; translate: nothing was left"),
    ("1", "check, translate: something is wrong or was left; explain: nothing found; or an internal error"),
    ("2", "invalid flag, configuration file or input, reported as one line"),
    ("3", "check: nothing found, but something that is needed was not seen"),
    ("130", "ended by Ctrl-C"),
)
PATHS = (
    ("/etc/default/roce-exporter", "flags of the service"),
    ("/sys/class/infiniband, /sys/class/net", "what is read, besides netlink and ethtool"),
    ("/usr/share/roce-exporter", "rules for Prometheus, routes for Alertmanager and dashboards for Grafana"),
)
ENVIRONMENT = (("NOTIFY_SOCKET, WATCHDOG_USEC", "serve reports readiness to systemd and feeds its watchdog"),)
EXAMPLES = (
    ("roce-exporter", "serve this host on port 10123"),
    ("roce-exporter --host.simulate=pfc-storm", "serve a simulated host, without RDMA hardware"),
    ("roce-exporter once", "print the metrics once"),
    ("roce-exporter check", "what is wrong, on which side of the link, what next, and what was not seen"),
    ("roce-exporter explain np_cnp_sent", "what a raw counter means and which metric it is"),
)


def roff(text: str) -> str:
    """Text for a manual page: no hyphen is broken, and no line is a request."""
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", safe, flags=re.MULTILINE)


def table(rows: tuple[tuple[str, str], ...]) -> str:
    """Paragraphs with a tag each."""
    return "\n".join(f".TP\n\\fB{roff(tag)}\\fR\n{roff(text)}" for tag, text in rows)


def choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the words that a parser expects; empty if it expects none."""
    actions = parser._actions  # noqa: SLF001 - argparse has no public list of its flags
    found = (action.choices for action in actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001 - the same
    return dict(next(found, {}))


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    first = choices(make_parser())
    return {
        name: choices(first[name.split()[0]]).get(name.split()[-1], first[name.split()[0]])
        for name in COMMANDS
    }


def page(parser: argparse.ArgumentParser, meaning: str, sections: dict[str, str]) -> str:
    """One manual page, in the macros of man(7)."""
    name = roff(parser.prog.replace(" ", "-"))
    summary = meaning.split(";", maxsplit=1)[0].split(": ", maxsplit=1)[0]
    rows = {
        "arguments": "\n".join(entry(parser, action) for action in flagless(parser)),
        "options": "\n".join(
            entry(parser, action)
            for action in parser._actions  # noqa: SLF001 - argparse has no public list of its flags
            if action.option_strings and action.help != argparse.SUPPRESS
        ),
        "notes": "\n.PP\n".join(roff(text) for text in re.split(r"\n\s*\n", parser.epilog or "")),
    }
    lines = [
        f'.TH "{name.upper()}" 1 "{date()}" "roce\\-exporter {__version__}" "roce_exporter"',
        f".SH NAME\n{name} \\- {roff(summary)}",
        f".SH SYNOPSIS\n\\fB{roff(parser.prog)}\\fR [\\fIFLAG\\fR]... {' '.join(words(parser))}".rstrip(),
        f".SH DESCRIPTION\n{description(parser, meaning)}",
        *(f".SH {heading.upper()}\n{text}" for heading, text in (rows | sections).items() if text),
    ]
    return "\n".join(lines) + "\n"


def description(parser: argparse.ArgumentParser, meaning: str) -> str:
    """What a command does, in the lines of its author if the parser keeps them."""
    text = roff(parser.description or meaning)
    kept = issubclass(parser.formatter_class, argparse.RawDescriptionHelpFormatter)
    return f".nf\n{text}\n.fi" if kept else text


def date() -> str:
    """The day of the source (SOURCE_DATE_EPOCH), or today."""
    return time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))


def entry(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """A flag or an argument with its values, and its help."""
    formatter = parser._get_formatter()  # noqa: SLF001 - only it knows how argparse prints values and fills in %(default)s
    value = formatter._format_args(action, action.dest.upper())  # noqa: SLF001 - the same
    helped = roff(formatter._expand_help(action) if action.help else "")  # noqa: SLF001 - the same
    flags = ", ".join(f"\\fB{roff(flag)}\\fR" for flag in action.option_strings)
    return f".TP\n{flags}{' ' if flags and value else ''}\\fI{roff(value)}\\fR\n{helped}"


def flagless(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments that are no flags."""
    return parser._get_positional_actions()  # noqa: SLF001 - argparse has no public list of them


def words(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The arguments of a command that are no flags, as the synopsis shows them."""
    for action in flagless(parser):
        yield f"\\fI{roff(parser._get_formatter()._format_args(action, action.dest.upper()))}\\fR"  # noqa: SLF001 - as in `entry`


def pages() -> Iterator[tuple[str, str]]:
    """The name and the text of each manual page."""
    whole = make_parser()
    top = argparse.ArgumentParser(PROGRAM, description=whole.description, epilog=whole.epilog)
    top.add_argument("--version", action="version", help="print the version")
    commands = parsers()
    names = ", ".join(f"\\fB{roff(f'{PROGRAM} {name}'.replace(' ', '-'))}\\fR(1)" for name in commands)
    yield (
        PROGRAM,
        page(
            top,
            "Prometheus exporter for the health of RDMA over Converged Ethernet",
            {
                "commands": f"Without a command: serve. Each has a page of its own.\n{table(tuple((name, row.help) for name, row in COMMANDS.items()))}",
                "configuration file": table(
                    tuple((flag.name.removeprefix("--"), flag.help) for flag in KEYS)
                ),
                "exit status": table(EXIT_STATUS),
                "environment": table(ENVIRONMENT),
                "files": table(PATHS),
                "examples": table(EXAMPLES),
                "see also": names,
            },
        ),
    )
    for name, command in commands.items():
        see = f"\\fB{roff(PROGRAM)}\\fR(1)"
        yield (
            f"{PROGRAM} {name}".replace(" ", "-"),
            page(command, COMMANDS[name].help, {"exit status": table(EXIT_STATUS), "see also": see}),
        )


def completed_parser() -> argparse.ArgumentParser:
    """The parser with what completion needs: flags of `serve` without a command, files, no empty choices."""
    parser = make_parser()
    commands = choices(parser)
    for command in (*commands.values(), *choices(commands["tool"]).values()):
        for action in command._actions:  # noqa: SLF001 - no public list
            if action.choices:
                action.choices = [choice for choice in action.choices if choice]
            if action.metavar in FILES | FOLDERS:
                kind = shtab.DIRECTORY if action.metavar in FOLDERS else shtab.FILE
                action.complete = kind  # type: ignore[attr-defined]
    for action in commands["serve"]._actions:  # noqa: SLF001 - no public list
        if action.dest != "help":
            parser._add_action(action)  # noqa: SLF001 - a flag of another parser has no public way in
    return parser


def completion(shell: str) -> str:
    """What a shell reads to complete words of the command line."""
    text: str = shtab.complete(completed_parser(), shell)
    if shell == "bash":
        text = re.sub(r"^complete .*\n", "", text, flags=re.MULTILINE) + BASH_EQUALS
    return ZSH_VALUE.sub(r"\1=\2", text) if shell == "zsh" else text


def main() -> int:
    """Write everything below the folder of the first argument."""
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and the folder
        sys.stderr.write("usage: generate.py FOLDER\n")
        return 2
    written = {f"man/man1/{name}.1": text for name, text in pages()}
    written |= {place: completion(shell) for shell, place in PLACES.items()}
    for name, text in written.items():
        place = Path(sys.argv[1]) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
