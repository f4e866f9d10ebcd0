"""A fleet goes into its archive: each trace once, by what is in its files.

First all files are digested, and what is known by its digest is left alone. Of a job the file of
each rank is one task, and when all are done the job is another one. What a worker took with it as
it died is tried again by itself, some times; then it is a file that cannot be read. Everything
that is finished is on the disk at once, so that a run that is killed goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stepscope.analyzers.fleet.archive.columns_of_rows import FileRow, Record
from stepscope.analyzers.fleet.archive.opened import Archive
from stepscope.analyzers.fleet.found_traces import Found, shown
from stepscope.analyzers.fleet.handing_out import MOST_TRIES, HandingOut
from stepscope.analyzers.fleet.messages import (
    Answer,
    Died,
    Digested,
    Digests,
    Failed,
    Job,
    OneRank,
    OneTrace,
    Outcome,
    PartMade,
    RankPart,
    Settings,
    ToDigest,
)
from stepscope.analyzers.fleet.rank_columns import unpacked, why_of
from stepscope.analyzers.fleet.under_way import Asked, UnderWay, key_of
from stepscope.analyzers.fleet.worker_pool import Pool
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.rank_folder import LIMIT_FILES

DIGESTED_AT_ONCE = 16


@dataclass(slots=True)
class Tally:
    """What came of it: files and traces, how many were known before, and what could not be read."""

    num_files: int = 0
    num_traces: int = 0
    num_known: int = 0
    num_copies: int = 0
    num_checked: int = 0
    num_deaths: int = 0
    read_bytes: int = 0
    sent_bytes: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


class Importing:
    """Imports what was found; tasks of files go to `pool`, those of jobs to `joining`."""

    def __init__(
        self, archive: Archive, settings: Settings, pool: Pool, joining: Pool, report: Progress
    ) -> None:
        self.tally = Tally()
        self._archive, self._settings, self._report = archive, settings, report
        self._handing_out = HandingOut(pool, joining)

    def run(self, found: Sequence[Found], *, again: bool = False) -> Tally:
        """Import all that is not known yet, with `again` also what could not be read before.

        Raises WriteError where the archive takes no more, and StepscopeError where no worker works.
        """
        self.tally.num_traces = len(found)
        self.tally.num_files = sum(len(each.places) for each in found)
        new = list(self._new(found, self._digested(found), again=again))
        done = sum(len(each.places) for each in found) - sum(len(t.digests) for t in new)
        tasks = (asked for trace in new for asked in self._tasks_of(trace))
        for asked, answer in self._handing_out.answered(tasks):
            done += self._take(asked, answer)
            self._report("importing", done, self.tally.num_files)
        self._archive.drop_parts()
        self.tally.num_deaths = self._handing_out.num_deaths
        return self.tally

    def _digested(self, found: Sequence[Found]) -> list[Digested]:
        """Digest every place of every trace, in their order."""
        places = [place for each in found if not each.why for place in each.places]
        digests: dict[int, Digested] = {}
        tasks = (
            Asked(
                ToDigest(tuple(places[first : first + DIGESTED_AT_ONCE])),
                places=tuple(range(len(places))[first : first + DIGESTED_AT_ONCE]),
            )
            for first in range(0, len(places), DIGESTED_AT_ONCE)
        )
        for asked, answer in self._handing_out.answered(tasks):
            each = answer.each if isinstance(answer, Digests) else ()
            why = Digested(why=_why(answer))
            digests |= dict(zip(asked.places, each or [why] * len(asked.places), strict=True))
            self._report("digesting", len(digests), len(places))
        return [digests[number] for number in range(len(places))]

    def _new(
        self, found: Sequence[Found], digests: list[Digested], *, again: bool
    ) -> Iterator[UnderWay]:
        """The traces that are not known yet; of several that are alike the first."""
        seen: set[str] = set()
        left = iter(digests)
        for each in found:
            told = [Digested(why=each.why) if each.why else next(left) for _ in each.places]
            trace = UnderWay(each, told, key_of(each, told))
            is_known = self._archive.known.get(trace.key) == self._settings.version
            if trace.key in seen:
                self.tally.num_copies += 1
            elif is_known and not (again and trace.key in self._archive.failing):
                self.tally.num_known += 1
            else:
                seen.add(trace.key)
                yield trace

    def _tasks_of(self, trace: UnderWay) -> Iterator[Asked]:
        """What is to be done for a trace; of a job the files whose parts are not there yet."""
        found, settings = trace.found, self._settings
        if not found.is_job:
            if trace.why[0]:
                self._failed(trace, trace.why[0])
                return
            yield Asked(OneTrace(found.places[0], found.name, settings), trace)
            return
        asked: list[Asked] = []
        for number, place in enumerate(found.places):
            part = self._archive.part_file(trace.part_key(number, self._settings.version))
            if number >= LIMIT_FILES:
                trace.why[number] = f"a job has at most {LIMIT_FILES:,} files"
            elif part.is_file():
                made = part.read_bytes()
                trace.why[number], trace.sent[number] = why_of(unpacked(made).read), len(made)
            elif not trace.why[number]:
                asked.append(Asked(OneRank(place, settings), trace, number))
        trace.num_missing = len(asked)
        if not asked:
            self._handing_out.jobs.append(self._job(trace))
        yield from asked

    def _take(self, asked: Asked, answer: Answer) -> int:
        """Keep what was answered; gives how many files are done with."""
        trace = asked.trace
        assert trace is not None, "digests are done with"
        if asked.number is None:
            if isinstance(answer, Outcome):
                self._finished(trace, answer)
            else:
                self._failed(trace, _why(answer))
            return 0 if trace.found.is_job else 1
        self.tally.read_bytes += trace.digests[asked.number].num_bytes
        if isinstance(answer, PartMade):
            trace.why[asked.number] = answer.why
            trace.sent[asked.number] = len(answer.part)
            self._archive.put_part(
                trace.part_key(asked.number, self._settings.version), answer.part
            )
        else:
            trace.why[asked.number] = _why(answer)
        trace.num_missing -= 1
        if not trace.num_missing:
            self._handing_out.jobs.append(self._job(trace))
        return 1

    def _job(self, trace: UnderWay) -> Asked:
        parts = tuple(
            RankPart(
                shown(os.path.basename(place.path)),
                os.fsencode(self._archive.part_file(trace.part_key(number, self._settings.version)))
                if sent is not None
                else None,
                why,
            )
            for number, (place, sent, why) in enumerate(
                zip(trace.found.places[:LIMIT_FILES], trace.sent, trace.why, strict=False)
            )
        )
        beyond = len(trace.found.places) - LIMIT_FILES
        return Asked(Job(trace.found.name, parts, beyond, self._settings), trace)

    def _finished(self, trace: UnderWay, outcome: Outcome) -> None:
        if trace.found.is_job:
            self.tally.sent_bytes += sum(sent or 0 for sent in trace.sent)
        else:
            self.tally.read_bytes += trace.digests[0].num_bytes
        self.tally.num_checked += 1
        self._added(trace, trace.files(), outcome)

    def _failed(self, trace: UnderWay, why: str) -> None:
        """Say why a trace cannot be read; of a job, whose files could be, that is another row."""
        if trace.found.is_job:
            whole = FileRow(trace.found.name, None, None, why=why)
            self._added(trace, (*trace.files(), whole))
            return
        trace.why[0] = why
        self._added(trace, trace.files())

    def _added(
        self, trace: UnderWay, files: tuple[FileRow, ...], outcome: Outcome | None = None
    ) -> None:
        self.tally.failed += [(file.path, file.why) for file in files if file.why]
        row, findings = (outcome.row, outcome.findings) if outcome else (None, ())
        version = self._settings.version
        self._archive.add(Record(trace.key, version, trace.found.name, files, row, findings))
        if trace.found.is_job:
            self._archive.drop_parts(
                trace.part_key(number, self._settings.version)
                for number in range(len(trace.digests))
            )


def _why(answer: Answer) -> str:
    if isinstance(answer, Failed):
        return answer.reason
    if isinstance(answer, Died):
        times = "" if answer.is_final else f", each of {MOST_TRIES} times"
        return f"the process that read it {answer.how}{times}"
    return f"a worker answered with {type(answer).__name__}"
