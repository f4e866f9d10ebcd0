"""Where a page begins: a cursor of another question, or of another file, is refused."""

from __future__ import annotations

import hashlib
import re

from stepscope.ingest.errors import ConfigError

_CURSOR = re.compile(r"(?P<first>[0-9]{1,12})-(?P<mark>[0-9a-f]{12})")


def mark_of(*asked: str) -> str:
    """What a cursor of this question ends in."""
    return hashlib.blake2s("\0".join(asked).encode("utf-8", "replace"), digest_size=6).hexdigest()


def first_of(cursor: str, mark: str, num_rows: int) -> int:
    """The row at which a page begins; raises ConfigError for a cursor that is not of this question.

    Without a cursor it is the first.
    """
    if not cursor:
        return 0
    found = _CURSOR.fullmatch(cursor)
    if found is None or found["mark"] != mark or int(found["first"]) >= num_rows:
        raise ConfigError(
            "the cursor is of another question, or the file has changed since",
            todo="ask without a cursor, and give back what `next` says",
        )
    return int(found["first"])
