"""What breaks.py found, as text: `python tests/mutants/report.py RESULTS.json` prints it again."""

import inspect
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXCUSED = Path(__file__).with_name("never_failed.txt")
Results = dict[str, Any]


def place(item: Any, root: Path) -> dict[str, Any]:
    """The file, first line and number of lines of a test."""
    lines, first = inspect.getsourcelines(inspect.unwrap(item.function))
    return {
        "name": item.nodeid.removeprefix("tests/"),
        "file": str(item.path.relative_to(root / "tests")),
        "function": item.nodeid.removeprefix("tests/").partition("[")[0],
        "line": first,
        "lines": len(lines),
    }


def judged(results: Results) -> list[int]:
    """The tests that passed unbroken and execute the package."""
    return [n for n, test in enumerate(results["tests"]) if test["letter"] == "p" and test["functions"]]


def kills(results: Results) -> dict[int, set[int]]:
    """By test: the breaks that failed it."""
    found: dict[int, set[int]] = defaultdict(set)
    for number, one in enumerate(results["breaks"]):
        for test in one["failed"]:
            found[int(test)].add(number)
    return found


def never_failed(results: Results) -> list[int]:
    """The tests that no break failed."""
    failed = kills(results)
    return [number for number in judged(results) if not failed[number]]


def names(results: Results, numbers: list[int]) -> list[str]:
    """Tests by name."""
    return [results["tests"][number]["name"] for number in numbers]


def excused() -> dict[str, str]:
    """Tests that no break can fail, each with a reason."""
    lines = EXCUSED.read_text().splitlines() if EXCUSED.exists() else []
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines) if reason}


def unexcused(results: Results) -> list[str]:
    """The tests that no break failed and that have no reason for it."""
    known = excused()
    return [name for name in names(results, never_failed(results)) if name.partition("[")[0] not in known]


def needed(results: Results) -> set[str]:
    """Test functions that keep all kills together, chosen greedily by kills per line."""
    by_function: dict[str, set[int]] = defaultdict(set)
    lines = {test["function"]: test["lines"] for test in results["tests"]}
    for number, found in kills(results).items():
        by_function[results["tests"][number]["function"]] |= found
    left, chosen = set().union(*by_function.values()), set()
    while left:
        best = max(sorted(by_function), key=lambda name: len(by_function[name] & left) / lines[name])
        chosen.add(best)
        left -= by_function[best]
    return chosen


def table(results: Results) -> Iterator[str]:
    """By file: tests; how many of them failed once, by a fine break, by an assertion; the breaks that only this file sees."""
    tests, breaks = results["tests"], results["breaks"]
    ways: dict[str, set[int]] = defaultdict(set)
    alone: Counter[str] = Counter()
    for one in breaks:
        for test, letter in one["failed"].items():
            ways["failed"].add(int(test))
            ways["by a fine one"] |= set() if one["extreme"] else {int(test)}
            ways["by assertion"] |= {int(test)} if letter == "a" else set()
        seen = {tests[int(test)]["file"] for test in one["failed"]}
        alone.update(seen if len(seen) == 1 else ())
    columns = ("failed", "by a fine one", "by assertion")
    yield f"{'file':55} {'tests':>6} {' '.join(f'{name:>13}' for name in columns)} {'only here':>10}"
    files = Counter(tests[number]["file"] for number in judged(results))
    for file, count in sorted(files.items()):
        numbers = (sum(tests[n]["file"] == file for n in ways[name]) for name in columns)
        yield f"{file:55} {count:6} {' '.join(f'{number:13}' for number in numbers)} {alone[file]:10}"


def spare(results: Results) -> Iterator[str]:
    """The test functions that no break needs, by file."""
    keep, cases = needed(results), Counter(test["function"] for test in results["tests"])
    functions = {results["tests"][n]["function"]: results["tests"][n] for n in judged(results)}
    files: dict[str, list[Any]] = defaultdict(list)
    for name, test in functions.items():
        if name not in keep:
            files[test["file"]].append(test)
    for file, tests in sorted(files.items()):
        yield f"{file}: {len(tests)} functions, {sum(test['lines'] for test in tests)} lines"
        for test in tests:
            name = test["function"].partition("::")[2]
            yield f"  {test['line']:4} {test['lines']:3} lines {cases[test['function']]:3} cases  {name}"


def survivors(results: Results) -> Iterator[str]:
    """The breaks that none of the tests saw that execute the function; of very many the 180 best have tried."""
    users = Counter(one for number in judged(results) for one in results["tests"][number]["functions"])
    for one in results["breaks"]:
        if not one["failed"] and len(one["run"]) >= min(users[one["function"]], 180):
            yield f"{one['place']}: {one['label']} ({len(one['run'])} tests)"


def text(results: Results) -> str:
    """The whole report."""
    tests, breaks = results["tests"], results["breaks"]
    other = Counter(test["function"] for test in tests if test["letter"] == "p" and not test["functions"])
    never = [
        f"{test} {excused().get(test.partition('[')[0], '')}"
        for test in names(results, never_failed(results))
    ]
    idle = set(results["imported"]) - {one for test in tests for one in test["functions"]}
    parts = {
        "FAILED OR LOST WITHOUT A BREAK, not judged": [
            test["name"] for test in tests if test["letter"] != "p"
        ],
        "JUDGED BY OTHER BREAKS, for they execute no function": [
            f"{one} ({n})" for one, n in sorted(other.items())
        ],
        "NEVER FAILED": never,
        "NO BREAK NEEDS THEM": [] if results.get("score") else list(spare(results)),
        "SURVIVORS, breaks that no test saw": sorted(survivors(results)),
    }
    caught = sum(bool(one["failed"]) for one in breaks)
    lines = [
        f"{len(tests)} tests, {len(judged(results))} judged",
        f"{len(breaks)} breaks, {caught} seen by a test; {results['unfit']} more were no valid code or changed nothing",
        f"{len(idle)} functions run at import alone, and are not broken",
        "",
        *table(results),
    ]
    for title, found in parts.items():
        lines += ["", f"{title}: {len(found)}", *found]
    return "\n".join(lines)


if __name__ == "__main__":
    print(text(json.loads(Path(sys.argv[1]).read_text())))
