"""Small changes of a syntax tree, each of them a bug that somebody could write.

`changes(path)` lists all changes of a file, always the same; `changed(change)` is the tree with one of them. A change
has a name that stays when other functions of the file are edited, so that a sample can be drawn again and resumed.
Texts for people are left alone: docstrings, errors, `repr`, annotations.
"""

import ast
import copy
import functools
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[2]
# what decides sensitivity, price, noise, canonical text, charge, bounds or emission
DECIDING = (
    *("sfumato/sensitivity.py", "sfumato/rounding.py", "sfumato/loss/views/gdp.py", "sfumato/loss/views/zcdp.py"),
    *(
        "sfumato/loss/kinds/discrete_gaussian.py",
        "sfumato/loss/views/gaussian_noise.py",
        "sfumato/ledger",
        "sfumato/curator",
        "sfumato/aggregates",
    ),
    *("sfumato/sql", "sfumato/mechanisms", "sfumato/noise", "sfumato/sampling", "sfumato/engines"),
    *("sfumato/learn", "sfumato/local"),
)
NEVER_RUN = {"__repr__", "__str__", "__dir__", "display", "describe"}  # for people
PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.LShift, ast.RShift), (ast.And, ast.Or)),
)
OTHER = dict(PAIRS) | {new: old for old, new in PAIRS} | {ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv}
NAMES = {"min": "max", "floor": "ceil", "any": "all", "minimum": "maximum", "lower": "upper", "first": "last"}
NAMES |= {new: old for old, new in NAMES.items()}
ROUNDING = ("round", "sum", "product", "quotient", "sqrt")  # sfumato.rounding has each of them up and down
SQL = re.compile(r"\b[A-Z][A-Z_]{2,}\b|[<>=]")
FRAGMENTS = (
    *(("DISTINCT ", ""), (" NOT", ""), ("<=", "<"), (">=", ">"), ("<>", "="), (" < ", " <= "), (" > ", " >= ")),
    *((" = ", " <> "), (" AND ", " OR "), (" OR ", " AND "), ("LEAST", "GREATEST"), ("GREATEST", "LEAST")),
    *(("MIN(", "MAX("), ("MAX(", "MIN("), ("FLOOR(", "CEIL("), ("CEIL(", "FLOOR("), (" - 1", ""), (" + 1", "")),
    *(("LEFT JOIN", "JOIN"), ("IS NULL", "IS NOT NULL"), ("UNION ALL", "UNION"), (" DESC", ""), ("COUNT(*)", "1")),
    *(("ELSE 0", "ELSE 1"), ("THEN 0", "THEN 1"), ("'", ""), ("ROW_NUMBER", "RANK"), ("SUM(", "MAX(")),
)
CONSTANTS = {"bool": (True, False), "int": (0, 1), "float": (0.0, 1.0), "str": ("",)}


@dataclass(frozen=True)
class Change:
    """One change of one file: the number-th that `sites` yields."""

    path: str
    number: int
    kind: str
    name: str
    line: int
    statement: int  # the number of the statement of a function it is in, as `statements` counts; −1 outside
    before: str
    after: str


@dataclass(frozen=True)
class Site:
    """A place in a tree and what to put there; None removes it from a list."""

    kind: str
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST | None

    def old(self) -> ast.AST:
        found = getattr(self.parent, self.field)
        return found if self.index is None else found[self.index]

    def put(self) -> None:
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        elif self.new is None:
            del getattr(self.parent, self.field)[self.index]
        else:
            getattr(self.parent, self.field)[self.index] = self.new


def deciding(only: str = "") -> list[str]:
    """The files that are changed, from the repository's root."""
    files = [file for one in DECIDING for file in ([ROOT / one] if one.endswith(".py") else (ROOT / one).rglob("*.py"))]
    return sorted(name for file in files if (name := file.relative_to(ROOT).as_posix()).startswith(only))


def parsed(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), path)


