"""The tracks of a Perfetto file: what each is called, below which it lies, and of which rank."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stepscope.ingest.readers.perfetto.packets.texts import text, texts

UNITS = {1: "ns", 2: "count", 3: "bytes"}
_RANK = re.compile(r"rank[-_. ]?(\d{1,6})", re.IGNORECASE)
_MOST_ABOVE = 64
Key = int | tuple[int, int]
"""A track's uuid; pid and tid where a file of an older kind gives no uuid."""
Path = tuple[str, ...]


@dataclass(slots=True)
class Described:
    """What descriptors say of a track so far."""

    name: str | None = None
    parent: int = 0
    pid: int | None = None
    tid: int | None = None
    is_counter: bool = False
    unit: str | None = None
    factor: float = 1.0
    is_incremental: bool = False

    def count(self, counter: Any) -> None:
        """Take over what a CounterDescriptor says."""
        self.is_counter = True
        is_named = counter.HasField("unit_name")
        self.unit = text(counter.unit_name) if is_named else UNITS.get(counter.unit)
        self.factor = float(counter.unit_multiplier or 1)
        self.is_incremental = counter.is_incremental


@dataclass(frozen=True, slots=True)
class Place:
    """A track as it is shown: its rank (None: not told), the names down to it, its unit.

    The samples of a counter are to be multiplied with `factor`, and summed if `is_incremental`.
    """

    rank: int | None
    path: Path
    unit: str | None
    factor: float
    is_incremental: bool


class Tracks:
    """Numbers for tracks, in the order in which events name them, and what describes them."""

    def __init__(self, limit: int) -> None:
        self.num_beyond = 0
        self._limit = limit
        self._numbers: dict[Key | None, int] = {}
        self._described: dict[Key, Described] = {}
        self._owners: dict[int, Key] = {}
        self._paths: dict[Key, Path] = {}
        self._taken: dict[tuple[object, ...], Key] = {}
        self._processes: dict[int, str] = {}
        self._threads: dict[tuple[int, int], str] = {}

    def number(self, key: Key | None, num: int = 1) -> int:
        """The number of a track, for so many events; all beyond the limit are one."""
        found = self._numbers.get(key)
        if found is None and len(self._numbers) >= self._limit and key is not None:
            self.num_beyond += num
            return self.number(None)
        return found if found is not None else self._numbers.setdefault(key, len(self._numbers))

    def describe(self, said: Any) -> None:
        """Take over a TrackDescriptor; later ones add to it."""
        track = self._described.setdefault(said.uuid, Described())
        if kind := said.WhichOneof("static_or_dynamic_name"):
            track.name = text(getattr(said, kind))
        track.parent = said.parent_uuid or track.parent
        if said.HasField("process"):
            track.pid = said.process.pid
            self.name_process(said.process)
        if said.HasField("thread"):
            self._describe_thread(track, said.thread)
        if said.HasField("counter"):
            track.count(said.counter)

    def describe_thread(self, thread: Any) -> Key:
        """Take over a ThreadDescriptor of a sequence that has no uuids; gives the track's key."""
        key = thread.pid, thread.tid
        self._describe_thread(self._described.setdefault(key, Described()), thread)
        return key

    def name_process(self, process: Any) -> None:
        """Take over a ProcessDescriptor, or a process of a ProcessTree."""
        name = text(getattr(process, "process_name", "")) or " ".join(texts(process.cmdline))
        if name:
            self._processes[process.pid] = name

    def name_thread(self, pid: int, tid: int, name: str | bytes) -> None:
        """Take over the name of a thread."""
        if name:
            self._threads[pid, tid] = text(name)

    def places(self) -> list[Place]:
        """Every track, by number; those of one name below the same are told apart."""
        self._owners = {
            track.pid: key
            for key, track in self._described.items()
            if track.pid is not None and track.tid is None
        }
        return [self._place(key) for key in self._numbers]

    def _describe_thread(self, track: Described, thread: Any) -> None:
        track.pid, track.tid = thread.pid, thread.tid
        self.name_thread(thread.pid, thread.tid, thread.thread_name)

    def _place(self, key: Key | None) -> Place:
        path = self._path(key, _MOST_ABOVE) if key is not None else ()
        rank = _RANK.fullmatch(path[0]) if path else None
        said = Described() if key is None else self._described.get(key, Described())
        shown = path[1:] if rank else path
        return Place(
            int(rank[1]) if rank else None, shown, said.unit, said.factor, said.is_incremental
        )

    def _path(self, key: Key, most: int) -> Path:
        """The names from the root to a track; what lies below itself is cut off."""
        if key not in self._paths:
            track = self._described.get(key, Described())
            above = self._above(key, track, most)
            self._paths[key] = (*above, self._unique(key, track, above))
        return self._paths[key]

    def _above(self, key: Key, track: Described, most: int) -> Path:
        parent: Key | None = track.parent if track.parent in self._described else None
        if parent is None and track.tid is not None and track.pid is not None:
            parent = self._owners.get(track.pid)
            if parent is None:
                return (self._processes.get(track.pid) or f"process {track.pid}",)
        return self._path(parent, most - 1) if parent not in (None, key) and most else ()

    def _unique(self, key: Key, track: Described, above: Path) -> str:
        name = self._called(key, track)
        called, attempt = name, 1
        while self._taken.setdefault((above, track.is_counter, track.unit, called), key) != key:
            attempt += 1
            called = f"{name} #{attempt}"
        return called

    def _called(self, key: Key, track: Described) -> str:
        if track.tid is not None and track.pid is not None:
            named = self._threads.get((track.pid, track.tid))
            return named or track.name or f"thread {track.tid}"
        if track.pid is not None:
            return self._processes.get(track.pid) or track.name or f"process {track.pid}"
        return f"track {key}" if track.name is None else track.name
