"""Letters that JSON writes in two halves, as `\\ud83d\\ude00`: one half alone is no letter."""

from __future__ import annotations

import re

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<alone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


def with_whole_letters(text: str) -> str:
    """Give JSON with a replacement character in place of each half that stands alone."""
    return _ESCAPE.sub(_whole, text) if _HALF.search(text) else text


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["alone"] else escape[0]
