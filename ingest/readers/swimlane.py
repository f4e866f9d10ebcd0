"""Reader of a core-group swimlane: what the simpler runtime writes about a run on a device.

A folder with `chip_swimlane_records.json` (cores, dispatches, scheduler phases, submissions) and,
beside it, `deps.json` (tasks and dependencies), `name_map_*.json` (kernels) and `scope_stats.jsonl`
(rings). Only the first must be there; what is missing or damaged is in the report.

The format: hw-native-sys/simpler, `docs/` and `tools/` of the `tensormap_and_ringbuffer` runtime.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.ingest.errors import SchemaMismatch, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.readers.json_file import load_json
from stepscope.ingest.readers.swimlane_records import Json, Tally, number
from stepscope.ingest.readers.swimlane_tables import tables

if TYPE_CHECKING:
    from stepscope.ingest.trace import Progress

RECORDS, DEPS, NAMES, SCOPES = (
    "chip_swimlane_records.json", "deps.json", "name_map_*.json", "scope_stats.jsonl",
)  # fmt: skip
_KEPT = ("clock_freq_hz", "num_cores", "core_types", "core_to_thread")


class SwimlaneReader:
    """Reads the folder, or the records file in it; what is damaged is kept as far as it goes."""

    name = "core-group swimlane (folder with chip_swimlane_records.json)"

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a folder by the file in it, and the file by the name of its first list."""
        if path.is_dir():
            return (path / RECORDS).is_file()
        return head.lstrip().startswith(b"{") and b'"aicore_tasks"' in head

    def sources(self, path: Path) -> list[Path]:
        """The records, and what may stand beside them."""
        file = path / RECORDS if path.is_dir() else path
        beside = [file.with_name(DEPS), file.with_name(SCOPES), *sorted(file.parent.glob(NAMES))]
        return [file, *beside]

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read tasks, blocks, edges, phases and rings; raises `TraceError`."""
        file = path / RECORDS if path.is_dir() else path
        tally = Tally()
        found = _object(file, tally)
        if not isinstance(found.get("aicore_tasks"), list):
            raise SchemaMismatch("no list of aicore_tasks in it", where=str(file))
        is_whole = not tally.notes
        deps = _beside(file.with_name(DEPS), tally)
        names, scopes = _names(file.parent, tally), _scopes(file.with_name(SCOPES), tally)
        if progress:
            progress("reading", 1, 1)
        made: dict[str, Frame] = dict(tables(found, deps, names, scopes, tally))
        return made, _manifest(found, made, tally, closed=is_whole)


def _object(file: Path, tally: Tally) -> Json:
    found, note = load_json(file)
    if not isinstance(found, dict):
        raise SchemaMismatch("not a JSON object", where=str(file))
    tally.notes += [note] if note else []
    return found


def _beside(file: Path, tally: Tally) -> Json:
    """Read a file that may be missing or useless; the report says so."""
    if not file.is_file():
        tally.notes.append(f"{file.name} is missing")
        return {}
    try:
        return _object(file, tally)
    except TraceError as error:
        tally.notes.append(f"{file.name}: {error.what}")
        return {}


def _names(folder: Path, tally: Tally) -> dict[int, str]:
    files = sorted(folder.glob(NAMES))
    known = _beside(files[0], tally).get("callable_id_to_name") if files else None
    if not isinstance(known, dict):
        tally.notes.append("kernels have no names: there is no name_map_*.json")
        return {}
    return {
        int(kernel): name.encode("utf-8", "replace").decode()
        for kernel, name in known.items()
        if number(kernel) is not None and isinstance(name, str)
    }


def _scopes(file: Path, tally: Tally) -> list[Json]:
    """The lines of the ring statistics; the first, which holds limits, has no ring."""
    if not file.is_file():
        return []
    lines = file.read_text("utf-8", "replace").splitlines()
    found = [_scope(line) for line in lines if line.strip()]
    scopes = [scope for scope in found if scope and "ring" in scope]
    whole = [scope for scope in scopes if _is_placed(scope)]
    num_lines = len(found) - sum(scope is not None and "ring" not in scope for scope in found)
    tally.count("ring statistics", len(whole), num_lines, "that say no ring or no tasks")
    return whole


def _scope(line: str) -> Json | None:
    try:
        scope = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return scope if isinstance(scope, dict) else None


def _is_placed(scope: Json) -> bool:
    return all(
        isinstance(scope.get(name), int) and 0 <= scope[name] < 1 << 31
        for name in ("ring", "task_window_end")
    )


def _manifest(found: Json, made: dict[str, Frame], tally: Tally, *, closed: bool) -> Manifest:
    metadata: Any = found.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    state = "complete" if closed else "partial"
    inferred = {"core_spans": "inferred", "counters": "inferred"}
    report = ReadReport(
        dict(tally.read), dict(tally.skipped), dict(tally.repaired), dict(tally.inferred),
        tuple(tally.notes),
    )  # fmt: skip
    return Manifest(
        producer="simpler",
        clock=ClockInfo("profiler"),
        config={"device": {name: known[name] for name in _KEPT if name in known}},
        tables={name: inferred.get(name, state) if closed else state for name in made},
        closed=closed,
        report=report,
    )
