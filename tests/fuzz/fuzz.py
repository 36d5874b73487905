"""Run one decoder on inputs that are guided by coverage: `python tests/fuzz/fuzz.py TARGET --seconds 600`.

Needs `pip install '.[fuzz]'`. It starts from corpus/TARGET.txt and writes inputs that reach new code to --found (by default
a temporary folder). A finding ends it with the traceback and the name of the file with the input.

--keep FOLDER adds the smallest inputs of the folder that together reach all that it reaches to corpus/TARGET.txt: what --found has, or a finding when the
decoder is fixed. --replay, with any folders, decodes the corpus and their files once and prints the share of the decoder's lines and branches that they reach.
"""

import argparse
import base64
import contextlib
import hashlib
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path

import fuzz_targets

LARGEST = {"archive": 20_480, "ethtool_ioctl": 8192, "recording": 8192}
"""Bytes of an input, where 4096 are too few."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("target", choices=fuzz_targets.NAMES)
    options.add_argument(
        "--seconds", type=int, default=60, help="CPU-seconds: other work costs no inputs (60)"
    )
    options.add_argument("--runs", type=int, help="so many inputs instead, however long they take")
    options.add_argument("--seed", type=int, default=1, help="of the mutations (1)")
    options.add_argument("--found", type=Path, help="folder for inputs that reach new code")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="add inputs to the corpus")
    options.add_argument("--replay", type=Path, nargs="*", metavar="FOLDER", help="only measure the inputs")
    given = options.parse_args()
    logging.disable(logging.CRITICAL)  # log messages of the exporter about an input are not findings
    if given.replay is not None:
        measure(given.target, given.replay)
    elif given.keep:
        keep(given.target, given.keep)
    else:
        if not given.runs:
            signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGUSR1))
            signal.setitimer(signal.ITIMER_PROF, given.seconds)
        fuzz(given.target, given.runs or -1, given.seed, given.found)


def measure(name: str, folders: list[Path]) -> None:
    import coverage  # noqa: PLC0415 - only fuzzing needs it

    measured = coverage.Coverage(branch=True, data_file=None, source=["roce_exporter"])
    with measured.collect():
        target = fuzz_targets.load(name)
        for content in fuzz_targets.corpus(name).values():
            target.decode(content)
        for folder in folders:
            for file in sorted(folder.iterdir()):
                target.decode(file.read_bytes())
    measured.report(include=[f"*/roce_exporter/{module}" for module in target.core], show_missing=True)


def keep(name: str, folder: Path) -> None:
    """Add the inputs, the smallest first, that reach a jump which no input of the corpus reaches. A name is of the content."""
    import coverage  # noqa: PLC0415 - only fuzzing needs it

    target, corpus = fuzz_targets.load(name), fuzz_targets.corpus(name)
    found = sorted(
        (file.read_bytes() for file in folder.iterdir()), key=lambda content: (len(content), content)
    )
    known: set[object] = set()
    for content in [*corpus.values(), *found]:
        measured = coverage.Coverage(branch=True, data_file=None, source=["roce_exporter"])
        with measured.collect():
            target.decode(content)
        data = measured.get_data()
        reached = {(file, jump) for file in data.measured_files() for jump in data.arcs(file) or ()}
        if not reached <= known and content not in corpus.values():
            corpus[hashlib.sha256(content).hexdigest()[:12]] = content
        known |= reached
    lines = [f"{one} {base64.b64encode(content).decode()}\n" for one, content in sorted(corpus.items())]
    (fuzz_targets.CORPUS / f"{name}.txt").write_text("".join(lines))


def fuzz(name: str, runs: int, seed: int, found: Path | None) -> None:
    import atheris  # noqa: PLC0415 - only a replay needs it

    with atheris.instrument_imports(include=["roce_exporter", "yaml", "h11", "tarfile"]):
        target = fuzz_targets.load(name)
        # What a decoder imports when it is called is to be instrumented, too.
        for content in fuzz_targets.corpus(name).values():
            target.decode(content)
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roce-fuzz-")))
        words = work / "words"
        words.write_text("".join(f'"{escaped(word)}"\n' for word in target.words))
        new, seeds = found or work / "found", work / "corpus"
        new.mkdir(parents=True, exist_ok=True)
        seeds.mkdir()
        for one, content in fuzz_targets.corpus(name).items():
            (seeds / one).write_bytes(content)
        arguments = [
            f"-runs={runs}",
            f"-seed={seed}",
            f"-max_len={LARGEST.get(name, 4096)}",
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            f"-artifact_prefix={os.getcwd()}/{name}-",
            *([f"-dict={words}"] if target.words else []),
        ]
        atheris.Setup([sys.argv[0], *arguments, str(new), str(seeds)], target.decode)
        atheris.Fuzz()


def escaped(word: bytes) -> str:
    """The text in the notation of a libFuzzer dictionary."""
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
