"""The layout of a long trace on disk, in the user's cache, so that it is drawn at once again.

See docs/decisions/0132-spans-in-few-bytes.md.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import stepscope.analyzers
from stepscope.app.timeline.lanes.lane import Lane, LaneName
from stepscope.app.timeline.lanes.layout import Layout, lay_out
from stepscope.app.timeline.profile.top_names import TopName
from stepscope.app.timeline.span_index import Section, SpanIndex
from stepscope.app.timeline.spans.piles import OnDisk
from stepscope.app.timeline.spans.span_columns import mapped_columns
from stepscope.ingest.storage.beside import place_beside
from stepscope.ingest.storage.cache import Cache
from stepscope.ingest.storage.cache_key import code_version
from stepscope.ingest.trace import Trace

WORTH_ROWS = 1 << 18
"""Fewer rows are laid out in some tenths of a second."""
SHOWN = (
    "steps", "batch_rows", "lifecycle", "core_spans", "spans", "queue_order", "slot_tokens",
    "segments", "accesses", "collectives", "allocations",
)  # fmt: skip
_LAYOUT = "layout.json"
_CODE = Path(__file__).parents[2], Path(stepscope.analyzers.__file__ or "").parent


def layout_of(trace: Trace) -> Layout:
    """The layout of a trace, from the cache where it is there, and put there if that helps."""
    place = _place(trace)
    if place is None:
        return lay_out(trace)
    cache, name = place
    if found := cache.find(name, mapped_layout):
        return found
    is_new = cache.keep(name, lambda folder: write_layout(folder, trace))
    return cache.find(name, mapped_layout, is_new=is_new) or lay_out(trace)


def write_layout(folder: Path, trace: Trace) -> None:
    """Lay out a trace into a folder; raises `OSError` where there is no room."""
    piles = OnDisk(folder)
    layout = lay_out(trace, piles)
    told = {
        "bounds": layout.bounds,
        "top": [*map(_values, layout.top)],
        "share_of": layout.share_of,
        "called": [*layout.called.items()],
        "lanes": [*map(_values, layout.lanes)],
        "names": [*map(_values, layout.names)],
        "sections": [(each.name, each.first_lane, len(each.index)) for each in layout.sections],
        "types": piles.types,
    }
    (folder / _LAYOUT).write_text(json.dumps(told))


def _values(of: Any) -> list[Any]:
    """What a dataclass is made of, as it is: `astuple` copies what lies in it."""
    return [getattr(of, field.name) for field in fields(of)]


def mapped_layout(folder: Path) -> Layout:
    """Map what `write_layout` wrote; raises `OSError`, `ValueError` or `KeyError` where none is."""
    told: dict[str, Any] = json.loads((folder / _LAYOUT).read_bytes())
    first, last = told["bounds"]
    sections = [
        Section(name, lane, SpanIndex(mapped_columns(folder, f"{at}.", num, told["types"])))
        for at, (name, lane, num) in enumerate(told["sections"])
    ]
    return Layout(
        (first, last),
        tuple(TopName(*each) for each in told["top"]),
        told["share_of"],
        dict(told["called"]),
        tuple(Lane(*each) for each in told["lanes"]),
        tuple(
            LaneName(rank, group, label, tuple((kind, subject) for kind, subject in about))
            for rank, group, label, about in told["names"]
        ),
        tuple(sections),
    )


def _place(trace: Trace) -> tuple[Cache, str] | None:
    """The cache and the name of the entry; None where none is made."""
    if not trace.may_be_cached or sum(map(trace.num_rows, SHOWN)) < WORTH_ROWS:
        return None
    code = " ".join(map(code_version, _CODE)) if all(map(code_version, _CODE)) else ""
    return place_beside(trace, code, "layout", 0)
