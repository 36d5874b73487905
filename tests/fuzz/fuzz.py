"""Run one decoder on inputs that are guided by coverage: `python tests/fuzz/fuzz.py TARGET --seconds 600`.

Needs `pip install '.[fuzz]'`. It starts from corpus/TARGET and writes inputs that reach new code to --found (by default
a temporary folder). A finding ends it with the traceback and the name of the file with the input: add that file to
corpus/TARGET when the decoder is fixed.

With --replay it runs each file of the folders once, without atheris, and prints the share of the decoder's lines and
branches that they reach.
"""

import argparse
import contextlib
import logging
import os
import sys
import tempfile
from pathlib import Path

import fuzz_targets

CORPUS = Path(__file__).parent / "corpus"
LARGEST = {"archive": 20_480, "ethtool_ioctl": 8192, "recording": 8192}
"""Bytes of an input, where 4096 are too few."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("target", choices=fuzz_targets.NAMES)
    options.add_argument("--seconds", type=int, default=60, help="how long (60)")
    options.add_argument("--runs", type=int, help="so many inputs instead, however long they take")
    options.add_argument("--seed", type=int, default=1, help="of the mutations (1)")
    options.add_argument("--found", type=Path, help="folder for inputs that reach new code")
    options.add_argument("--replay", type=Path, nargs="+", metavar="FOLDER", help="only measure these inputs")
    given = options.parse_args()
    logging.disable(logging.CRITICAL)  # log messages of the exporter about an input are not findings
    if given.replay:
        measure(given.target, given.replay)
    else:
        limit = f"-runs={given.runs}" if given.runs else f"-max_total_time={given.seconds}"
        fuzz(given.target, limit, given.seed, given.found)


def measure(name: str, folders: list[Path]) -> None:
    import coverage  # noqa: PLC0415 - only fuzzing needs it

    measured = coverage.Coverage(branch=True, data_file=None, source=["roce_exporter"])
    with measured.collect():
        target = fuzz_targets.load(name)
        for folder in folders:
            for file in sorted(folder.iterdir()):
                target.decode(file.read_bytes())
    measured.report(include=[f"*/roce_exporter/{module}" for module in target.core], show_missing=True)


def fuzz(name: str, limit: str, seed: int, found: Path | None) -> None:
    import atheris  # noqa: PLC0415 - only a replay needs it

    with atheris.instrument_imports(include=["roce_exporter", "yaml", "h11", "tarfile"]):
        target = fuzz_targets.load(name)
        for file in (
            CORPUS / name
        ).iterdir():  # what a decoder imports when it is called is to be instrumented, too
            target.decode(file.read_bytes())
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roce-fuzz-")))
        words = work / "words"
        words.write_text("".join(f'"{escaped(word)}"\n' for word in target.words))
        new = found or work / "found"
        new.mkdir(parents=True, exist_ok=True)
        arguments = [
            limit,
            f"-seed={seed}",
            f"-max_len={LARGEST.get(name, 4096)}",
            "-timeout=60",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            f"-artifact_prefix={os.getcwd()}/{name}-",
            *([f"-dict={words}"] if target.words else []),
        ]
        atheris.Setup([sys.argv[0], *arguments, str(new), str(CORPUS / name)], target.decode)
        atheris.Fuzz()


def escaped(word: bytes) -> str:
    """The text in the notation of a libFuzzer dictionary."""
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
