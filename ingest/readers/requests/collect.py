"""Requests out of the lines of each kind of list: one class for each, one line in `LISTS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import polars as pl

from stepscope.ingest.readers.requests.decode import (
    AZURE_FIELDS,
    BrixRow,
    MeasuredRow,
    MooncakeRow,
    ServingSimRow,
    is_azure,
    is_mooncake,
)
from stepscope.ingest.times import MS, SECOND

HASHES = "numbers of prefix blocks: no table has a column for them"
OTHER_CLOCK = "times of arrival on another clock than the engine's"
EMPTY = "lines without a request"
MOST = 1 << 62
GENERATED = "`max_tokens` is the length of the output that was generated"
PLANNED = "a workload, not a run: when requests come, and how long they are to be"
COLUMNS = {
    "request": pl.String(),
    **dict.fromkeys(
        ("ts_ns", "prompt_len", "max_tokens", "admit_ns", "first_ns", "finish_ns"), pl.Int64()
    ),
}
"""What is known of a request: its id, when it came, lengths, and when it was served; or null."""
_ARRIVAL = ("ts_ns", "prompt_len", "max_tokens")
_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")
Row = TypeVar("Row")


class RequestList(Protocol):
    """Reads the lines of one kind of list; made anew for every file."""

    @property
    def producer(self) -> str:
        """Whose lists they are."""

    @property
    def clock(self) -> str:
        """The kind of its clock."""

    @property
    def unit(self) -> str:
        """What a request counts as in the report."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers do not tell."""

    @classmethod
    def is_it(cls, head: bytes) -> bool:
        """Tell by the first line."""

    def is_header(self, line: bytes) -> bool:
        """Take the first line for what names the columns; false where it is a request."""

    def rows(self, lines: list[bytes], skipped: Counter[str]) -> pl.DataFrame:
        """The columns of `COLUMNS`, a row for each request; `ts_ns` is null for what is none."""


class AzureLines:
    """CSV of Azure's."""

    producer, clock, unit = "Azure LLM inference trace", "wall", "arrivals"
    notes = (GENERATED, "times without a zone are read as UTC")

    def __init__(self) -> None:
        self._places: list[int] = []

    @classmethod
    def is_it(cls, head: bytes) -> bool:
        """Tell by the header."""
        return is_azure(head)

    def is_header(self, line: bytes) -> bool:
        """Keep the places of the columns."""
        names = [name.strip(' "\ufeff') for name in line.decode("utf-8", "replace").split(",")]
        self._places = [names.index(n) if n in names else len(names) for n in AZURE_FIELDS]
        return True

    def rows(self, lines: list[bytes], skipped: Counter[str]) -> pl.DataFrame:
        """A request a line, of which all three columns can be read."""
        text = [line.decode("utf-8", "replace") for line in lines]
        cells = pl.Series("line", text, dtype=pl.String).str.split(",").to_frame()
        time, *lengths = (pl.col("line").list.get(at, null_on_oob=True) for at in self._places)
        prompt, output = (
            length.str.strip_chars(' "').cast(pl.Int64, strict=False) for length in lengths
        )
        found = cells.select(ts_ns=_moment(time), prompt_len=prompt, max_tokens=output)
        is_request = pl.all_horizontal(pl.all().is_between(0, MOST))
        return _filled(found.with_columns(pl.when(is_request).then("ts_ns").alias("ts_ns")))


def _moment(time: pl.Expr) -> pl.Expr:
    naive = (time.str.to_datetime(form, time_unit="ns", strict=False) for form in _FORMS)
    zoned = (
        time.str.to_datetime(f"{form}%:z", time_unit="ns", strict=False, time_zone="UTC")
        for form in _FORMS
    )
    return pl.coalesce(*naive, *(each.dt.replace_time_zone(None) for each in zoned)).cast(pl.Int64)


