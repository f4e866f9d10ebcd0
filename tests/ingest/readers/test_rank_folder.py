"""Which files make a folder of ranks: those of a reader that says so of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stepscope.ingest.derive.collectives.inferred import FROM_NUMBERED_CALLS
from stepscope.ingest.frames import Frame, conformed
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers import readers
from stepscope.ingest.readers.rank_folder import (
    OTHER_FILES,
    RankFolderReader,
    RankRead,
    together,
)
from stepscope.ingest.readers.rank_joining import RankFile


class Tallies:
    """A format that nobody has: its magic, and a rank."""

    name = "tallies"

    def __init__(self, *, one_per_rank: bool) -> None:
        self.one_per_rank = one_per_rank

    def sniff(self, head: bytes, path: Path) -> bool:
        return head.startswith(b"tally ")

    def sources(self, path: Path) -> Sequence[Path]:
        return [path]

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        rank = int(path.read_text().split()[1])
        steps = pl.DataFrame(
            {"rank": [rank], "step": [0], "ts_ns": [0], "dur_ns": [1], "kind": ["decode"]}
        )
        clock = ClockInfo("profiler")
        return {"steps": steps}, Manifest(producer="tally", clock=clock, ranks=(rank,))


def folder_of_two(tmp_path: Path) -> Path:
    for rank in range(2):
        (tmp_path / f"{rank}.tally").write_text(f"tally {rank}")
    (tmp_path / "notes.txt").write_text("nothing")
    return tmp_path


def test_files_of_which_a_reader_has_one_per_rank_are_one_trace(tmp_path: Path) -> None:
    reader = RankFolderReader([Tallies(one_per_rank=True)])

    assert reader.sniff(b"", folder_of_two(tmp_path))
    tables, manifest = reader.read(tmp_path, None)

    assert manifest.ranks == (0, 1)
    assert tables["steps"].lazy().collect()["rank"].to_list() == [0, 1]
    assert manifest.report
    assert manifest.report.skipped == {OTHER_FILES: 1}


def test_files_that_are_not_one_per_rank_make_no_folder_of_ranks(tmp_path: Path) -> None:
    reader = RankFolderReader([Tallies(one_per_rank=False)])

    assert not reader.sniff(b"", folder_of_two(tmp_path))


def test_profiles_are_of_one_rank_each_and_lists_and_logs_are_not() -> None:
    of_ranks = {type(reader).__name__ for reader in readers() if reader.one_per_rank}

    assert of_ranks == {
        "ChromeReader", "NsysReader", "PerfettoReader", "RocpdReader", "Rocprofv3Reader",
        "XPlaneReader",
    }  # fmt: skip


def test_what_is_kept_of_a_rank_is_a_part_of_one_table_of_all(tmp_path: Path) -> None:
    files = [of_rank(rank) for rank in range(8)]

    tables, _ = together(tmp_path, [RankRead(file.name, file) for file in files])

    joined = tables["collectives"].lazy().collect()
    assert joined["rank"].to_list() == [rank for rank in range(8) for _ in range(5)]
    first, *others = [place_of(file.tables["collectives"]) for file in files]
    assert [place - first for place in others] == [8 * 5 * rank for rank in range(1, 8)]


def place_of(rows: pl.LazyFrame) -> int:
    """Where their times lie in memory."""
    times = rows.collect(engine="in-memory")["ts_ns"].to_numpy(allow_copy=False)
    return int(times.__array_interface__["data"][0])


def of_rank(rank: int) -> RankFile:
    at_ns = range(0, 5_000, 1_000)
    rows = pl.DataFrame(
        {"rank": rank, "ordinal": range(5), "ts_ns": at_ns, "dur_ns": 100, "op": "allreduce",
         "group": "tp", "inferred": FROM_NUMBERED_CALLS},
    )  # fmt: skip
    manifest = Manifest(producer="made", clock=ClockInfo("profiler"), ranks=(rank,))
    return RankFile(f"{rank}.json", conformed({"collectives": rows}), manifest)
