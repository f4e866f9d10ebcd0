"""What the page never asks for is refused in a line: no traceback, and nothing of it is looked at.

Dash takes whatever is posted to it for what its own page would post. So what a request holds is
compared with what the callbacks declare before Dash sees it: 404 for what is not there, 400 for
what cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from dash import Dash
from dash.exceptions import DependencyException
from flask import abort, request
from msgspec import Meta, Struct, field

UPDATE = "/_dash-update-component"
ANY_PATH = "/<path:path>"
"""Where Dash would answer with the page, as if it had several."""
Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
Align = Annotated[str, Meta(max_length=1_000)]
"""How two traces lie on each other."""


class Named(Struct):
    """A property of a component; what the page leaves out is null."""

    id: str
    attribute: str = field(name="property")
    value: Any = None

    @property
    def name(self) -> str:
        """As Dash spells it."""
        return f"{self.id}.{self.attribute}"


class Asked(Struct):
    """What the page posts: which outputs of which callback it wants, for which inputs."""

    output: str
    outputs: Named | list[Named]
    inputs: list[Named]
    state: list[Named] = []
    changedPropIds: list[str] = []  # noqa: N815 - Dash's name


class Address(Struct):
    """The part of an address that spells a view."""

    search: str


class Exported(Struct):
    """The address whose sums or answer are wanted as a file; `asked` tells one time from another.

    `form` is the form of an answer, and empty where sums are wanted.
    """

    search: str
    asked: Finite
    form: str = ""


class Typed(Struct):
    """What of a query stands before the cursor, and behind it."""

    before: str
    after: str


class News(Struct):
    """The revision that the page has, and whether all that lies on the disk is to be read.

    Or how two traces are to lie on each other.
    """

    reload: bool
    asked: Finite
    revision: int = 0
    align: Align | None = None


class FlagTyped(Struct):
    """What was typed of a flag, which one it changes, and when a new one is, from the origin."""

    search: str
    line: str
    was: str
    asked: Finite
    t: Finite | None = None


VALUES: Mapping[str, Any] = {
    "address.data": Address | None,
    "view.data": Address | None,
    "find.value": str | None,
    "export.data": Exported | None,
    "typed.data": Typed | None,
    "flag-typed.data": FlagTyped | None,
    "what-tick.n_intervals": int | None,
    "what-words.data": str | None,
    "news.data": News | None,
    "revision.data": int | Align,
}
"""What each input of a callback holds."""
_CALL = msgspec.json.Decoder(Asked)
for _type in VALUES.values():
    # msgspec 0.22 crashes when two threads are the first to decode a type, so import does it.
    msgspec.json.Decoder(_type)


def refuse(app: Dash) -> None:
    """Answer with 404 or 400 what the page of `app` does not ask for; its callbacks must be set."""
    server = app.server

    def check() -> None:
        if request.url_rule is not None and request.url_rule.rule == ANY_PATH:
            abort(404)
        if request.path == UPDATE and request.method == "POST":
            _check(app, request.get_data())

    def not_there(_error: DependencyException) -> tuple[str, int]:
        return "there is no such script", 404

    server.before_request(check)
    server.register_error_handler(DependencyException, not_there)


def _check(app: Dash, body: bytes) -> None:
    asked = _read(body)
    callback = app.callback_map.get(asked.output)
    if callback is None:
        abort(404, "there is no such callback")
    outputs = asked.outputs if isinstance(asked.outputs, list) else [asked.outputs]
    names = [output.name for output in outputs]
    spelled = f"..{'...'.join(names)}.." if isinstance(asked.outputs, list) else names[0]
    declared = [f"{each['id']}.{each['property']}" for each in callback["inputs"]]
    states = [f"{each['id']}.{each['property']}" for each in callback["state"]]
    is_declared = [each.name for each in asked.inputs] == declared
    is_declared &= [each.name for each in asked.state] == states
    if spelled != asked.output or not is_declared:
        abort(400, "the callback has other inputs or outputs")


def _read(body: bytes) -> Asked:
    try:
        asked = _CALL.decode(body)
        for each in (*asked.inputs, *asked.state):
            msgspec.convert(each.value, VALUES.get(each.name, Any))
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        abort(400, f"cannot be read: {error}")
    return asked
