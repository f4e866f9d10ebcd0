"""Findings for programs of one's own: every field as it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stepscope.app.formats import Asked, Checked, Rendered


def render(checked: Sequence[Checked], asked: Asked) -> Rendered:
    """An object for one trace, a list of them for several.

    `"unjudged"` is why finding nothing says nothing, or null; `unmet` are the required rules that
    could not judge, and `known` counts what a baseline has, `usual` what
    rules found as often in the runs before a change. Of a trace
    that could not be read there is its name, and why, as `"unread"`.
    """
    objects = [_object(each) for each in checked]
    objects += [{"trace": each.trace, "unread": each.said} for each in asked.unread]
    return Rendered(json.dumps(objects[0] if len(objects) == 1 else objects, indent=2))


def _object(checked: Checked) -> dict[str, Any]:
    counted = {"known": checked.num_known, "usual": checked.num_usual}
    known = {name: number for name, number in counted.items() if number is not None}
    said = checked.result.as_dict()
    first = {"trace": said["trace"], "unjudged": said["unjudged"], "unmet": list(checked.unmet)}
    return {**first, **said, **known}
