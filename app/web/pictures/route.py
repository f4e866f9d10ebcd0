"""What the page asks for while it is looked at: pictures, and why a request waits.

`POST /picture` answers what some lanes show in a window, as bytes that the page paints as they are;
`POST /sentence` what the tooltip of a wait says. They are no callbacks of Dash (decision 0066).
What holds for every other request holds for these: who is answered, and how much may be asked, is
decided before (`safety/access.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from flask import Flask, Response, abort, request
from msgspec import Struct

from stepscope.app.present.inspected.span_wait import wait_sentence
from stepscope.app.present.where import step_of
from stepscope.app.printable import plain
from stepscope.app.units import moment
from stepscope.app.web import wire
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.pictures.column_bytes import with_columns
from stepscope.app.web.refusals import Align, Finite
from stepscope.app.web.source import Source

Query = TypeVar("Query")
PICTURE, SENTENCE = "/picture", "/sentence"
BYTES = "application/octet-stream"


class PictureQuery(Struct):
    """A window that the page wants, from t0 to t1 in ns from the first moment, in so many pixels.

    `revision` is what the page looks at: lanes have other numbers in another one.
    """

    t0: Finite
    t1: Finite
    width: Finite
    lanes: list[int]
    hide: list[str]
    colours: str | None = None
    revision: int | Align = 0


class SentenceQuery(Struct):
    """A lane, and a time in ns from the first moment of the trace."""

    lane: int
    t: Finite
    revision: int | Align = 0


_PICTURE, _SENTENCE = msgspec.json.Decoder(PictureQuery), msgspec.json.Decoder(SentenceQuery)


def answer_pictures(server: Flask, source: Source) -> None:
    """Answer the page's questions for pictures and sentences about what a source gives."""

    def picture() -> Response:
        asked = _read(_PICTURE, request.get_data())
        loaded = source.at(asked.revision)
        query = msgspec.structs.asdict(asked)
        drawn = wire.picture(loaded, query)
        return Response(
            with_columns({**drawn, "position": position(loaded, query)}), mimetype=BYTES
        )

    def sentence() -> dict[str, str]:
        asked = _read(_SENTENCE, request.get_data())
        return {"sentence": _sentence(source.at(asked.revision), asked.lane, round(asked.t))}

    server.add_url_rule(PICTURE, view_func=picture, methods=["POST"])
    server.add_url_rule(SENTENCE, view_func=sentence, methods=["POST"])


def _sentence(loaded: LoadedTrace, lane: int, since_ns: int) -> str:
    """Why the request of a lane waits at a time; empty where it does not, or of two traces."""
    timeline = loaded.timeline
    if not loaded.is_one or not 0 <= lane < len(timeline.lanes):
        return ""
    span = timeline.at(lane, loaded.origin + min(max(since_ns, 0), loaded.length))
    return "" if span is None else plain(wait_sentence(span, timeline, loaded.trace))


def _read(decoder: msgspec.json.Decoder[Query], body: bytes) -> Query:
    try:
        return decoder.decode(body)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        abort(400, f"cannot be read: {error}")


def position(loaded: LoadedTrace, asked: Mapping[str, Any]) -> str:
    """Where the middle of the screen is: its step of how many, and its time.

    It says that it is the middle, as the step that was chosen may be another.
    """
    middle = int(asked["t0"] + asked["t1"]) // 2
    middle = min(max(middle, 0), loaded.length)
    time = moment(middle, max(1, int(asked["t1"] - asked["t0"]) // 1000))
    if not loaded.steps:
        return f"middle {time}"
    index = loaded.step_index_at(middle)
    step = None if index is None else loaded.steps[index]
    return f"middle {step_of(step, index, len(loaded.steps))} · {time}"
