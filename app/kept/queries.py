"""The queries that were asked last, of whatever trace: for arrows to bring them back."""

from __future__ import annotations

from stepscope.app.kept.text_list import TextList

MOST = 100
LONGEST = 4_000
"""Characters of a query that is kept."""
_QUERIES = TextList("queries.json", MOST)


def asked_before() -> list[str]:
    """The queries, the latest first."""
    return _QUERIES.all()


def asked(query: str) -> None:
    """Put a query before the others, where it is no novel and no mere blank."""
    text = query.strip()
    if text and len(text) <= LONGEST:
        _QUERIES.put_first(text)
