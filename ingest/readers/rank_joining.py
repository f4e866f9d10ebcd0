"""Ranks that were read apart, as one trace: their numbers, their clocks, and their collectives.

Clocks are aligned by the ends of collectives where these agree among themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count

import polars as pl

from stepscope.ingest.derive.collectives.clocks import Apart, Offset, clock_offsets
from stepscope.ingest.derive.collectives.facing import Faced, facing
from stepscope.ingest.frames import Frame, empty
from stepscope.ingest.manifest import Manifest, ReadReport
from stepscope.ingest.readers.rank_notes import (
    compared,
    ranks_told,
    said_of_clocks,
    said_of_groups,
)
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.storage.joined_manifest import merged

DATED_NS = 10**18
"""Times after 2001, which none that count from a start of their own reach."""
_NO_STEPS = empty(BY_NAME["steps"]).collect()


@dataclass(slots=True)
class RankFile:
    """What was read of one file: of one rank, as a rule, and on one clock in any case."""

    name: str
    tables: dict[str, pl.LazyFrame]
    manifest: Manifest

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that it is of."""
        return self.manifest.ranks

    @property
    def rank(self) -> int:
        """The rank by whose collectives its clock is known."""
        return self.ranks[0]

    def is_dated(self) -> bool:
        """Whether its times are those of a calendar, as far as the machine's clock is right."""
        begun = [
            self.tables[name].select(pl.col("ts_ns").min()).collect().item()
            for name in ("steps", "collectives")
            if name in self.tables
        ]
        return any(ns is not None and ns + self.manifest.clock.epoch_ns > DATED_NS for ns in begun)

    def moved(self, by_ns: int) -> None:
        """Shift all of its times."""
        later = pl.col("^(ts_ns|gpu_ts_ns)$") + by_ns
        self.tables = {name: frame.with_columns(later) for name, frame in self.tables.items()}

    def renamed(self, said: int, rank: int) -> None:
        """Give another number to one of its ranks."""
        new = pl.when(pl.col("rank") == said).then(pl.lit(rank, pl.Int32)).otherwise("rank")
        number = new.alias("rank")
        self.tables = {name: frame.with_columns(number) for name, frame in self.tables.items()}
        ranks = tuple(rank if each == said else each for each in self.ranks)
        self.manifest = replace(self.manifest, ranks=ranks)


def joined(
    files: list[RankFile], skipped: dict[str, int], notes: list[str]
) -> tuple[dict[str, Frame], Manifest]:
    """Put ranks together, each with a number of its own; `skipped` and `notes` are of all."""
    files = sorted(files, key=lambda file: file.ranks)
    notes = [*notes, *_with_own_ranks(files), *_on_one_epoch(files)]
    dated = {file.rank for file in files if file.is_dated()}
    groups, apart = _numbered_alike(files)
    offsets = _aligned(files, apart)
    notes += [*said_of_clocks(offsets), *said_of_groups(groups)]
    return _together(files), _manifest(files, offsets, dated, groups, skipped, notes)


def _with_own_ranks(files: list[RankFile]) -> Iterator[str]:
    """Let no two files have one rank; the later one gets the next that is free."""
    taken = {rank for file in files for rank in file.ranks}
    free = (number for number in count() if number not in taken)
    seen: set[int] = set()
    for file in files:
        for said in sorted(seen.intersection(file.ranks)):
            rank = next(free)
            file.renamed(said, rank)
            yield f"{file.name} is of rank {said}, as is another file: shown as rank {rank}"
        seen.update(file.ranks)


def _on_one_epoch(files: list[RankFile]) -> Iterator[str]:
    """Let all times count from where those of the first file do."""
    first = files[0].manifest.clock
    unknown: list[int] = []
    for file in files[1:]:
        epoch_ns = file.manifest.clock.epoch_ns
        if bool(epoch_ns) != bool(first.epoch_ns):
            unknown.append(file.rank)
        elif epoch_ns != first.epoch_ns:
            file.moved(epoch_ns - first.epoch_ns)
    if unknown:
        who, do = ranks_told(unknown), "does" if len(unknown) == 1 else "do"
        yield f"{who} {do} not say from when times count: left as they are"


def _numbered_alike(files: list[RankFile]) -> tuple[list[Faced], list[Apart]]:
    """Let the n-th collective of a group be the same in all files, as far as that is known."""
    told = [file for file in files if "collectives" in file.tables]
    if len(told) < 2:
        return [], []
    of_files = [file.tables["collectives"].collect() for file in told]
    steps = [file.tables["steps"].collect() for file in told if "steps" in file.tables]
    found = facing(_one(of_files), _one(steps or [_NO_STEPS]), _num_ranks(files))
    first = 0
    for file, own in zip(told, of_files, strict=True):
        file.tables["collectives"] = found.collectives.slice(first, own.height).lazy()
        first += own.height
    return found.groups, found.apart


def _one(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """All rows in one piece, of which each file's are then a part, and no copy of them all."""
    return pl.concat(frames, rechunk=True)


def _num_ranks(files: list[RankFile]) -> int:
    """How many ranks the job has: as the files say, else those that there are."""
    infos = [file.manifest.config.get("distributedInfo") for file in files]
    said = [info.get("world_size") for info in infos if isinstance(info, dict)]
    known = [size for size in said if isinstance(size, int)]
    return max(known) if known else sum(len(file.ranks) for file in files)


def _aligned(files: list[RankFile], apart: list[Apart]) -> list[Offset]:
    """Move the clocks of ranks to that of the first, as far as their collectives tell."""
    first, *others = files
    clock = {rank: file.rank for file in files for rank in file.ranks}
    between = [
        replace(each, base=clock[each.base], rank=clock[each.rank])
        for each in apart
        if clock[each.base] != clock[each.rank]
    ]
    offsets = clock_offsets(between, first.rank, [file.rank for file in others])
    for file, offset in zip(others, offsets, strict=True):
        if offset.correction_ns:
            file.moved(offset.correction_ns)
    return offsets


def _together(files: list[RankFile]) -> dict[str, Frame]:
    names = dict.fromkeys(name for file in files for name in file.tables)
    return {
        name: pl.concat(
            [file.tables[name] for file in files if name in file.tables], how="diagonal_relaxed"
        )
        for name in names
    }


def _manifest(
    files: list[RankFile],
    offsets: list[Offset],
    dated: set[int],
    groups: list[Faced],
    skipped: dict[str, int],
    notes: list[str],
) -> Manifest:
    found = merged(file.manifest for file in files)
    report = found.report or ReadReport()
    return replace(
        found,
        config={
            **found.config,
            "files": {str(rank): file.name for file in files for rank in file.ranks},
            "clocks": {
                str(each.rank): compared(each, is_dated={each.rank, files[0].rank} <= dated)
                for each in offsets
            },
            "paired": [asdict(each) for each in groups],
        },
        report=replace(
            report,
            skipped={**report.skipped, **skipped},
            notes=(*notes, *report.notes),
        ),
    )