def statements(tree: ast.Module) -> dict[int, int]:
    """The statements that are inside functions, by identity: their numbers."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for one in functions for part in one.body for node in ast.walk(part)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and id(node) in inside]
    return {id(node): number for number, node in enumerate(found)}


@functools.cache
def changes(path: str) -> tuple[Change, ...]:
    """All changes of a file."""
    tree, found, taken = parsed(path), [], Counter[str]()
    numbers = statements(tree)
    for number, (site, where, statement) in enumerate(walk(tree, "", tree)):
        old = site.old()
        statement = old if isinstance(old, ast.stmt) else statement
        before, after = text(old), "" if site.new is None else text(site.new)
        name = f"{path}:{where}:{site.kind}:{short(before)} -> {short(after)}"
        taken[name] += 1
        name += f" #{taken[name]}" if taken[name] > 1 else ""
        line = getattr(old, "lineno", getattr(statement, "lineno", 0))
        found.append(Change(path, number, site.kind, name, line, numbers.get(id(statement), -1), before, after))
    return tuple(found)


def changed(change: Change) -> ast.Module:
    """The tree of a file with one change."""
    tree = parsed(change.path)
    sites = (site for site, _, _ in walk(tree, "", tree))
    next(site for number, site in enumerate(sites) if number == change.number).put()
    return ast.fix_missing_locations(tree)


def sample(files: list[str], count: int, seed: int) -> list[Change]:
    """Random changes, kinds taking turns. Of a kind those whose names have the least keyed hash come first, so that
    edits elsewhere do not disturb the sample, and a longer one begins with the shorter."""
    kinds: dict[str, list[Change]] = {}
    for one in sorted((one for path in files for one in changes(path)), key=lambda one: keyed_hash(one.name, seed)):
        kinds.setdefault(one.kind, []).append(one)
    turns = zip_longest(*(kinds[kind] for kind in sorted(kinds)))
    return [one for turn in turns for one in turn if one is not None][:count]


def keyed_hash(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode()).digest()


def text(node: ast.AST) -> str:
    if isinstance(node, ast.cmpop | ast.operator | ast.boolop):
        return type(node).__name__
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))


def short(words: str) -> str:
    words = " ".join(words.split())
    return words if len(words) <= 80 else f"{words[:60]}…{hashlib.sha256(words.encode()).hexdigest()[:8]}"


# ---- where --------------------------------------------------------------------------------------------------------


def walk(node: ast.AST, where: str, statement: ast.AST) -> Iterator[tuple[Site, str, ast.AST]]:
    """Every site at or below a node, with the function it is in and the innermost statement."""
    statement = node if isinstance(node, ast.stmt) else statement
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = f"{where}.{node.name}".lstrip(".")
    for kind, field, index, new in sites(node):
        yield Site(kind, node, field, index, new), where, statement
    for child in children(node):
        if not (isinstance(child, ast.FunctionDef) and child.name in NEVER_RUN):
            yield from walk(child, where, statement)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """What is below and decides something."""
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.Assert():
            return
        case ast.Expr(value=ast.Constant()):
            return
        case ast.AnnAssign(value=value):
            yield from [value] if value else []
        case ast.FunctionDef(body=body, args=arguments):
            yield from [*arguments.defaults, *[one for one in arguments.kw_defaults if one], *body]
        case ast.ClassDef(body=body):
            yield from body
        case ast.Call() if for_people(node):
            return
        case ast.If() if for_people(node):
            return
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case _:
            yield from ast.iter_child_nodes(node)


def for_people(node: ast.AST) -> bool:
    """Does a call make an error, a warning, a line of a log or a type, or a condition look at types alone?"""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="warnings" | "log"))):
            return True
        case ast.Call(func=ast.Name(id=name)):
            made = re.fullmatch(r"(Invalid|Unknown|Unbounded|Query|Budget|Policy)[A-Z]\w+|\w+Error|cast|TypeVar", name)
            return made is not None
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=value):
            return for_people(value)
    return False


# ---- what ---------------------------------------------------------------------------------------------------------

New = tuple[str, str, int | None, ast.AST | None]


def sites(node: ast.AST) -> Iterator[New]:
    """kind, field, index, replacement: the changes of a node's own fields."""
    match node:
        case ast.Compare(ops=ops):
            yield from (("comparison", "ops", i, OTHER[type(op)]()) for i, op in enumerate(ops))
        case ast.BoolOp(op=op):
            yield "and/or", "op", None, OTHER[type(op)]()
        case ast.If() | ast.While() | ast.IfExp():
            yield "negated condition", "test", None, ast.UnaryOp(ast.Not(), node.test)
        case ast.comprehension(ifs=ifs):
            yield from (("dropped filter", "ifs", i, None) for i in range(len(ifs)))
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OTHER:
            yield "operator", "op", None, OTHER[type(node.op)]()
        case ast.Call(func=function, args=[_, towards]) if name_of(function) == "nextafter":
            yield (
                "direction",
                "args",
                1,
                ast.IfExp(ast.Compare(towards, [ast.Gt()], [number(0)]), number(-math.inf), number(math.inf)),
            )
    if isinstance(node, ast.FunctionDef):
        yield from returned(node)
    if isinstance(node, ast.Call):
        yield from (("dropped keyword", "keywords", i, None) for i, one in enumerate(node.keywords) if one.arg)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "targets", "target", "bases", "ops", "op", "ctx"):
            continue
        if isinstance(value, list):
            yield from removed(node, field, value)
        for i, one in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(one, ast.expr):
                yield from ((kind, field, i, new) for kind, new in instead(one, node))


