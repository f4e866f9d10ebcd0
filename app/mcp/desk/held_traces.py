"""Traces that are open, the latest few, each with what was made of it for one tool or another."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.app.check_config import load_config
from stepscope.app.debug.debugger import Debugger
from stepscope.app.mcp.answering.marked_text import marked, named_as
from stepscope.app.mcp.desk.folders import Folders, Place
from stepscope.app.timeline.model import Timeline
from stepscope.app.units import clock_of
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.readers import reader_of
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

Made = TypeVar("Made")
MOST_HELD = 3
OpenTrace = Callable[[Path], Trace]


class HeldTrace:
    """A trace that is open; what tools make of it is made once, as pages follow each other."""

    def __init__(self, name: str, identity: str, trace: Trace) -> None:
        self.name = name
        self.identity = identity
        self.trace = trace
        self.first_rank: int | None = None
        """The rank that is meant where none is named, as soon as there is a debugger."""
        self._last: tuple[Hashable, Any] | None = None

    @cached_property
    def checked(self) -> CheckResult:
        """What the rules say, as `stepscope.toml` has them."""
        return check(self.trace, load_config().rules())

    @cached_property
    def blamed(self) -> Blame:
        """Where the time of all requests went."""
        return blame(self.trace)

    @cached_property
    def debugger(self) -> Debugger:
        """What stands at a step; who asks says where first."""
        made = Debugger(self.trace)
        self.first_rank = made.rank
        return made

    def last(self, asked: Hashable, make: Callable[[], Made]) -> Made:
        """What was made for the last question, or made anew: pages are of one answer."""
        if self._last is None or self._last[0] != asked:
            self._last = asked, make()
        made: Made = self._last[1]
        return made

    def named(self, shown: str) -> str:
        """The name of a request that was shown so; any other text as it is."""
        return named_as(shown, self.renamed)

    @cached_property
    def renamed(self) -> list[str]:
        """The requests that are shown as something else than their names."""
        frames = [
            self.trace.table(name).select("request").unique()
            for name in ("lifecycle", "batch_rows")
        ]
        names = {name for frame in pl.collect_all(frames) for name in frame["request"].drop_nulls()}
        return sorted(name for name in names if marked(name) != name)

    @cached_property
    def timeline(self) -> Timeline:
        """Its lanes, by which things are found."""
        return Timeline.of(self.trace)

    @cached_property
    def tables(self) -> frozenset[str]:
        """The tables that have a row."""
        return frozenset(table.name for table in TABLES if self.trace.has(table.name))

    @cached_property
    def unknown_columns(self) -> frozenset[tuple[str, str]]:
        """Tables and columns of which no row tells anything, though the table has rows."""
        found = []
        for name in sorted(self.tables):
            known = self.trace.table(name).select(pl.all().count()).collect().row(0, named=True)
            found += [(name, column) for column, number in known.items() if not number]
        return frozenset(found)


class HeldTraces:
    """The traces that were asked about last; one that has changed on the disk is opened anew."""

    def __init__(self, folders: Folders, open_trace: OpenTrace) -> None:
        self.folders = folders
        self._open_trace = open_trace
        self._held: OrderedDict[Path, HeldTrace] = OrderedDict()

    def trace(self, given: str) -> HeldTrace:
        """The trace of a name; raises ConfigError where it may not be read, TraceError as opening.

        What a reader looks at beside the file that was named has to be inside as well.
        """
        place = self.folders.place(given)
        sources = [Path(each) for each in reader_of(place.path).sources(place.path)]
        if not all(map(self.folders.holds, sources)):
            raise ConfigError("a file beside it, which is read with it, is a link that leads out")
        identity = _identity(place, sources)
        held = self._held.get(place.path)
        if held is None or held.identity != identity:
            held = HeldTrace(place.name, identity, self._open_trace(place.path))
            self._held[place.path] = held
        clock_of(has_times=held.trace.manifest.clock.has_times)
        self._held.move_to_end(place.path)
        while len(self._held) > MOST_HELD:
            self._held.popitem(last=False)
        return held


def _identity(place: Place, sources: list[Path]) -> str:
    """What changes when a file of the trace does."""
    files = sorted({*_files(place.path), *sources})
    told = [str(place.path)]
    for file in files:
        try:
            was = file.stat()
        except OSError:
            continue
        told.append(f"{file} {was.st_size} {was.st_mtime_ns} {was.st_ino}")
    return hashlib.blake2s("\n".join(told).encode("utf-8", "surrogateescape")).hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)
