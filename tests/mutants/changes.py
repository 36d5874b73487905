"""The ways in which breaks.py breaks a function: each is one change of its syntax tree.

Extreme ones replace the whole body: nothing is returned, an empty value of the annotated type, the opposite truth, or the
argument itself. Fine ones change one operator, constant, condition or statement. A test that fails only under the extreme
ones sees that the function runs, not what it does.
"""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

SWAPPED = (
    "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, And Or, Add Sub, Mult Div, BitAnd BitOr, LShift RShift"
)
PAIRS = [pair.split() for pair in SWAPPED.split(", ")]
OTHER = {
    getattr(ast, name): getattr(ast, other)
    for name, other in [*PAIRS, *(pair[::-1] for pair in PAIRS), ("FloorDiv", "Mult"), ("Mod", "FloorDiv")]
}
"""The operator that takes another's place."""

VALUES = {
    "0": "int",
    "0.0": "float",
    "''": "str",
    "b''": "bytes",
    "False": "bool",
    "[]": "list",
    "{}": "dict Mapping",
}
EMPTY = {
    name: value
    for value, names in (
        VALUES | {"()": "tuple Sequence Iterable Collection", "iter(())": "Iterator"}
    ).items()
    for name in names.split()
}
"""The empty value of an annotated type."""

DROPPED = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Delete,
    ast.Raise,
    ast.Return,
    ast.Break,
    ast.Continue,
)


class Change(NamedTuple):
    """One way to break a function; `apply` changes the tree that the change was found in."""

    line: int
    label: str
    extreme: bool
    apply: Callable[[], Any]


def expression(text: str) -> ast.expr:
    """The tree of an expression."""
    return ast.parse(text, mode="eval").body


def outermost(node: ast.AST, path: str = "") -> Iterator[tuple[str, int, Function]]:
    """The outermost functions of a module: qualified name, first line (that of a decorator), tree."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            name = "<lambda>" if isinstance(child, ast.Lambda) else child.name
            decorators = [] if isinstance(child, ast.Lambda) else child.decorator_list
            yield path + name, min([child.lineno, *(one.lineno for one in decorators)]), child
            for decorator in decorators:
                yield from outermost(ast.Expression(decorator), path)
        else:
            yield from outermost(child, f"{path}{child.name}." if isinstance(child, ast.ClassDef) else path)


def own_scope(nodes: list[Any]) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    for node in nodes:
        yield node
        if not isinstance(node, (*Function.__args__, ast.ClassDef)):
            yield from own_scope(list(ast.iter_child_nodes(node)))


def extreme(function: Function) -> Iterator[Change]:
    """The changes of the whole body."""

    def body(label: str, text: str) -> Change:
        if isinstance(function, ast.Lambda):
            replace = partial(setattr, function, "body", expression(text))
        else:
            replace = partial(setattr, function, "body", ast.parse(label).body)
        return Change(function.lineno, label, True, replace)

    scope = list(own_scope(function.body if isinstance(function.body, list) else [function.body]))
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in scope):
        yield body("return; yield", "()")
        return
    yield body("return None", "None")
    returns = (
        "" if isinstance(function, ast.Lambda) or not function.returns else ast.unparse(function.returns)
    )
    if returns == "None":
        return
    if (empty := EMPTY.get(returns.partition("[")[0])) is not None:
        yield body(f"return {empty}", empty)
    if returns == "bool":
        yield body("return True", "True")
        found = [node for node in scope if isinstance(node, ast.Return) and node.value]

        def negate() -> None:
            for node in found:
                node.value = ast.UnaryOp(ast.Not(), node.value)

        yield Change(function.lineno, "return not ...", True, negate)
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    if names:
        yield body(f"return {names[0]}", names[0])


def places(node: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None]]]:
    """Every node below this one, with the call that puts another in its place."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "format_spec"):
            continue
        if isinstance(value, ast.AST):
            yield value, partial(setattr, node, field)
            yield from places(value)
        elif isinstance(value, list):
            for position, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield item, partial(value.__setitem__, position)
                    yield from places(item)


def constants(value: object) -> list[object]:
    """What takes a constant's place."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1]
    if isinstance(value, str):
        return [value + "~"]
    return [value + b"~"] if isinstance(value, bytes) else []


def statement(node: ast.AST) -> list[ast.AST]:
    """What takes a statement's place: nothing, if it is one that can be dropped."""
    if isinstance(node, ast.Expr):
        return [] if isinstance(node.value, ast.Constant | ast.Yield) else [ast.Pass()]
    return [ast.Pass()] if isinstance(node, DROPPED) else []


def instead(node: ast.AST) -> list[ast.AST]:
    """What takes a node's place."""
    match node:
        case ast.Constant():
            return [ast.Constant(value) for value in constants(node.value)]
        case ast.IfExp():
            return [ast.IfExp(node.test, node.orelse, node.body)]
        case ast.comprehension(ifs=[_, *_]):
            return [ast.comprehension(node.target, node.iter, [], node.is_async)]
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return [node.operand]
        case _ if type(node) in OTHER:
            return [OTHER[type(node)]()]
    return statement(node)


def fine(function: Function) -> Iterator[Change]:
    """The changes of one node."""
    whole = isinstance(function.body, list)
    inside = ast.Module(function.body, []) if whole else ast.Expression(function.body)
    nodes = list(places(inside))
    texts = {
        node.value for node, _ in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    line = function.lineno
    for node, put in nodes:
        line = getattr(node, "lineno", line)
        if isinstance(node, ast.If):
            for value in (True, False):
                yield Change(line, f"if {value}", False, partial(setattr, node, "test", ast.Constant(value)))
        for other in instead(node) if node not in texts else ():
            names = [ast.unparse(one) or type(one).__name__ for one in (node, other)]
            if isinstance(node, ast.operator | ast.cmpop | ast.boolop):
                names = [type(one).__name__ for one in (node, other)]
            yield Change(line, " -> ".join(names)[:100], False, partial(put, other))


def changes_of(function: Function) -> list[Change]:
    """All changes of a function, always in the same order."""
    return [*extreme(function), *fine(function)]
