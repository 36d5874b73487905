"""Break the product many times, and list the tests that no break fails and those that no break needs.

Usage: python tests/mutants/breaks.py [--seed=N] [--breaks=N] [--functions=REGEX] [--json=FILE] [pytest's arguments]

pytest collects the chosen files once. A first pass records which functions of the package each test executes. Then, for each
break, a forked child puts broken code into one function, runs some of the tests that execute it, and reports each result, so
nothing is imported or collected again. tests/mutants/README.md says how to read what is printed.
"""

import argparse
import gc
import importlib
import json
import os
import pkgutil
import random
import re
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import report
from children import Children
from functions import Functions
from watch import Watch

ROOT = Path(__file__).parents[2]
PACKAGE = f"{ROOT}/roce_exporter/"
TESTS_PER_BREAK = 30
SECONDS_PER_BREAK = 2.0
"""CPU-seconds that the chosen tests have taken unbroken."""
FOLDERS = ("unit", "contract", "golden", "drift", "captures", "upgrade", "diagnosis")
"""Whose tests run the package in their own process."""
LEFT_OUT = ("cacheprovider", "faulthandler", "unraisableexception", "threadexception")
"""Plug-ins of pytest that would report what one broken test leaves behind as a failure of the next one, or how a child died."""


class Breaks:
    """The plug-in of pytest: it replaces the loop over the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.random = random.Random(options.seed)  # noqa: S311
        self.watch = Watch()
        self.of_fixture: dict[int, set[int]] = {}
        self.tests: list[dict[str, Any]] = []
        self.breaks: list[dict[str, Any]] = []
        self.unfit = 0
        self.spent: Counter[int] = Counter()
        self.orders: dict[int, list[int]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self) -> None:
        """Hypothesis need not look for the smallest example, and tries fewer. It cannot be imported before pytest begins."""
        hypothesis = importlib.import_module("hypothesis")
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile(
            "breaks", deadline=None, derandomize=True, database=None, phases=phases, max_examples=30
        )

    # In a child: what a test executes, and how it ends.

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What a shared fixture executes counts for each test that uses it."""
        outside, self.watch.seen = self.watch.seen, set()
        try:
            return (yield)
        finally:
            self.of_fixture[id(fixturedef)] = self.watch.seen
            self.watch.seen = outside | self.watch.seen

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[Any]:
        """One letter: passed, failed by an assertion (`a`), by another error (`e`) or by the time limit (`t`)."""
        found = yield
        if found.failed:
            error = call.excinfo.value if call.excinfo else None
            asserted = isinstance(error, AssertionError | pytest.fail.Exception)
            self.letter = "t" if str(error).startswith("Timeout") else "a" if asserted else "e"
        return found

    def run(self, work: dict[str, Any], write: Callable[[str], Any]) -> None:
        """What a child does: break, run, and report each test with its letter, seconds and functions."""
        factory = self.session.config._tmp_path_factory
        factory._given_basetemp, factory._basetemp = work["place"], None
        if "change" in work and not self.functions.replace(work["function"], work["change"]):
            write("unfit")
            return
        if watched := "watched" in work:
            self.watch.watch_threads()
        items = [self.session.items[number] for number in work["tests"]]
        for number, item, following in zip(work["tests"], items, [*items[1:], None], strict=True):
            self.letter, self.watch.seen, used = "p", set(), set()
            if watched:
                self.watch.begin()
            write(f"begin {number}")
            begun = time.perf_counter(), time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds = time.perf_counter() - begun[0], time.process_time() - begun[1]
            if watched:
                fixtures = [one for group in item._fixtureinfo.name2fixturedefs.values() for one in group]
                used = self.watch.seen.union(*(self.of_fixture.get(id(one), ()) for one in fixtures))
            known = {self.functions.of_code[one] for one in used if one in self.functions.of_code}
            write(f"end {json.dumps([number, self.letter, *seconds, sorted(known)])}")
            if work.get("brief") and self.letter != "p":
                break

    # In the parent.

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """The whole run."""
        sys.setprofile(None)
        at_import, self.session = self.watch.seen, session
        for module in pkgutil.walk_packages([PACKAGE], "roce_exporter."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        self.functions = Functions(PACKAGE)
        known = self.functions.of_code
        self.imported = {known[one] for one in at_import if one in known}
        gc.collect()
        gc.freeze()
        self.children = Children(self.options.jobs, self.run)
        try:
            self.record()
            self.break_all()
        except KeyboardInterrupt:
            print("stopped early")
        finally:
            self.children.close()
        return True

    def record(self) -> None:
        """What each test executes; then all once more, in reverse order: a test that fails so cannot be judged."""
        groups = defaultdict(list)
        for number, item in enumerate(self.session.items):
            self.tests.append(
                report.place(item, ROOT) | {"letter": "lost", "functions": [], "seconds": 0.0, "cost": 0.0}
            )
            groups[self.tests[number]["file"]].append(number)
        files = list(groups.values())
        for number, (letter, _, cost, known) in self.in_files({"watched": True}, files):
            self.tests[number] |= {"letter": letter, "functions": known, "cost": cost}
        for number, (letter, seconds, cost, _) in self.in_files({}, [group[::-1] for group in files]):
            before = self.tests[number]["letter"]
            self.tests[number] |= {
                "letter": letter if before == "p" else before,
                "seconds": seconds,
                "cost": cost,
            }
        self.users: dict[int, list[int]] = defaultdict(list)
        for number, test in enumerate(self.tests):
            self.session.items[number].add_marker(pytest.mark.timeout(10 + 10 * test["seconds"]))
            for function in test["functions"] if test["letter"] == "p" else ():
                self.users[function].append(number)
        for users in self.users.values():
            users.sort(key=lambda one: len(self.tests[one]["functions"]) * (0.01 + self.tests[one]["cost"]))
        print(f"{len(self.tests)} tests recorded", flush=True)

    def in_files(self, work: dict[str, Any], groups: list[list[int]]) -> Iterator[tuple[int, list[Any]]]:
        """The results of groups of tests, a child for each; after one that ends a child another child goes on."""
        while groups:
            left = []
            for done in self.children.done(work | {"tests": group} for group in groups):
                yield from done["results"].items()
                rest = [number for number in done["tests"] if number not in done["results"]]
                left += [rest] if rest and done["results"] else []
            groups = left

    def break_all(self) -> None:
        """The planned breaks, those that no test saw with the other tests, and those aimed at tests that never failed."""
        end = time.monotonic() + 60 * self.options.minutes
        plan = self.planned()
        pieces = ((*pair, self.judges(pair[0])) for pair in plan if time.monotonic() < end)
        brief = {"brief": self.options.score}
        self.carry_out(
            brief | {"function": one, "change": other, "tests": some} for one, other, some in pieces
        )
        unseen = [one for one in self.breaks if not one["failed"]]
        print(f"{len(self.breaks)} breaks, of them {len(unseen)} unseen by the first tests", flush=True)
        self.carry_out(self.second(unseen))
        tried = {(one["function"], one["change"], test) for one in self.breaks for test in one["run"]}
        while not self.options.score and self.carry_out(self.aimed(tried)):
            pass

    def planned(self) -> list[tuple[int, int]]:
        """With `--score` a fair sample of all breaks; otherwise those of all functions in rounds, most of them fine ones."""
        # What runs at import alone has run already: a break of it is seen by no test.
        chosen = [
            function
            for function in range(len(self.functions.all))
            if (function in self.users or (self.options.score and function not in self.imported))
            and re.search(self.options.functions, self.functions.place(function))
        ]
        if self.options.score:
            before = json.loads(self.options.unseen.read_text())["breaks"] if self.options.unseen else ()
            names = {self.name(one["place"], one["label"]) for one in before if not one["failed"]}
            everything = [
                (one, number)
                for one in chosen
                for number, change in enumerate(self.functions.changes(one))
                if not self.options.unseen or self.name(self.functions.place(one), change.label) in names
            ]
            print(f"{len(everything)} breaks of {len(chosen)} functions to choose from", flush=True)
            return self.random.sample(everything, min(self.options.breaks, len(everything)))
        queues = []
        for function in chosen:
            fine, extreme = self.mixed(function)
            order = [*fine[:1], *extreme[:1], *fine[1:4], *extreme[1:], *fine[4:]]
            queues.append([(function, change) for change in order])
        plan: list[tuple[int, int]] = []
        while any(queues) and len(plan) < self.options.breaks:
            self.random.shuffle(queues)
            plan += [queue.pop(0) for queue in queues if queue]
        return plan[: self.options.breaks]

    @staticmethod
    def name(place: str, label: str) -> str:
        """A break, without its line: the package may have changed since."""
        return f"{re.sub(':[0-9]+ ', ' ', place)} {label}"

    def mixed(self, function: int) -> tuple[list[int], list[int]]:
        """The fine and the extreme changes of a function by their numbers, in random order."""
        found = list(enumerate(self.functions.changes(function)))
        self.random.shuffle(found)
        fine = [number for number, change in found if not change.extreme]
        return fine, [number for number, change in found if change.extreme]

    def judges(self, function: int, only: set[int] | None = None) -> list[int]:
        """The tests that judge a break: the quickest and most specific of those that execute the function."""
        tests, seconds = [], 0.0
        for number in self.users[function]:
            if only is None or number in only:
                tests.append(number)
                seconds += self.tests[number]["cost"]
                if len(tests) >= TESTS_PER_BREAK or seconds > SECONDS_PER_BREAK:
                    break
        return tests

    def second(self, unseen: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Breaks that no test saw, for more of the tests that execute the function."""
        for one in unseen:
            rest = [test for test in self.users[one["function"]] if test not in one["run"]]
            if rest:
                tests = rest[: 5 * TESTS_PER_BREAK]
                found = {"function": one["function"], "change": one["change"], "tests": tests, "again": one}
                yield found | {"brief": self.options.score}

    def aimed(self, tried: set[tuple[int, int, int]]) -> Iterator[dict[str, Any]]:
        """One more break for each test that has not failed: of the functions it executes, the rarest first."""
        failed = {test for one in self.breaks for test in one["failed"]}
        waiting = {
            number
            for number, test in enumerate(self.tests)
            if test["letter"] == "p" and number not in failed and self.spent[number] < self.options.aimed
        }
        for number in sorted(waiting):
            rarest = sorted(self.tests[number]["functions"], key=lambda one: (len(self.users[one]), one))
            left = (
                (one, change)
                for one in rarest
                for change in self.order(one)
                if (one, change, number) not in tried
            )
            if number in waiting and (pair := next(left, None)) is not None:
                tests = list(dict.fromkeys([number, *self.judges(pair[0], waiting)]))
                waiting -= set(tests)
                tried |= {(*pair, test) for test in tests}
                self.spent.update(tests)
                yield {"function": pair[0], "change": pair[1], "tests": tests}

    def order(self, function: int) -> list[int]:
        """At most six changes of a function: two extreme ones, then fine ones."""
        if function not in self.orders:
            fine, extreme = self.mixed(function)
            self.orders[function] = [*extreme[:2], *fine][:6]
        return self.orders[function]

    def carry_out(self, pieces: Iterable[dict[str, Any]]) -> int:
        """Do breaks and keep their results; returns how many were done."""
        done = 0
        for done, work in enumerate(self.children.done(pieces), 1):
            if "unfit" in work:
                self.unfit += 1
                continue
            one = work.get("again") or self.entry(work["function"], work["change"])
            one["run"] += work["results"]
            one["failed"] |= {test: result[0] for test, result in work["results"].items() if result[0] != "p"}
            if done % 100 == 0:
                print(f"{done} breaks", flush=True)
        return done

    def entry(self, function: int, change: int) -> dict[str, Any]:
        """A break in the results."""
        made = self.functions.changes(function)[change]
        place = self.functions.place(function, made.line)
        named = {"function": function, "change": change, "place": place, "label": made.label}
        self.breaks.append(named | {"extreme": made.extreme, "run": [], "failed": {}})
        return self.breaks[-1]


def main() -> int:
    """Collect, break, report; 1 if a test never failed and is not excused: once the list has an entry, until then it is only named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--breaks", type=int, default=3000, help="how many, before those aimed at single tests"
    )
    parser.add_argument(
        "--minutes", type=float, default=600, help="no new planned break after so many minutes"
    )
    parser.add_argument("--aimed", type=int, default=12, help="breaks aimed at a test that has not failed")
    parser.add_argument(
        "--functions", default="", help="only functions whose 'file:line name' has this pattern"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--score", action="store_true", help="count seen breaks only: stop at the first failure"
    )
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--least", type=float, default=0.0, help="exit code 1 if fewer percent are seen")
    parser.add_argument("--unseen", type=Path, help="with --score: only what no test of these results saw")
    options, arguments = parser.parse_known_args()
    if not arguments:
        options.score, arguments = True, ["--tier=test", *(f"tests/{folder}" for folder in FOLDERS)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    breaks = Breaks(options)
    breaks.watch.begin()
    flags = [
        "-q",
        "--capture=no",
        "--assert=plain",
        "--tb=native",
        "--hypothesis-profile=breaks",
        *(f"-pno:{name}" for name in LEFT_OUT),
    ]
    status = pytest.main([*flags, *arguments], plugins=[breaks])
    if not breaks.tests:
        return int(status) or 1
    results = {
        "tests": breaks.tests,
        "breaks": breaks.breaks,
        "functions": [breaks.functions.place(number) for number in range(len(breaks.functions.all))],
        "imported": sorted(breaks.imported),
        "unfit": breaks.unfit,
        "score": options.score,
    }
    if options.json:
        options.json.write_text(json.dumps(results))
    print(report.text(results))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{used.ru_utime + used.ru_stime:.0f} CPU-seconds")
    if not breaks.breaks:
        print("nothing was broken: no test executes a function of --functions")
        return 1
    share = 100 * sum(bool(one["failed"]) for one in breaks.breaks) / len(breaks.breaks)
    if share < options.least:
        print(f"{share:.1f} % of the breaks were seen; --least={options.least:g}")
        return 1
    # In a sample most tests never fail.
    return 1 if not options.least and report.excused() and report.unexcused(results) else 0


if __name__ == "__main__":
    sys.exit(main())
