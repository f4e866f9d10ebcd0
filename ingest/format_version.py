"""The format version that everything on disk states: manifests, journals and Parquet files.

Standard library only, because the recorder writes it.

- 1: from 21 to 29 Nov 2026. Only manifests state it. Segments lack `form` and `num_later` until
  22 Nov, and tables and columns were added (`recording/tally.py` lists the tables).
- 2: headers of segments, the tally and Parquet files state it, and the tally names its tables.

A new column, table or layout is a new version. `tests/ingest/recording/versions/` has a recording
of each. The cache needs none: its keys contain a digest of the code that wrote an entry.
"""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import NewerFormat
from stepscope.ingest.schema import FORMAT_VERSION


def check_format(version: object, where: Path | str) -> None:
    """Raise `NewerFormat` where this stepscope does not know a version yet.

    Raises `ValueError` for what is not a version.
    """
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("not a format version")
    if version > FORMAT_VERSION:
        raise NewerFormat(
            f"written by a newer stepscope, in format version {version}; this stepscope reads up "
            f"to {FORMAT_VERSION}",
            where=str(where),
            todo="upgrade stepscope",
        )


def check_magic(raw: bytes, magic: bytes, where: Path | str) -> None:
    """Check the magic of a file, whose last byte is a digit that counts layouts.

    Raises `NewerFormat` for a later digit, and `ValueError` for any other bytes.
    """
    found = raw[: len(magic)]
    if found == magic:
        return
    if found[:-1] == magic[:-1] and found[-1:].isdigit() and found > magic:
        raise NewerFormat(
            f"written by a newer stepscope, which marks such a file with {found.decode()}",
            where=str(where),
            todo="upgrade stepscope",
        )
    raise ValueError("another magic")
