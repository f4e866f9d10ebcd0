"""What a job needs of a rank's file: the columns that its rules look at, packed to be sent.

No rule looks at the rows of `spans` and `flows`, which are nearly all of a profile, but at whether
a rank has any, and when the first was. Of them a row of each rank is sent. What GPUs did, which a
summary tells, is summed up for each rank before. A rule of another package may look at anything:
where one is asked for, all is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import NamedTuple

import msgspec
import polars as pl

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.summary.gpu_use import gpu_use
from stepscope.ingest.columns import Table
from stepscope.ingest.frames import conform, polars_schema, table_named
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.readers.rank_folder import OTHER_FILES, RankRead
from stepscope.ingest.readers.rank_joining import RankFile
from stepscope.ingest.trace import Trace

ONLY_THAT_THERE_ARE = ("spans", "flows")
"""Tables of which rules ask no more than whether a rank has a row, and when its first one was."""
NOT_LOOKED_AT = {"collectives": ("num_bytes",)}
"""Columns of the other tables that no rule asks for."""


OF_ANOTHER_FORMAT = "it is no profile, as others beside it are"


class _Packed(msgspec.Struct, frozen=True):
    """A rank's part: its manifest as JSON, tables and GPUs as Parquet; or why there is none."""

    name: str
    manifest: str = ""
    tables: dict[str, bytes] = {}
    gpus: bytes = b""
    skipped: str = ""
    why: str = ""


_PACKED = msgspec.msgpack.Decoder(_Packed)


class Unpacked(NamedTuple):
    """What was read of a rank's file, less what no rule looks at, and what its GPUs did."""

    read: RankRead
    gpus: pl.DataFrame | None


def packed(read: RankRead, rules: Iterable[Rule]) -> bytes:
    """Pack what rules need of what was read."""
    if read.found is None:
        part = _Packed(read.name, skipped=read.skipped, why=read.why)
        return msgspec.msgpack.encode(part)
    ours = {rule.code for rule in RULES}
    is_whole = any(rule.code not in ours for rule in rules)
    found = read.found
    frames = dict(zip(found.tables, pl.collect_all(found.tables.values()), strict=True))
    gpus = gpu_use(Trace({name: each.lazy() for name, each in frames.items()}, found.manifest, ""))
    tables = {
        name: _parquet(frame if is_whole else needed(table_named(name), frame))
        for name, frame in frames.items()
    }
    part = _Packed(read.name, found.manifest.to_json(), tables, _parquet(gpus))
    return msgspec.msgpack.encode(part)


def unpacked(part: bytes) -> Unpacked:
    """What was packed; columns that were left out are null."""
    found = _PACKED.decode(part)
    if not found.manifest:
        return Unpacked(RankRead(found.name, skipped=found.skipped, why=found.why), None)
    tables = {name: _table(table_named(name), each) for name, each in found.tables.items()}
    file = RankFile(found.name, tables, Manifest.from_json(found.manifest))
    return Unpacked(RankRead(found.name, file), pl.read_parquet(BytesIO(found.gpus)))


def why_of(read: RankRead) -> str:
    """Why a file is left out of its job; empty where it is not."""
    return OF_ANOTHER_FORMAT if read.skipped == OTHER_FILES else read.why


def needed(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows and columns of a table that rules look at; a column without a value is none."""
    if table.name in ONLY_THAT_THERE_ARE:
        return frame.group_by("rank").agg(pl.col("ts_ns").min()).sort("rank")
    left_out = NOT_LOOKED_AT.get(table.name, ())
    told = [name for name in frame.columns if frame[name].null_count() < len(frame)]
    return frame.select(name for name in told if name not in left_out)


def _parquet(frame: pl.DataFrame) -> bytes:
    out = BytesIO()
    frame.write_parquet(out, compression="zstd", statistics=False)
    return out.getvalue()


def _table(table: Table, part: bytes) -> pl.LazyFrame:
    """The table with all of its columns, whatever was sent."""
    frame = pl.read_parquet(BytesIO(part))
    absent: Mapping[str, pl.DataType] = {
        name: kind for name, kind in polars_schema(table).items() if name not in frame.columns
    }
    return conform(
        table, frame.with_columns(pl.lit(None, kind).alias(n) for n, kind in absent.items())
    )
