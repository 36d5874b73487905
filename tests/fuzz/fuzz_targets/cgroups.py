"""/proc/PID/cgroup and the names of a process: its owner has safe labels, and a capture leaves no word in it that it does not know."""

import re

from roce_exporter.host.recorded.scrub import Scrubber, is_ordinary, scrub_process
from roce_exporter.model.owner import ProcessFacts
from roce_exporter.owners.identify import owner_of, parse_cgroups

_WORD = re.compile(r"(?<![^\W_])[a-z]{6,}(?![^\W_])")
CORE = ("owners/identify.py", "host/recorded/scrub.py")
WORDS = (
    b"0::/",
    b"/kubepods.slice/",
    b"pod7f1d4e02-5c38-4b6a-9d10-0123456789ab",
    b"cri-containerd-" + b"ab" * 32 + b".scope",
    b"/slurmstepd.scope/job_4711/step_0",
    b"user@1000.service",
    b"\\x2d",
    b" (deleted)",
)


def decode(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    facts = ProcessFacts(7, 1.0, text[:15], text[15:30], text)
    for anonymous in (False, True):
        assert all(str(label).isprintable() for label in owner_of(facts, anonymous=anonymous))
    replaced = scrub_process(Scrubber(), facts)
    parse_cgroups(replaced.cgroups)
    left = {word for word in _WORD.findall(replaced.cgroups) if not is_ordinary(word)}
    assert not left & {word for word in _WORD.findall(text) if not is_ordinary(word)}
