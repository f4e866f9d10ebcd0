"""The rows in the bytes of a segment, in whichever form they lie there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from stepscope.ingest.recording.forms.bulk_rows import bulk_rows_of
from stepscope.ingest.recording.forms.lasting_rows import lasting_rows_of
from stepscope.ingest.recording.forms.segment_rows import SegmentRows, rows_of
from stepscope.ingest.recording.segments import COLUMNS, LASTING, Header


class Written(Protocol):
    """What was written under an id: a text, or bytes."""

    def texts(self, ids: Iterable[int]) -> list[str | None]:
        """Give the texts of some ids; id 0 is null."""

    def chunk(self, number: int) -> bytes | None:
        """Give the bytes of an id; None where they are lost."""


def read_rows(raw: bytes, header: Header, written: Written, rank: int) -> SegmentRows:
    """Take all whole rows of a segment; raises `ValueError` where they cannot be known."""
    if header.form == COLUMNS:
        return bulk_rows_of(raw, header, written.texts, rank)
    if header.form == LASTING:
        return lasting_rows_of(raw, header, written.texts, written.chunk, rank)
    return rows_of(raw, header, written.texts, rank)