def removed(node: ast.AST, field: str, parts: list[ast.AST]) -> Iterator[New]:
    """A list without one of its elements, or a block without one of its statements."""
    loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and field == "elts" and len(parts) > 1 and loaded:
        yield from (("dropped element", field, i, None) for i in range(len(parts)))
    for i, one in enumerate(parts):
        if for_people(one):
            continue
        match one:
            case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign() | ast.If(orelse=[]) | ast.Continue():
                yield "removed statement", field, i, ast.copy_location(ast.Pass(), one)


def returned(function: ast.FunctionDef) -> Iterator[New]:
    """A constant returned at once."""
    kind = text(function.returns) if function.returns else ""
    if not any(isinstance(node, ast.Return) for node in ast.walk(function)):
        return
    for value in CONSTANTS.get(kind, ()):
        yield "returned constant", "body", 0, ast.copy_location(ast.Return(ast.Constant(value)), function.body[0])


def instead(node: ast.expr, parent: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Other expressions in place of one."""
    match node:
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield from (("constant", number(value + step)) for step in (1, -1))
        case ast.Constant(value=float() as value):
            yield from (("constant", number(other)) for other in ((value * 2, value / 2) if value else (1.0,)))
        case ast.Constant(value=str() as value) if not isinstance(parent, ast.Expr | ast.JoinedStr):
            yield from (("SQL", ast.Constant(new)) for new in fragments(value))
        case ast.JoinedStr(values=values) if any(sql_like(one) for one in values):
            for i, one in enumerate(values):
                if isinstance(one, ast.Constant):
                    others = (
                        ast.JoinedStr([*values[:i], ast.Constant(new), *values[i + 1 :]])
                        for new in fragments(one.value)
                    )
                    yield from (("SQL", other) for other in others)
                else:
                    yield "dropped fragment", ast.JoinedStr([*values[:i], *values[i + 1 :]])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=inner):
            yield "dropped sign", inner
        case ast.BoolOp(op=op, values=values):
            rests = [[*values[:i], *values[i + 1 :]] for i in range(len(values))]
            yield from (("dropped operand", ast.BoolOp(op, rest) if rest[1:] else rest[0]) for rest in rests)
        case ast.BinOp(left=left, right=right, op=op) if not isinstance(op, ast.Mod | ast.BitOr):
            yield from (("dropped term", left), ("dropped term", right))
        case ast.Attribute(value=inner, attr=name) if name in NAMES:
            yield "name", ast.Attribute(inner, NAMES[name], ast.Load())
        case ast.Name(id=name) if name in NAMES and isinstance(parent, ast.Call):
            yield "name", ast.Name(NAMES[name], ast.Load())
        case ast.Name(id=name) if (other := other_direction(name)) is not None:
            yield "direction", other
    if isinstance(node, ast.Call):
        yield from without_call(node)


def without_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """f(x) → x; x.f(y) → x; and f(x, y) → f(y, x)."""
    name = name_of(node.func)
    if for_people(node) or name in (
        "cast",
        "len",
        "range",
        "isinstance",
        "enumerate",
        "zip",
        "property",
        "type",
        "super",
    ):
        return
    if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name | ast.Constant):
        yield "dropped call", node.func.value
    elif node.args and not isinstance(node.args[0], ast.Starred | ast.GeneratorExp):
        yield "dropped call", node.args[0]
    starred = any(isinstance(one, ast.Starred) for one in node.args)
    if len(node.args) == 2 and not starred and name not in ("min", "max", "minimum", "maximum"):
        swapped = ast.Call(node.func, [node.args[1], node.args[0]], node.keywords)
        yield "swapped arguments", swapped


def fragments(value: str) -> list[str]:
    """A piece of SQL with one word changed, at its first place."""
    if not SQL.search(value) or "found:" in value or "do: " in value:
        return []
    return [new for old, other in FRAGMENTS if (new := value.replace(old, other, 1)) != value]


def sql_like(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant) and bool(re.search(r"\b[A-Z]{2,}\b", node.value)) and "found:" not in node.value
    )


def other_direction(name: str) -> ast.expr | None:
    stem, _, way = name.rpartition("_")
    if stem not in ROUNDING or way not in ("up", "down"):
        return None
    home = ast.parse("__import__('sfumato.rounding', fromlist=['rounding'])", mode="eval").body
    return ast.Attribute(home, f"{stem}_{'down' if way == 'up' else 'up'}", ast.Load())


def name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def number(value: float) -> ast.expr:
    return ast.UnaryOp(ast.USub(), ast.Constant(-value)) if value < 0 else ast.Constant(value)
