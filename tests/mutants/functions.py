"""The functions of the package that is imported here, and how one of them is replaced."""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from changes import Change, Function, changes_of, outermost


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


class Functions:
    """The outermost functions of a package; what is nested in one belongs to it."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._live: dict[int, list[FunctionType]] = defaultdict(list)
        gc.unfreeze()  # what tests/conftest.py has frozen is in no list of objects
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(package):
                self._live[id(thing.__code__)].append(thing)
        found = [functions[0].__code__ for functions in self._live.values()]
        self.all = sorted(
            (code for code in found if "<locals>" not in code.co_qualname),
            key=lambda code: (code.co_filename, code.co_firstlineno, code.co_qualname),
        )
        self.of_code = {id(inner): number for number, code in enumerate(self.all) for inner in codes(code)}
        self._texts = {code.co_filename: Path(code.co_filename).read_text() for code in self.all}

    def place(self, number: int, line: int = 0) -> str:
        """`file:line name`."""
        code = self.all[number]
        path = code.co_filename.removeprefix(self._package)
        return f"{path}:{line or code.co_firstlineno} {code.co_qualname}"

    def _syntax(self, number: int) -> tuple[ast.Module, Function | None]:
        """A fresh tree of the module, and the function in it; None for lambdas of one line, which are alike."""
        code = self.all[number]
        tree = ast.parse(self._texts[code.co_filename])
        key = (code.co_qualname, code.co_firstlineno)
        found = [node for name, line, node in outermost(tree) if (name, line) == key]
        return tree, found[0] if len(found) == 1 else None

    def changes(self, number: int) -> list[Change]:
        """What can be broken in a function."""
        _, function = self._syntax(number)
        return changes_of(function) if function is not None else []

    def replace(self, number: int, change: int) -> bool:
        """Break a function in this process; false if that is no valid code, or the same."""
        code = self.all[number]
        tree, function = self._syntax(number)
        changes_of(function)[change].apply()
        try:
            module = compile(ast.fix_missing_locations(tree), code.co_filename, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, TypeError):
            return False
        key = (code.co_qualname, code.co_firstlineno)
        new = next((one for one in codes(module) if (one.co_qualname, one.co_firstlineno) == key), code)
        if new == code or new.co_freevars != code.co_freevars:
            return False
        before, after = list(codes(code)), list(codes(new))
        # Functions inside this one may exist already: those that it made at import.
        pairs = zip(before, after, strict=True) if len(before) == len(after) else [(code, new)]
        for old, put in pairs:
            for function in self._live.get(id(old), ()):
                if len(old.co_freevars) == len(put.co_freevars):
                    function.__code__ = put
        return True
