"""Words of earlier versions: each works for one minor release, with one line on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.cli.flags import FLAGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOOLS = ("translate", "namespaces")
CHECKS = {"audit": ("settings",), "doctor": ("setup", "settings"), "diagnose": ("health",)}
"""Commands that are topics of `check` now."""
SWITCHES_PORT = 10124  # the port of `switches`
WIRE_PORT = 10125  # the port of `wire --serve`


FLAGS_NOW = {
    "demo": {"--demo.seconds": "--duration"},
    "wire": {"--interface": "--wire.interface"},
    "tool translate": {"--report": "--format"},
    "tool namespaces": {"--namespaces.socket": "--rdma.namespaces"},
}
"""Per command, flags with another name today."""


def renamed_flag(command: str, word: str) -> str:
    """A word of the arguments of a command with today's name of the flag."""
    name, equals, value = word.partition("=")
    return FLAGS_NOW.get(command, {}).get(name, name) + equals + value


def renamed(argv: Sequence[str]) -> tuple[list[str], str, str]:
    """The arguments with today's words, the words that were replaced, and today's; both empty if none was."""
    word, *rest = argv or [""]
    if word in TOOLS:
        return ["tool", word, *rest], word, f"tool {word}"
    if word in CHECKS:
        return _check(CHECKS[word], rest), word, " ".join(("check", *CHECKS[word]))
    if word == "switches" and "audit" in rest:
        rest.remove("audit")
        flags = [one.replace("--config.file", "--switches.config", 1) for one in rest]
        return _check(("switches",), flags), "switches audit", "check switches"
    if word == "switches":
        daemon = _daemon(rest, {"--config.file": "--switches.config"}, SWITCHES_PORT)
        return daemon, word, "serve --no-host --switches.config=FILE"
    if word == "wire" and "--serve" in rest:
        rest.remove("--serve")
        daemon = _daemon(rest, {"--interface": "--wire.interface", "--top": "--wire.top"}, WIRE_PORT)
        return daemon, "wire --serve", "serve --no-host --wire.interface=DEV"
    return list(argv), "", ""


def _check(topics: Sequence[str], words: Sequence[str]) -> list[str]:
    """The arguments of `check`, whose text was a table."""
    return [
        "check",
        *topics,
        *("text" if one == "table" else one.replace("=table", "=text") for one in words),
    ]


def _daemon(words: Sequence[str], flags: Mapping[str, str], port: int) -> list[str]:
    """The arguments of a daemon without a host, on the port that it had; a word that is no flag is a capture file."""
    takes_value = {flag.name for flag in FLAGS if not flag.is_switch} | flags.keys()
    found = ["serve", "--no-host"]
    given = iter(words)
    for word in given:
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            found.append(f"--wire.file={word}")
        elif equals or name not in takes_value:
            found.append(flags.get(name, name) + equals + value)
        else:
            found += [flags.get(name, name), *([next(given, "")])]
    if not any(word.startswith("--web.listen-address") for word in words):
        found.append(f"--web.listen-address=:{port}")
    return found
