"""Reader of rocpd: what rocprofv3 writes since ROCm 7, unless it is asked for another format."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater
from stepscope.ingest.readers.encodings.sqlite import MAGIC, VIEWS, Database, database
from stepscope.ingest.readers.profile_tables import profile_tables
from stepscope.ingest.readers.profiles import rank_in_name
from stepscope.ingest.readers.rocpd.collect import Collected, Process
from stepscope.ingest.readers.rocpd.decode import ABOUT, PREFIX, processes
from stepscope.ingest.readers.rocpd.tables import NamedSpans, named_spans
from stepscope.ingest.readers.seam import HEAD_BYTES, OneFile

KNOWN_VERSION = "3"
_VERSION = "schema_version"
SNIFF_BYTES = 1 << 20
_MARK = PREFIX.encode()


class RocpdReader(OneFile):
    """Reads kernels, copies, calls, roctx ranges and counters of each process."""

    name = "rocpd of rocprofv3 (.db)"
    one_per_rank = True

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a database that makes a table of rocpd.

        Each table takes a page as it is made, so what makes them may stand behind the first 64 KiB.
        """
        if not head.startswith(MAGIC):
            return False
        return _MARK in head or (len(head) >= HEAD_BYTES and _is_further(path))

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans and counters, and infer steps and collectives; raises `TraceError`."""
        found = Collected()
        with database(path, progress, limits) as opened:
            version = _version(opened)
            first = rank_in_name(path) or 0
            named = [
                named_spans(Process(opened, suffix, found), rank)
                for rank, suffix in enumerate(processes(opened.tables), first)
            ]
            damage, refused = opened.damage, opened.refused
        if not found.read.total():
            raise _nothing(path, damage, version)
        profile = profile_tables(
            pl.concat(each.spans for each in named),
            counters=pl.concat(each.counters for each in named),
        )
        notes = [f"{what}: {why}; all rows before are kept" for what, why in damage.items()]
        # Every such database has views of its own tables: what they show is read from these.
        skipped = found.skipped + Counter({what: refused[what] for what in {*refused} - {VIEWS}})
        notes = [*notes, *_about(named, version, first)]
        report = profile.report(found.read, skipped, found.repaired, notes)
        return profile.tables, profile.manifest(
            "rocprofv3", "", 0, report, {_VERSION: version}, closed=not damage
        )


def _is_further(path: Path) -> bool:
    left, end = SNIFF_BYTES, b""
    try:
        for block in Inflater(path):
            if _MARK in end + block:
                return True
            left, end = left - len(block), block[-len(_MARK) :]
            if left <= 0:
                break
    except TraceError:
        pass
    return False


def _version(opened: Database) -> str:
    tables = [table for table in opened.tables if table.startswith(f"{PREFIX}metadata")]
    told = [dict(opened.whole(table, ABOUT).drop_nulls().iter_rows()) for table in tables]
    return next((said[_VERSION] for said in told if _VERSION in said), "")


def _nothing(path: Path, damage: dict[str, str], version: str) -> TraceError:
    why = next((f": {why}" for why in damage.values()), "")
    if not why and version and version != KNOWN_VERSION:
        why = f": its schema is version {version}, and stepscope reads version {KNOWN_VERSION}"
    what = f"no row of it says when something ran{why}"
    todo = "run rocprofv3 again, or with --output-format json or pftrace"
    return (TruncatedTrace if damage else TraceError)(what, where=str(path), todo=todo)


def _about(named: list[NamedSpans], version: str, first: int) -> list[str]:
    notes = []
    if version and version != KNOWN_VERSION:
        notes.append(f"its schema is version {version}; what is known is version {KNOWN_VERSION}")
    if len(named) > 1:
        who = [f"rank {rank} is {each.process}" for rank, each in enumerate(named[:64], first)]
        notes.append(f"each process is a rank: {', '.join(who)}")
    return notes