class _JsonLines(ABC, Generic[Row]):
    """Lines that are each an object in JSON, of one or several requests."""

    clock, unit = "profiler", "arrivals"
    row: type[Row]
    words: tuple[bytes, ...]

    @classmethod
    def is_it(cls, head: bytes) -> bool:
        """Tell by the names in the first line."""
        first = head.partition(b"\n")[0]
        return first.startswith(b"{") and all(word in first for word in cls.words)

    def is_header(self, line: bytes) -> bool:
        """There is none."""
        return False

    def rows(self, lines: list[bytes], skipped: Counter[str]) -> pl.DataFrame:
        """What each line tells."""
        decoder = msgspec.json.Decoder(self.row)
        told = [row for line in lines for row in self._told_by(decoder, line, skipped)]
        return pl.DataFrame(told, schema=COLUMNS, orient="row")

    def _told_by(
        self, decoder: msgspec.json.Decoder[Row], line: bytes, skipped: Counter[str]
    ) -> Iterator[tuple[Any, ...]]:
        try:
            row = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            yield (None,) * len(COLUMNS)
            return
        requests = list(self.requests(row, skipped))
        skipped[EMPTY] += not requests
        for told in requests:
            yield told if _is_request(told) else (None,) * len(COLUMNS)

    @abstractmethod
    def requests(self, row: Row, skipped: Counter[str]) -> Iterator[tuple[Any, ...]]:
        """The requests of a row, in the order of `COLUMNS`."""


def _is_request(told: tuple[Any, ...]) -> bool:
    _, ts_ns, *others = told
    known = [ts_ns, *(number for number in others if number is not None)]
    return all(isinstance(number, int) and 0 <= number <= MOST for number in known)


class MooncakeLines(_JsonLines[MooncakeRow]):
    """JSON lines of Mooncake's."""

    producer = "Mooncake trace"
    notes = (GENERATED,)
    row = MooncakeRow

    @classmethod
    def is_it(cls, head: bytes) -> bool:
        """Tell by the first line."""
        return head.startswith(b"{") and is_mooncake(head)

    def requests(self, row: MooncakeRow, skipped: Counter[str]) -> Iterator[tuple[Any, ...]]:
        """One."""
        skipped[HASHES] += len(row.hash_ids)
        arrived_ns = round(row.timestamp * MS)
        yield None, arrived_ns, row.input_length, row.output_length, None, None, None


class ServingSimLines(_JsonLines[ServingSimRow]):
    """A workload of LLMServingSim."""

    producer = "LLMServingSim workload"
    notes = (PLANNED,)
    row, words = ServingSimRow, (b'"input_toks"', b'"output_toks"', b'"arrival_time_ns"')

    def requests(self, row: ServingSimRow, skipped: Counter[str]) -> Iterator[tuple[Any, ...]]:
        """One."""
        yield None, row.arrival_time_ns, row.input_toks, row.output_toks, None, None, None


class BrixLines(_JsonLines[BrixRow]):
    """A workload of AIBrix."""

    producer = "AIBrix workload"
    notes = (PLANNED,)
    row, words = BrixRow, (b'"timestamp"', b'"requests"', b'"Prompt Length"')

    def requests(self, row: BrixRow, skipped: Counter[str]) -> Iterator[tuple[Any, ...]]:
        """All that come together."""
        arrived_ns = round(row.timestamp * MS)
        for each in row.requests:
            yield None, arrived_ns, each.prompt_len, each.max_tokens, None, None, None


class MeasuredLines(_JsonLines[MeasuredRow]):
    """What LLMServingSim's benchmark measured of requests to vLLM."""

    producer, unit = "LLMServingSim benchmark of vLLM", "requests"
    notes = (
        GENERATED,
        "a request arrives when it is queued, and has finished when its last token came",
    )
    row, words = MeasuredRow, (b'"input_toks"', b'"output_toks"', b'"queued_ts"')

    def requests(self, row: MeasuredRow, skipped: Counter[str]) -> Iterator[tuple[Any, ...]]:
        """One, and when it was served."""
        skipped[OTHER_CLOCK] += row.arrival_time is not None
        served = map(_ns, (row.scheduled_ts, row.first_token_ts, row.last_token_ts))
        yield row.request_id, _ns(row.queued_ts), row.input_toks, row.output_toks, *served


def _ns(seconds: float | None) -> int | None:
    """Seconds as nanoseconds; -1, which no request has, for what is not a time."""
    if seconds is None:
        return None
    return round(seconds * SECOND) if 0 <= seconds < 1e9 * 4 else -1


def _filled(found: pl.DataFrame) -> pl.DataFrame:
    return found.select(
        pl.col(name) if name in found.columns else pl.lit(None, kind).alias(name)
        for name, kind in COLUMNS.items()
    )


LISTS: tuple[type[RequestList], ...] = (
    AzureLines, MooncakeLines, MeasuredLines, ServingSimLines, BrixLines,
)  # fmt: skip


def list_of(head: bytes) -> RequestList | None:
    """What reads a list that begins so; None where it is none that is known."""
    return next((made() for made in LISTS if made.is_it(head)), None)
