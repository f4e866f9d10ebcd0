"""What other packages bring, each an entry point of a group: found, named, and told of once.

    [project.entry-points."stepscope.readers"]
    my-engine = "acme.traces:MyEngineReader"

What one of them cannot do is told in a line that names its package.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from stepscope.ingest.errors import ConfigError

_SHOWN_CHARS = 200


def declared(group: str) -> list[EntryPoint]:
    """What installed packages declare, in an order that does not hang on where they lie.

    Raises ConfigError where what is installed cannot be read.
    """
    try:
        return sorted(entry_points(group=group), key=lambda each: (package_of(each), each.name))
    except Exception as error:
        what = f"what is installed cannot be read: {said(error)}"
        raise ConfigError(what, todo="an entry_points.txt of a package is damaged") from None


def refused(point: EntryPoint, kind: str, why: str) -> ConfigError:
    """Say which `kind` of thing (a rule, a reader) of which package cannot be used, and why."""
    package = package_of(point)
    what = f"its {kind} {point.name} ({point.value}) cannot be used: {why}"
    return ConfigError(what, where=package, todo=f"mend or uninstall {package}")


def said(error: BaseException) -> str:
    """What an error says, in one line; its own text may fail, too."""
    try:
        text = str(error)
    except Exception:
        text = "it cannot say what"
    return f"{type(error).__name__}: {text}".partition("\n")[0][:_SHOWN_CHARS]


def package_of(point: EntryPoint) -> str:
    """The name of the package that declares it."""
    return (point.dist and point.dist.name) or "a package without a name"


@cache
def tell_once(line: str) -> None:
    """Say on stderr what a plug-in costs, once in a process."""
    plain = "".join(char if char.isprintable() else "�" for char in line)
    sys.stderr.write(f"stepscope: {plain}\n")
