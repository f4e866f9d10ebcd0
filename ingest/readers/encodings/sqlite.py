"""The tables of an SQLite database that nobody has to trust, and their rows in batches.

It is opened read-only and as if nobody wrote it. Nothing in it is run: views, virtual tables and
generated columns are no tables here, and of a row are asked columns alone, each of one type.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import polars as pl

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater

MAGIC = b"SQLite format 3\0"
BATCH_ROWS = 1 << 16
VIEWS = "views"
NO_TABLES = "triggers, virtual tables and generated columns"
_HEADER_BYTES = 100
_COUNT = "SELECT count(*) FROM "
BROKEN = (sqlite3.Error, UnicodeDecodeError)
"""What damage raises: in pages, and in the names of tables and columns."""
_MOST_COLUMNS = 256
_HIDDEN = 6
_ALLOWED = (
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_FUNCTION,
)  # fmt: skip
_TYPES: dict[str, tuple[str, type[pl.DataType]]] = {
    "integer": ("integer", pl.Int64),
    "text": ("text", pl.String),
    "real": ("real", pl.Float64),
}


class Database:
    """Tables of a database by name; `damage` says afterwards why rows of it are missing."""

    def __init__(self, opened: sqlite3.Connection, limits: Limits) -> None:
        self.damage: dict[str, str] = {}
        self.refused: Counter[str] = Counter()
        self.num_left = limits.events
        self._opened = opened
        self._limits = limits
        self.tables: dict[str, tuple[str, ...]] = dict(self._plain_tables())

    def records(self, table: str, columns: Mapping[str, str]) -> Iterator[pl.DataFrame]:
        """As `rows`, of which all tables together give no more than the limit of events."""
        for rows in self.rows(table, columns, self.num_left):
            self.num_left -= len(rows)
            yield rows

    def rows(
        self, table: str, columns: Mapping[str, str], most: int | None = None
    ) -> Iterator[pl.DataFrame]:
        """Rows of a table in batches: of each column the values that are of its kind, else null.

        `columns` gives the kind, integer, text or real, by name; one that is missing is null.
        """
        held = self.tables[table]
        asked = [_asked(name, kind, self._limits.text) if name in held else f"NULL AS {_own(name)}"
                 for name, kind in columns.items()]  # fmt: skip
        schema = {name: _TYPES[kind][1] for name, kind in columns.items()}
        for rows in self._batches(table, asked, self._limits.events if most is None else most):
            yield pl.DataFrame(rows, schema=schema, orient="row")

    def whole(self, table: str, columns: Mapping[str, str]) -> pl.DataFrame:
        """All rows of a table, no row where there is no such table."""
        none = pl.DataFrame(schema={name: _TYPES[kind][1] for name, kind in columns.items()})
        if table not in self.tables:
            return none
        return pl.concat([none, *self.rows(table, columns)])

    def num_of(self, table: str) -> int:
        """How many rows a table has, as far as they can be counted."""
        try:
            found = self._opened.execute(_COUNT + _own(table)).fetchone()
        except BROKEN as error:
            self.damage.setdefault(table, str(error))
            return 0
        return int(found[0])

    def _batches(
        self, table: str, asked: Sequence[str], most: int
    ) -> Iterator[list[tuple[object, ...]]]:
        try:
            query = " ".join(("SELECT", ", ".join(asked), "FROM", _own(table)))
            cursor = self._opened.execute(query)
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield rows[:most]
                most -= len(rows)
                if most < 0:
                    beyond = f"more than {self._limits.events:,} rows ({raised_by('events')})"
                    self.damage.setdefault(table, beyond)
                    return
        except BROKEN as error:
            self.damage.setdefault(table, str(error))

    def _plain_tables(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        listed = self._opened.execute(
            "SELECT name, type, sql FROM sqlite_master WHERE typeof(name) = 'text' LIMIT ?",
            (self._limits.tracks,),
        )
        for name, kind, sql in listed.fetchall():
            columns = self._columns(name) if kind == "table" and _is_plain(sql) else None
            if columns:
                yield name, columns
            elif kind != "index":
                self.refused[VIEWS if kind == "view" else NO_TABLES] += 1

    def _columns(self, table: str) -> tuple[str, ...] | None:
        """Names of its columns; None where one of them is made by an expression."""
        try:
            told = self._opened.execute(f"PRAGMA table_xinfo({_own(table)})").fetchall()
        except BROKEN:
            return None
        if len(told) > _MOST_COLUMNS or any(column[_HIDDEN] for column in told):
            return None
        return tuple(column[1] for column in told)


@contextmanager
def database(path: Path, progress: Progress | None, limits: Limits) -> Iterator[Database]:
    """Open a database; raises `TraceError`.

    What is compressed is inflated into a file of its own first. So is what was cut off: without
    pages behind its end none of its tables could be opened, and then those that are whole can.
    """
    with TemporaryDirectory(prefix="stepscope-") as folder:
        plain, ended = _plain(path, Path(folder) / "whole.sqlite", progress, limits)
        uri = f"file:{quote(str(plain.absolute()))}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as opened:
                _guard(opened)
                found = Database(opened, limits)
                if ended:
                    found.damage["the file"] = ended
                yield found
        except BROKEN as error:
            what = f"the database cannot be read: {ended or error}"
            raise TruncatedTrace(what, where=str(path), todo="export it again") from None


def _plain(
    path: Path, own: Path, progress: Progress | None, limits: Limits
) -> tuple[Path, str | None]:
    """A file with all the pages that it should have, and why some of them are empty."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
        held, whole = path.stat().st_size, _num_bytes(head)
        if head.startswith(MAGIC) and held >= whole:
            return path, None
        blocks = Inflater(path, progress and partial(progress, "inflating"), limits)
        with own.open("w+b") as copy:
            for block in blocks:
                copy.write(block)
            held = copy.tell()
            copy.seek(0)
            whole = _num_bytes(copy.read(_HEADER_BYTES))
            if held < whole <= limits.inflated:
                copy.truncate(whole)
    except OSError as error:
        raise TraceError(error.strerror or str(error), where=str(path)) from None
    cut_off = f"cut off: {held:,} of {whole:,} bytes" if held < whole else None
    return own, blocks.damage or cut_off


def _num_bytes(head: bytes) -> int:
    """How large a database is by its header: bytes of a page, and pages."""
    page_bytes, num_pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
    return num_pages * (page_bytes if page_bytes > 1 else 1 << 16)


def _guard(opened: sqlite3.Connection) -> None:
    opened.text_factory = _text
    for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
        opened.execute(f"PRAGMA {pragma}")
    opened.set_authorizer(_allowed)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _allowed(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _is_plain(sql: object) -> bool:
    return isinstance(sql, str) and sql.lstrip()[:12].upper() == "CREATE TABLE"


def _own(name: str) -> str:
    """A name in quotes, with those that it has itself doubled."""
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


def _asked(name: str, kind: str, most_chars: int) -> str:
    column = _own(name)
    value = f"substr({column}, 1, {most_chars})" if kind == "text" else column
    kinds = "('integer', 'real')" if kind == "real" else f"('{kind}')"
    value = f"CAST({value} AS REAL)" if kind == "real" else value
    return f"CASE WHEN typeof({column}) IN {kinds} THEN {value} END AS {column}"
