"""The rows of an export as spans and counters, with texts and tracks still as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from stepscope.ingest.readers.encodings.sqlite import Database
from stepscope.ingest.readers.nsys import decode
from stepscope.ingest.readers.nsys.decode import NVTX, SOURCES, Source
from stepscope.ingest.readers.profile_tables import FORM, LIMIT_NS

TIMELESS = "without a time"
BACKWARDS = "end before begin taken as its begin"
PER_PROCESS = 1 << 24
"""So many numbers of threads a process has in a serialized number."""
_ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_MOST_DIAGNOSTICS, _LONGEST_DIAGNOSTIC = 12, 240
NAMES = "NVTX names of domains, categories and threads"
_COLUMNS: dict[str, pl.DataType] = {
    "ts_ns": pl.Int64(), "dur_ns": pl.Int64(), "correlation": pl.Int64(), "form": FORM,
    "category": pl.String(), "text": pl.Int64(), "name": pl.String(), "args": pl.String(),
    **dict.fromkeys(("process", "thread", "device", "context", "stream", "domain"), pl.Int64()),
}  # fmt: skip
"""Numbers of `text` are those of the table of texts; a name that is not text stands in `name`."""


@dataclass(slots=True)
class Collected:
    """Spans of all tables, and what was counted."""

    spans: list[pl.DataFrame] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    domains: dict[int, tuple[int | None, str | None]] = field(default_factory=dict)
    """Text and number of a text of what a domain of NVTX is called."""

    def frame(self) -> pl.DataFrame:
        """All spans, one table after the other."""
        return pl.concat([pl.DataFrame(schema=_COLUMNS), *self.spans])


def collected(opened: Database) -> Collected:
    """Read the tables that say what the device and the threads did, and count all other rows."""
    found = Collected()
    for source in SOURCES:
        if source.table in opened.tables:
            for rows in opened.records(source.table, source.columns()):
                _add(found, source.table, rows, _spans(source, rows))
    if NVTX in opened.tables:
        for rows in opened.records(NVTX, decode.NVTX_COLUMNS):
            _add_nvtx(found, rows)
    return found


def needed_texts(opened: Database, numbers: pl.Series) -> pl.DataFrame:
    """The texts of these numbers (text, value); of a number that has two, the first."""
    columns = {"id": "integer", "value": "text"}
    parts = [pl.DataFrame(schema={"text": pl.Int64, "value": pl.String})]
    if "StringIds" in opened.tables:
        for rows in opened.rows("StringIds", columns):
            own = rows.filter(pl.col("id").is_in(numbers.implode()))
            parts.append(own.select(text="id", value="value"))
    return pl.concat(parts).unique("text", keep="first", maintain_order=True)


def metrics(opened: Database, found: Collected) -> pl.DataFrame:
    """What was sampled of GPUs, as counters."""
    told = opened.whole("TARGET_INFO_GPU_METRICS", decode.METRIC_NAMES)
    none = opened.whole("", decode.METRIC_COLUMNS)
    names = told.unique(["typeId", "metricId"], keep="first", maintain_order=True)
    rows = pl.concat(list(opened.records(decode.METRICS, decode.METRIC_COLUMNS)) or [none])
    is_good = pl.col("value").is_finite() & pl.col("timestamp").is_between(-LIMIT_NS, LIMIT_NS)
    good = rows.filter(is_good.fill_null(value=False))
    found.read[decode.METRICS] += len(good)
    found.skipped[f"{decode.METRICS} {TIMELESS} or value"] += len(rows) - len(good)
    unnamed = pl.format("metric {}", "metricId")
    return good.join(names, on=["typeId", "metricId"], how="left", maintain_order="left").select(
        rank=pl.lit(0, pl.Int32),
        ts_ns="timestamp",
        track=pl.format("GPU metrics {}", pl.col("typeId") % 256),
        name=pl.coalesce("metricName", unnamed),
        value="value",
    )


def ran_on_devices(found: Collected) -> bool:
    """Whether any kernel, copy or fill of a device was read."""
    ran = [source.table for source in SOURCES if source.category in _ON_DEVICE]
    return any(found.read[table] for table in ran)


def diagnostics(opened: Database) -> list[str]:
    """What Nsight Systems itself wrote about the collection: errors, then warnings, then the rest.

    Each text once, at most `_MOST_DIAGNOSTICS`, and how many more there are.
    """
    if decode.DIAGNOSTICS not in opened.tables:
        return []
    rows = next(opened.rows(decode.DIAGNOSTICS, decode.DIAGNOSTIC_COLUMNS), None)
    texts: dict[str, int] = {}
    for severity, text in [] if rows is None else rows.iter_rows():
        if line := _one_line(text or ""):
            texts[line] = max(texts.get(line, 0), severity if severity in decode.SEVERITIES else 0)
    ordered = sorted(texts.items(), key=lambda item: -item[1])
    shown = [
        f"Nsight Systems ({decode.SEVERITIES.get(severity, 'information')}): {text}"
        for text, severity in ordered[:_MOST_DIAGNOSTICS]
    ]
    more = len(ordered) - len(shown)
    return [*shown, f"Nsight Systems: {more:,} more messages"] if more else shown


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_DIAGNOSTIC else f"{line[:_LONGEST_DIAGNOSTIC]}..."


def _add(found: Collected, table: str, rows: pl.DataFrame, spans: pl.DataFrame) -> None:
    """Keep what has a time, and count the rest."""
    begins, ends = (pl.col(name).is_between(-LIMIT_NS, LIMIT_NS) for name in ("start", "end"))
    is_timed = begins.fill_null(value=False) & ends.fill_null(value=True)
    good = spans.filter(rows.select(is_timed).to_series())
    found.read[table] += len(good)
    found.skipped[f"{table} {TIMELESS}"] += len(rows) - len(good)
    found.repaired[BACKWARDS] += int((good["dur_ns"] < 0).sum())
    found.spans.append(good.with_columns(pl.col("dur_ns").clip(lower_bound=0)))


def _spans(source: Source, rows: pl.DataFrame) -> pl.DataFrame:
    texts = pl.coalesce(source.names) if source.names else pl.lit(None, pl.Int64)
    return _as_spans(
        rows,
        text=texts,
        name=_name(source),
        category=_category(source),
        args=_args(source, rows),
        form=_lasting("slice"),
        **(_on_device() if source.on_device else _on_thread("globalTid")),
    )


def _as_spans(rows: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    times = {"ts_ns": pl.col("start"), "dur_ns": pl.col("end") - pl.col("start")}
    given = times | {"correlation": pl.col("^correlationId$")} | columns
    told = rows.select(**{name: expr for name, expr in given.items() if _is_there(name, rows)})
    gaps = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in _COLUMNS.items()
        if name not in told.columns
    ]
    return told.with_columns(gaps).select(
        pl.col(name).cast(dtype) for name, dtype in _COLUMNS.items()
    )


def _is_there(name: str, rows: pl.DataFrame) -> bool:
    return name != "correlation" or "correlationId" in rows.columns


def _lasting(form: str) -> pl.Expr:
    """The form of what has an end, of what has none."""
    ended = pl.when(pl.col("end").is_null()).then(pl.lit("unfinished")).otherwise(pl.lit(form))
    return ended.cast(FORM)


def _name(source: Source) -> pl.Expr:
    if source.kind is None:
        return pl.lit(source.prefix or None, pl.String)
    number = pl.col(source.kind)
    text = number.replace_strict(source.kinds, default=None, return_dtype=pl.String)
    return pl.concat_str(pl.lit(source.prefix), pl.coalesce(text, number.cast(pl.String)))


def _category(source: Source) -> pl.Expr:
    own = pl.lit(source.category)
    if source.table != decode.CALLS:
        return own
    is_drivers = (pl.col("eventClass") == decode.DRIVER_CLASS).fill_null(value=False)
    return pl.when(is_drivers).then(pl.lit("cuda_driver")).otherwise(own)


def _on_device() -> dict[str, pl.Expr]:
    return {"process": pl.col("globalPid") // PER_PROCESS} | {
        name: pl.col(f"{name}Id") for name in ("device", "context", "stream")
    }


def _on_thread(column: str) -> dict[str, pl.Expr]:
    """Process and thread of a serialized number: 24 bits each, the process above the thread.

    What stands above them, the machine, stays with the process.
    """
    return {"process": pl.col(column) // PER_PROCESS, "thread": pl.col(column)}


def _args(source: Source, rows: pl.DataFrame) -> pl.Expr:
    fields = [pl.col(name).alias(said) for name, said in source.args.items()]
    known = [said for said in fields if not rows.select(said).to_series().is_null().all()]
    if not known:
        return pl.lit(None, pl.String)
    return pl.struct(known).struct.json_encode()


def _add_nvtx(found: Collected, rows: pl.DataFrame) -> None:
    kind = pl.col("eventType")
    told = kind.is_in([decode.PUSH_POP, decode.START_END, decode.MARK]).fill_null(value=False)
    naming = rows.filter(~told)
    found.read[NAMES] += len(naming)
    for number, text, said in naming.filter(kind == decode.DOMAIN).select(
        "domainId", "textId", "text"
    ).iter_rows():  # fmt: skip
        found.domains.setdefault(number, (text, said))
    elsewhere = (pl.col("endGlobalTid") != pl.col("globalTid")).fill_null(value=False)
    hops = (kind == decode.START_END) & elsewhere & (pl.col("endGlobalTid") > 0)
    lasting = pl.when(hops).then(_lasting("async")).otherwise(_lasting("slice"))
    form = pl.when(kind == decode.MARK).then(pl.lit("instant", FORM)).otherwise(lasting)
    own = rows.filter(told).with_columns(end=pl.when(kind != decode.MARK).then("end"))
    spans = _as_spans(
        own,
        text=pl.col("textId"),
        name=pl.col("text"),
        category=pl.lit(decode.NVTX_CATEGORY),
        form=form,
        domain=pl.col("domainId"),
        **_on_thread("globalTid"),
    )
    _add(found, NVTX, own, spans)


def others(opened: Database) -> Iterator[tuple[str, int]]:
    """Tables with times that nothing is made of, and how many rows they have."""
    known = {source.table for source in SOURCES} | {NVTX, decode.METRICS}
    for table, columns in opened.tables.items():
        if table not in known and {"start", "timestamp", "rawTimestamp"} & set(columns):
            yield table, opened.num_of(table)
