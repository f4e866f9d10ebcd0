"""Reader of a core-group swimlane: what the simpler runtime writes about a run on a device.

A folder with `chip_swimlane_records.json` (cores, dispatches, scheduler phases, submissions) and,
beside it, `deps.json` (tasks and dependencies), `name_map_*.json` (kernels) and `scope_stats.jsonl`
(rings). One of them, told by its content, stands for all in its folder; alone it gives what it can.
What is missing or damaged is in the report.

The format: hw-native-sys/simpler, `docs/` and `tools/` of the `tensormap_and_ringbuffer` runtime.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from stepscope.ingest.errors import SchemaMismatch, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater, inflated
from stepscope.ingest.readers.seam import HEAD_BYTES
from stepscope.ingest.readers.swimlane.decode import Json, Tally, number
from stepscope.ingest.readers.swimlane.split import load_json
from stepscope.ingest.readers.swimlane.tables import tables
from stepscope.ingest.readers.text.letters import with_whole_letters
from stepscope.ingest.readers.text.split import Lines

RECORDS, DEPS, NAMES, SCOPES = (
    "chip_swimlane_records.json", "deps.json", "name_map_*.json", "scope_stats.jsonl",
)  # fmt: skip
_MARKS = {
    "records": (b'"aicore_tasks"',),
    "deps": (b'"task_id"', b'"kernel_ids"'),
    "names": (b'"callable_id_to_name"',),
    "scopes": (b'"task_window_',),
}
_KEPT = ("clock_freq_hz", "num_cores", "core_types", "core_to_thread")


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a run; each may be missing."""

    records: Path
    deps: Path
    names: Path
    scopes: Path

    @classmethod
    def of(cls, path: Path, role: str | None) -> _Files:
        """Those of a folder; of one of them, which may have another name, those beside it."""
        folder = path if path.is_dir() else path.parent
        named = next(iter(sorted(folder.glob(NAMES))), folder / NAMES)
        found = cls(folder / RECORDS, folder / DEPS, named, folder / SCOPES)
        return replace(found, **{role: path}) if role else found


class SwimlaneReader:
    """Reads the folder, or a file of it; what is damaged is kept as far as it goes."""

    name = "core-group swimlane (folder with chip_swimlane_records.json, or a file of it)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a folder by the records in it, and a file by what only that kind of file names."""
        return (path / RECORDS).is_file() if path.is_dir() else _role(head) is not None

    def sources(self, path: Path) -> list[Path]:
        """The files of the run, there or not."""
        files = _Files.of(path, _role_of(path))
        return [files.records, files.deps, files.names, files.scopes]

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read tasks, blocks, edges, phases and rings; raises `TraceError`."""
        role, tally = _role_of(path), Tally(limits)
        files = _Files.of(path, role)
        found = _records(files.records, tally, is_needed=role in (None, "records"))
        deps = _beside(files.deps, tally, is_needed=role == "deps")
        names = _names(files.names, tally, is_needed=role == "names")
        scopes = _scopes(files.scopes, tally)
        if progress:
            progress("reading", 1, 1)
        made: dict[str, Frame] = dict(tables(found, deps, names, scopes.lines, tally))
        config = _config(found, names, scopes)
        return made, _manifest(made, config, tally, has_records=bool(found))


def _role(head: bytes) -> str | None:
    """Which of the files begins so."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return None
    return next((role for role, marks in _MARKS.items() if all(m in start for m in marks)), None)


def _role_of(path: Path) -> str | None:
    if path.is_dir():
        return None
    with path.open("rb") as file:
        return _role(inflated(file.read(HEAD_BYTES), HEAD_BYTES)) or "records"


def _records(file: Path, tally: Tally, *, is_needed: bool) -> Json:
    if not is_needed and not file.is_file():
        tally.notes.append(f"{file.name} is missing: nothing says what ran when")
        return {}
    found = _object(file, tally, is_needed=True)
    if not isinstance(found.get("aicore_tasks"), list):
        raise SchemaMismatch("no list of aicore_tasks in it", where=str(file))
    return found


