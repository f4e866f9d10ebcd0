"""The tables of a profile out of its spans, whatever the format: steps, launches and collectives.

A reader of a profiler's file makes spans of its records; what follows from spans is the same for
all, and is derived by the same code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import polars.selectors as cs

from stepscope.ingest.derive.axis import numbered
from stepscope.ingest.derive.collectives.facing import facing
from stepscope.ingest.derive.collectives.inferred import infer_collectives, tells_of_collectives
from stepscope.ingest.derive.gpu_times import derived_steps
from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.derive.steps import UNREAD, about_unread, unread_tags
from stepscope.ingest.frames import Frame
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.readers.profiles import num_inferred
from stepscope.ingest.readers.rank_notes import said_of_groups
from stepscope.ingest.schema import SPAN_FORMS
from stepscope.ingest.storage.spool import Spooled, packed

LIMIT_NS = 1 << 62
FORM = pl.Enum(SPAN_FORMS)
SPAN_COLUMNS: dict[str, pl.DataType] = {
    "rank": pl.Int32(), "track": pl.String(), "name": pl.String(), "category": pl.String(),
    "form": FORM, "ts_ns": pl.Int64(), "dur_ns": pl.Int64(), "correlation": pl.Int64(),
    "args": pl.String(), "base": pl.String(), "tag": pl.String(),
}  # fmt: skip
"""What a reader says of a span: those of the table, and two more, null where they say nothing else.

