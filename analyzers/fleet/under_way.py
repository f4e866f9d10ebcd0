"""A trace on its way into an archive: its files, what is asked of them, and what it is known by."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from stepscope.analyzers.fleet.archive.columns_of_rows import FileRow
from stepscope.analyzers.fleet.found_traces import Found, shown
from stepscope.analyzers.fleet.messages import Digested, Place, Task


@dataclass(slots=True, eq=False)
class UnderWay:
    """A trace that is under way: what is known of each of its files, and which are missing."""

    found: Found
    digests: list[Digested]
    key: str
    why: list[str] = field(default_factory=list)
    sent: list[int | None] = field(default_factory=list)
    num_missing: int = 0

    def __post_init__(self) -> None:
        self.why = [each.why for each in self.digests]
        self.sent = [None] * len(self.digests)

    def files(self) -> tuple[FileRow, ...]:
        """A row for each file."""
        told = zip(self.found.places, self.digests, self.sent, self.why, strict=True)
        return tuple(
            FileRow(
                _path(place),
                each.sha256 or None,
                each.num_bytes if each.sha256 else None,
                sent,
                why,
            )
            for place, each, sent, why in told
        )  # fmt: skip

    def part_key(self, number: int, version: str) -> str:
        """A part by the file's bytes, by its name, which may tell the rank, and by version."""
        name = os.path.basename(self.found.places[number].path)
        of = (self.digests[number].sha256, name, version)
        return hashlib.sha256(repr(of).encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A task, and what it is of: a trace, and the number of its file where it is of one."""

    task: Task
    trace: UnderWay | None = None
    number: int | None = None
    places: tuple[int, ...] = ()


def key_of(found: Found, digests: Sequence[Digested]) -> str:
    """What a trace is known by: the bytes of its file, or of a job's files with their names."""
    if not found.is_job and digests[0].sha256:
        return digests[0].sha256
    digest = hashlib.sha256(b"" if found.is_job else os.fsencode(found.name))
    for place, each in zip(found.places, digests, strict=True):
        digest.update(repr((os.path.basename(place.path), each.sha256, each.why)).encode())
    return digest.hexdigest()


def _path(place: Place) -> str:
    return place.path.decode() if place.is_remote else shown(os.fsdecode(place.path))