def _object(file: Path, tally: Tally, *, is_needed: bool = False) -> Json:
    found, note = load_json(file, tally.limits)
    if not isinstance(found, dict):
        raise SchemaMismatch("not a JSON object", where=str(file))
    tally.notes += [note] if note else []
    tally.is_cut |= bool(note) and is_needed
    return found


def _beside(file: Path, tally: Tally, *, is_needed: bool = False) -> Json:
    """Read a file that may be missing or useless; the report says so."""
    if is_needed:
        return _object(file, tally, is_needed=True)
    if not file.is_file():
        tally.notes.append(f"{file.name} is missing")
        return {}
    try:
        return _object(file, tally)
    except TraceError as error:
        tally.notes.append(f"{file.name}: {error.what}")
        return {}


def _names(file: Path, tally: Tally, *, is_needed: bool) -> dict[int, str]:
    known = _beside(file, tally, is_needed=is_needed).get("callable_id_to_name")
    listed = known.items() if isinstance(known, dict) else ()
    names = {
        int(kernel): name.encode("utf-8", "replace").decode()
        for kernel, name in listed
        if number(kernel) is not None and isinstance(name, str)
    }
    tally.count("names of kernels", len(names), len(listed), "that are not a number and a text")
    return names


@dataclass(frozen=True, slots=True)
class _Scopes:
    """Lines of the ring statistics, and the first, which holds the sizes of the rings."""

    lines: list[Json]
    sizes: Json


def _scopes(file: Path, tally: Tally) -> _Scopes:
    if not file.is_file():
        return _Scopes([], {})
    lines = Lines(Inflater(file, limits=tally.limits), tally.limits.line)
    found = [_scope(line.removeprefix(b"\xef\xbb\xbf")) for line, _ in lines if line.strip()]
    sizes = [scope for scope in found if scope and "ring" not in scope]
    whole = [scope for scope in found if scope and _is_placed(scope)]
    tally.skipped.update(lines.left_out())
    tally.count("sizes of rings", len(sizes), len(sizes), "")
    num_lines = len(found) - len(sizes)
    tally.count("ring statistics", len(whole), num_lines, "that say no ring or no tasks")
    first = sizes[0] if sizes else {}
    if lost := number(first.get("dropped")):
        tally.notes.append(f"{file.name}: the runtime dropped {lost:,} of its lines")
    if first.get("fatal") is True:
        tally.notes.append(f"{file.name}: the runtime stopped at a fatal error")
    return _Scopes(whole, first)


def _scope(line: bytes) -> Json | None:
    try:
        scope = json.loads(with_whole_letters(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None
    return scope if isinstance(scope, dict) else None


def _is_placed(scope: Json) -> bool:
    return all(
        isinstance(scope.get(name), int) and 0 <= scope[name] < 1 << 31
        for name in ("ring", "task_window_end")
    )


def _config(found: Json, names: dict[int, str], scopes: _Scopes) -> Json:
    """What the run was configured with: the device, its kernels, the sizes of its rings."""
    metadata = found.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    rings = {
        name.removesuffix("_max"): sizes
        for name, sizes in scopes.sizes.items()
        if name.endswith("_max")
    }
    told = {
        "device": {name: known[name] for name in _KEPT if name in known},
        "kernels": {str(kernel): name for kernel, name in names.items()},
        "rings": rings,
    }
    return {name: part for name, part in told.items() if part}


def _manifest(made: dict[str, Frame], config: Json, tally: Tally, *, has_records: bool) -> Manifest:
    closed = not tally.is_cut
    inferred = {"core_spans": "inferred", "counters": "inferred"}
    if not has_records:
        inferred = {"counters": "ordered", "spans": "ordered"}
    report = ReadReport(
        dict(+tally.read), dict(tally.skipped), dict(tally.repaired), dict(tally.inferred),
        tuple(tally.notes),
    )  # fmt: skip
    states = {name: inferred.get(name, "complete") if closed else "partial" for name in made}
    return Manifest(
        producer="simpler",
        clock=ClockInfo("profiler" if has_records else "virtual"),
        config=config,
        tables=states,
        closed=closed,
        report=report,
    )
