"""The files of a journal: where they are, what stands at their beginning, how they are made.

    journal.rank=0/steps-000000.seg     rows of fixed width
    journal.rank=0/strings-000000.seg   the strings that rows point to
    journal.rank=0/tally                rows dropped, and why recording stopped (`tally.py`)

A file has its full size from the start and its zeros are written, not skipped: a full disk is
then an `OSError` where the file is made, and never a SIGBUS where a row is packed.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepscope.ingest.columns import Column
from stepscope.ingest.manifest import Writer
from stepscope.ingest.schema import FORMAT_VERSION

ROWS_MAGIC = b"stepseg1"
STRINGS_MAGIC = b"stepstr1"
HEADER_BYTES = 2048
SMALLEST_BYTES = 256 << 10
LARGEST_BYTES = 16 << 20
LASTING_BYTES = 64 << 10
"""Size of a segment of batches that go on: a row of it stands for as many as a batch has."""
ROWS, COLUMNS, LASTING = "rows", "columns", "lasting"
FORMS = (ROWS, COLUMNS, LASTING)
"""Rows one by one; columns of many rows at once; batches that go on, or the outputs of such."""
_ZEROS = bytes(256 << 10)


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment of rows says about itself, as JSON after its magic.

    `constants` are columns with one value for all rows. `form` is one of `FORMS`, and `num_places`
    how many rows fit where they are all of one width. The last `num_later` columns are those that
    are completed later. In format 1 there was no `version`, and until 22 Nov 2026 neither `form`
    nor `num_later`: what a header lacks has the default here.
    """

    table: str
    columns: Sequence[Column]
    constants: Mapping[str, str]
    num_places: int
    form: str = ROWS
    num_later: int = 0

    def to_bytes(self) -> bytes:
        """Give the header padded to `HEADER_BYTES`."""
        text = json.dumps(
            {
                "version": FORMAT_VERSION,
                "table": self.table,
                "columns": [[column.name, column.type] for column in self.columns],
                "constants": dict(self.constants),
                "num_places": self.num_places,
                "form": self.form,
                "num_later": self.num_later,
            }
        )
        return (ROWS_MAGIC + text.encode()).ljust(HEADER_BYTES, b"\0")


def journal_folder(trace: Path, writer: Writer) -> Path:
    """Give the folder of a writer's journal."""
    return trace / f"journal.rank={writer}"


def writer_of(journal: Path) -> Writer:
    """Give the writer whose journal it is."""
    return Writer.named(journal.name.partition("=")[2]) or Writer()


def size_of(number: int) -> int:
    """Give the size of a stream's n-th segment: small ones first, most traces are small."""
    return min(SMALLEST_BYTES << 2 * min(number, 8), LARGEST_BYTES)


def make_segment(file: Path, header: bytes, size: int) -> mmap.mmap:
    """Make and map a new file; raises `OSError`, and leaves nothing, where there is no room."""
    try:
        with file.open("x+b") as fresh:
            fresh.write(header)
            for start in range(len(header), size, len(_ZEROS)):
                fresh.write(_ZEROS[: size - start])
            fresh.flush()
            return mmap.mmap(fresh.fileno(), size)
    except OSError:
        file.unlink(missing_ok=True)
        raise
