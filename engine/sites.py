"""Where a policy decided: the functions that it was in, as a text that names no machine.

A site reads outermost first, each function with the line in it, counted from its `def`:

    engine/schedulers/bucketed.py: schedule+7 > _decode+3 > _set_aside+6 [4f1c22ab]

A file is named where it is another one than before, and a function with its class where its file
has others of that name. In brackets is a digest of the source of these functions: whoever has a
file of that name can tell whether it is what ran. An edit elsewhere in a file changes no site.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from types import CodeType, FrameType, GeneratorType
from typing import NamedTuple

PACKAGE = "stepscope."
DIGEST_BYTES = 4
_FRAME = re.compile(r"(?:(?P<file>[^:]+): )?(?P<name>[^ :+]+)\+(?P<line>\d{1,7})")
_SITE = re.compile(r"(?P<frames>.+?)(?: \[(?P<digest>[0-9a-f]{8})\])?")


class Function(NamedTuple):
    """A function in a file: what a site calls it, the line of its `def`, from 1, and its source."""

    name: str
    first: int
    text: str


class InFunction(NamedTuple):
    """A place in a function: the file as its module is called, and the line after its `def`."""

    file: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Site:
    """Functions of a policy, outermost first; `digest` is None where their source was not there."""

    functions: tuple[InFunction, ...]
    digest: str | None = None

    @classmethod
    def read(cls, text: str) -> Site | None:
        """Read a site as it is written; None of a text that is none."""
        found = _SITE.fullmatch(text)
        functions: list[InFunction] = []
        for part in found["frames"].split(" > ") if found else ():
            frame = _FRAME.fullmatch(part)
            if frame is None or not (frame["file"] or functions):
                return None
            file = frame["file"] or functions[-1].file
            functions.append(InFunction(file, frame["name"], int(frame["line"])))
        return cls(tuple(functions), found["digest"]) if found else None

    def __str__(self) -> str:
        """Write it as it is recorded."""
        before = [None, *(each.file for each in self.functions)]
        parts = [
            f"{'' if file == each.file else f'{each.file}: '}{each.name}+{each.line}"
            for file, each in zip(before, self.functions, strict=False)
        ]
        return " > ".join(parts) + (f" [{self.digest}]" if self.digest else "")


class Sites:
    """Gives sites as texts; one that was seen before costs a look into a dictionary."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, ...], str | None] = {}
        # An object's id is its own for as long as somebody holds it.
        self._codes: list[CodeType] = []

    def of_plan(self, plan: object) -> str | None:
        """Where a generator stands, and those that it yields from; None of anything else."""
        places: list[int] = []
        inner = plan
        while type(inner) is GeneratorType and (frame := inner.gi_frame) is not None:
            places += (id(inner.gi_code), frame.f_lasti)
            inner = inner.gi_yieldfrom
        key = tuple(places)
        if key not in self._texts:
            self._texts[key] = self._told([*_frames_of(plan)])
        return self._texts[key]

    def of_callers(self, depth: int) -> str | None:
        """Where the function `depth` calls above stands, and those of its file that called it.

        Whoever calls this is at depth 0.
        """
        inner = sys._getframe(depth + 1)
        file = inner.f_code.co_filename
        frames: list[FrameType] = []
        places: list[int] = []
        each: FrameType | None = inner
        while each is not None and each.f_code.co_filename == file:
            frames.append(each)
            places += (id(each.f_code), each.f_lasti)
            each = each.f_back
        key = tuple(places)
        if key not in self._texts:
            self._texts[key] = self._told(frames[::-1])
        return self._texts[key]

    def _told(self, frames: Sequence[FrameType]) -> str | None:
        self._codes += (frame.f_code for frame in frames)
        site = site_of(frames)
        return str(site) if site else None


def _frames_of(plan: object) -> Iterator[FrameType]:
    while isinstance(plan, GeneratorType) and plan.gi_frame is not None:
        yield plan.gi_frame
        plan = plan.gi_yieldfrom


def site_of(frames: Sequence[FrameType]) -> Site | None:
    """Say where frames stand, outermost first; what has no name of its own is left out."""
    named = [frame for frame in frames if not frame.f_code.co_name.startswith("<")]
    if not named:
        return None
    found = [_function_of(frame.f_code) for frame in named]
    functions = tuple(
        InFunction(
            file_of(str(frame.f_globals.get("__name__"))),
            known.name if known else frame.f_code.co_qualname,
            frame.f_lineno - (known.first if known else frame.f_code.co_firstlineno),
        )
        for frame, known in zip(named, found, strict=True)
    )
    return Site(functions, digest_of(found))


def file_of(module: str) -> str:
    """The file of a module as a site calls it: from the package on, of another one from its top."""
    return f"{module.removeprefix(PACKAGE).replace('.', '/')}.py"


def digest_of(functions: Iterable[Function | None]) -> str | None:
    """Digest the source of functions; None where that of any is not known."""
    digest = blake2b(digest_size=DIGEST_BYTES)
    for each in functions:
        if each is None:
            return None
        digest.update(each.text.encode() + b"\0")
    return digest.hexdigest()


def functions_in(text: str) -> dict[str, Function]:
    """Every function of a module's source, by its qualified name; the last of several."""
    lines = text.split("\n")
    found: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
    inside: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
    while inside:
        node, prefix = inside.pop(0)
        for child in ast.iter_child_nodes(node):
            below = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[f"{prefix}{child.name}"] = child
                below = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.ClassDef):
                below = f"{prefix}{child.name}."
            if not isinstance(child, ast.expr):
                inside.append((child, below))
    times = Counter(each.name for each in found.values())
    return {
        name: Function(
            each.name if times[each.name] == 1 else name,
            each.lineno,
            "\n".join(lines[each.lineno - 1 : each.end_lineno]),
        )
        for name, each in found.items()
    }


@lru_cache
def functions_of(file: str) -> Mapping[str, Function]:
    """The functions of a file; none where it cannot be read, or is no Python."""
    try:
        with tokenize.open(file) as opened:
            return functions_in(opened.read())
    except (OSError, SyntaxError, ValueError):
        return {}


def _function_of(code: CodeType) -> Function | None:
    return functions_of(code.co_filename).get(code.co_qualname)
