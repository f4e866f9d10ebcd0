"""The page of what `import stepscope` offers: signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Any

import stepscope

WIDEST = 90
HEAD = """# Python

What `import stepscope` offers, made from its docstrings by `make docs`. What is not here may change
with every version.

```python
{example}
```
"""


def python_page() -> str:
    """Return the page: the example of the package, then a part for each name."""
    example = re.search(r"(?:^ {4}.+\n|^\n(?= ))+", inspect.getdoc(stepscope) or "", re.MULTILINE)
    assert example
    parts = [_part(name, getattr(stepscope, name)) for name in vars(stepscope)["_HOMES"]]
    return "\n".join([HEAD.format(example=textwrap.dedent(example[0]).strip()), *parts])


def _part(name: str, offered: Any) -> str:
    source = ast.parse(textwrap.dedent(inspect.getsource(offered))).body[0]
    parts = [f"## {name}", _signature(name, source), inspect.getdoc(offered) or ""]
    if isinstance(source, ast.ClassDef):
        parts += [_fields(source)]
        parts += _values(offered) if issubclass(offered, Enum) else []
        parts += _members(name, source)
    return "\n\n".join(part for part in parts if part) + "\n"


def _signature(name: str, source: ast.stmt) -> str:
    if isinstance(source, ast.ClassDef):
        begun = [each for each in source.body if _is_named(each, "__init__")]
        return _signature(name, begun[0]) if begun else ""
    assert isinstance(source, ast.FunctionDef)
    arguments = [*source.args.posonlyargs, *source.args.args]
    if arguments and arguments[0].arg in {"self", "cls"}:
        source.args.args.pop(0)
    returned = f" -> {ast.unparse(source.returns)}" if source.returns else ""
    returned = "" if source.name == "__init__" else returned
    given = list(_given(source.args))
    line = f"{name}({', '.join(given)}){returned}"
    if len(line) > WIDEST:
        line = "\n".join([f"{name}(", *(f"    {each}," for each in given), f"){returned}"])
    return f"```python\n{line}\n```"


def _given(arguments: ast.arguments) -> Iterator[str]:
    """What a function takes, each with its type and default, as it is written in its source."""
    placed = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(placed) - len(arguments.defaults))
    for argument, default in zip(placed, [*missing, *arguments.defaults], strict=True):
        yield _argument(argument, default)
    if arguments.vararg or arguments.kwonlyargs:
        yield f"*{ast.unparse(arguments.vararg) if arguments.vararg else ''}"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return f"{ast.unparse(argument)} = {ast.unparse(default)}" if default else ast.unparse(argument)


def _is_named(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == name


def _fields(source: ast.ClassDef) -> str:
    """Attributes that a class declares, those of one type together."""
    of_type: dict[str, list[str]] = {}
    for each in source.body:
        if isinstance(each, ast.AnnAssign):
            of_type.setdefault(ast.unparse(each.annotation), []).append(ast.unparse(each.target))
    named = {said: ", ".join(f"`{name}`" for name in names) for said, names in of_type.items()}
    return "\n".join(f"- {names}: `{said}`" for said, names in named.items())


def _values(offered: type[Enum]) -> list[str]:
    return ["\n".join(f"- `{offered.__name__}.{each.name}`: `{each.value}`" for each in offered)]


def _members(name: str, source: ast.ClassDef) -> Iterator[str]:
    for each in source.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            marks = {ast.unparse(mark) for mark in each.decorator_list}
            yield f"### {name}.{each.name}"
            if "property" not in marks:
                owner = f"{name}." if "classmethod" in marks else ""
                yield _signature(f"{owner}{each.name}", each)
            yield inspect.cleandoc(ast.get_docstring(each) or "")