base    the track whose spans a step's tag takes in, where that is not the span's own
tag     the tag of a step, where it stands in another field than the name
"""
_TEXTS = ("track", "name", "category", "base")


@dataclass(frozen=True, slots=True)
class ProfileTables:
    """Tables of a file, the ranks in them, what is to be known about them, and unread tags."""

    tables: dict[str, Frame]
    ranks: tuple[int, ...]
    notes: tuple[str, ...]
    unread: dict[str, int]

    def report(
        self,
        read: Mapping[str, int],
        skipped: Mapping[str, int],
        repaired: Mapping[str, int],
        notes: Sequence[str],
    ) -> ReadReport:
        """What became of all records, with what was inferred of them."""
        unread = Counter({UNREAD: sum(self.unread.values())})
        return ReadReport(
            read=dict(+Counter(read)),
            skipped=dict(Counter(skipped) + unread),
            repaired=dict(+Counter(repaired)),
            inferred=num_inferred(self.tables),
            notes=(*notes, *self.notes, *about_unread(self.unread)),
        )

    def manifest(
        self,
        producer: str,
        version: str,
        epoch_ns: int,
        report: ReadReport,
        config: dict[str, Any],
        *,
        closed: bool,
    ) -> Manifest:
        """What the trace says about itself."""
        state = "complete" if closed else "partial"
        return Manifest(
            producer=producer,
            producer_version=version,
            clock=ClockInfo("profiler", epoch_ns if 0 < epoch_ns < LIMIT_NS else 0),
            ranks=self.ranks,
            config=config,
            tables={
                name: "inferred" if "inferred" in frame.lazy().collect_schema() else state
                for name, frame in self.tables.items()
            },
            closed=closed,
            report=report,
        )


def span_frame(columns: Mapping[str, Any] | pl.DataFrame) -> pl.DataFrame:
    """Spans with all of `SPAN_COLUMNS`; those that are not given are null, of rank 0."""
    frame = pl.DataFrame(columns)
    gaps = {name: pl.lit(None, dtype) for name, dtype in SPAN_COLUMNS.items()}
    gaps["rank"] = pl.lit(0, pl.Int32)
    missing = {name: gap for name, gap in gaps.items() if name not in frame.columns}
    return frame.with_columns(**missing).select(
        pl.col(name).cast(dtype) for name, dtype in SPAN_COLUMNS.items()
    )


def profile_tables(
    spans: pl.DataFrame,
    flows: pl.DataFrame | None = None,
    counters: pl.DataFrame | None = None,
) -> ProfileTables:
    """Spans in lanes, and the steps and collectives of each rank that they imply.

    `spans` have `SPAN_COLUMNS`; `flows` the `row` of the span that each end touches, `flow` and
    `end`; `counters` are as their table, but for the step.
    """
    spans = _as_enums(spans).with_columns(_args()).with_row_index("row")
    parts: dict[str, list[pl.DataFrame]] = {"steps": [], "collectives": [], "spans": []}
    notes: list[str] = []
    for own in spans.partition_by("rank", maintain_order=True):
        notes += _add_rank(own, parts)
    tables = {name: _together(frames) for name, frames in parts.items() if frames}
    if len(parts["spans"]) > 1:
        faced = facing(tables["collectives"], tables["steps"], len(parts["spans"]))
        tables["collectives"] = faced.collectives
        notes += said_of_groups(faced.groups)
    unread = unread_tags(tables["spans"]) if "spans" in tables else {}
    if counters is not None:
        tables["counters"] = counters
    if flows is not None and "spans" in tables:
        ends = tables["spans"].select("row", "rank", "ts_ns", pl.col("track").cast(pl.String))
        tables["flows"] = flows.join(ends, on="row", how="inner", maintain_order="left").drop("row")
    filled = {name: frame for name, frame in tables.items() if len(frame)}
    ranks = sorted({rank for frame in filled.values() for rank in frame["rank"].unique()})
    found: dict[str, Frame] = dict(filled)
    if "spans" in filled:
        rows = filled["spans"].drop("row")
        found["spans"] = Spooled(rows.drop("args"), "args", [packed(rows["args"])])
    return ProfileTables(found, tuple(ranks) or (0,), tuple(dict.fromkeys(notes)), unread)


def steps_by(
    tags: pl.Series, spans: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, Iterator[str]]:
    """As `derived_steps`, by `tags` where one is not null, else by the name."""
    if tags.null_count() == len(tags):
        return derived_steps(spans)
    names = spans["name"].cast(pl.String)
    steps, tagged, notes = derived_steps(spans.with_columns(tags.fill_null(names).alias("name")))
    return steps, tagged.with_columns(spans["name"]), notes


def _as_enums(spans: pl.DataFrame) -> pl.DataFrame:
    filled = spans.with_columns(pl.coalesce("base", "track").alias("base"))
    return filled.with_columns(
        filled[name].cast(pl.Enum(filled[name].drop_nulls().unique(maintain_order=True)))
        for name in _TEXTS
    )


def _args() -> pl.Expr:
    """Arguments with the correlation, as torch.profiler has it: so Chrome JSON keeps launches."""
    number = pl.concat_str(pl.lit('{"correlation":'), pl.col("correlation").cast(pl.String))
    others = pl.col("args").str.strip_prefix("{")
    has_others = (pl.col("args") != "{}").fill_null(value=False)
    both = pl.when(has_others).then(pl.concat_str(number, pl.lit(","), others))
    joined = both.otherwise(pl.concat_str(number, pl.lit("}")))
    return pl.when(pl.col("correlation").is_null()).then("args").otherwise(joined).alias("args")


def _add_rank(spans: pl.DataFrame, parts: dict[str, list[pl.DataFrame]]) -> list[str]:
    """Add the tables of a rank; gives notes."""
    laned = with_lanes(spans.drop("rank", "args"))
    steps, tagged, notes = steps_by(laned["tag"], laned.drop("tag"))
    names, number = numbered(laned["name"])
    is_candidate = tells_of_collectives(names).gather(number)
    calls = tagged.with_columns(spans["args"]).filter(is_candidate)
    tables = {
        "steps": steps,
        "collectives": infer_collectives(calls.with_columns(cs.enum().cast(pl.String)), tagged),
        "spans": tagged.drop("base").with_columns(spans["args"]),
    }
    rank = pl.lit(spans["rank"][0], pl.Int32).alias("rank")
    for name, frame in tables.items():
        parts[name].append(frame.with_columns(rank))
    return list(notes)


def _together(parts: list[pl.DataFrame]) -> pl.DataFrame:
    if len(parts) == 1:
        return parts[0]
    return pl.concat(part.with_columns(cs.enum().cast(pl.String)) for part in parts)
