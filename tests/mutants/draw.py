"""Places of the product where an operator, a bound or a returned value can be changed.

A mutant is a piece of source and what replaces it, by byte offsets: lines keep their numbers.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("app", "ingest", "analyzers", "engine")
INSTALLED_ENGINES = ("ingest/attach/", "ingest/replay/", "app/replay/", "analyzers/replay/")
"""Code that runs inside an engine that is not installed where the tests run."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.Add, ast.LShift: ast.RShift, ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of `file` (relative to the root) from byte `start` to `end`, on line `line`."""

    number: int
    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:60] for text in (self.old, self.new))
        return f"#{self.number} {self.file}:{self.line}: {old} -> {new}"


def draw(root: Path, num: int, seed: int) -> list[Mutant]:
    """Return mutants drawn from all places of the product, each place as likely as any other."""
    places = [place for file in _files(root) for place in _places(root, file)]
    drawn = random.Random(seed).sample(places, min(num, len(places)))
    return [Mutant(number, *place) for number, place in enumerate(drawn)]


def mutated(source: bytes, mutant: Mutant) -> bytes:
    """Return the source of the mutant's file with the change made."""
    return source[: mutant.start] + mutant.new.encode() + source[mutant.end :]


def probed(source: bytes, mutants: Sequence[Mutant], probe: str) -> bytes:
    """Return a file's source in which each mutant's place calls `probe` with its number first."""
    edits = [(each.start, 1, -each.end, f"({probe}({each.number}),(") for each in mutants]
    edits += [(each.end, 0, -each.start, "))[1]") for each in mutants]
    parts, last = [], 0
    for at, _, _, text in sorted(edits):  # what closes comes first, and the inner place within
        parts += [source[last:at], text.encode()]
        last = at
    return b"".join([*parts, source[last:]])


def _files(root: Path) -> Iterator[str]:
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if not name.startswith(INSTALLED_ENGINES):
                yield name


def _places(root: Path, file: str) -> Iterator[tuple[str, int, int, int, str, str]]:
    source = (root / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, new in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(ast.fix_missing_locations(new))
        yield file, node.lineno, start, end, source[start:end].decode(), f"({text})"


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each expression that can be changed, and what it becomes; not annotations and texts."""
    if isinstance(node, ast.JoinedStr | ast.pattern) or _is_for_types(node):
        return
    if isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield node.value, ast.Constant(None)
    elif isinstance(node, ast.expr) and (new := _changed(node)):
        yield node, new
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        children = value if isinstance(value, list) else [value]
        for child in children:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changed(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op) in _COMPARISONS:
            return ast.Compare(left, [_COMPARISONS[type(op)]()], right)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            has_text = any(map(_is_text, (left, right)))
            return None if has_text else ast.BinOp(left, _OPERATORS[type(op)](), right)
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return ast.Constant(number + 1)
    return None


def _is_text(node: ast.expr) -> bool:
    is_literal = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_literal or isinstance(node, ast.JoinedStr)
