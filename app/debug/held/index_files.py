"""The parts of a session on disk, in the user's cache, so that a long run opens at once again.

Only a trace directory that was closed has its parts there: another may grow. See
docs/decisions/0050-a-session-opens-from-its-index.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.index import Index, Made, Part, made_in_memory
from stepscope.ingest.storage.beside import place_beside
from stepscope.ingest.storage.cache import Cache
from stepscope.ingest.storage.cache_key import code_version
from stepscope.ingest.trace import Trace

WORTH_BYTES = 4 << 20
"""A smaller trace is opened in a second or less."""
_PARTS = "parts.json"
_CODE = Path(__file__).parent.parent


class MappedIndex(dict[str, Part]):
    """Parts that are mapped from files, which stay while it lives."""


def index_of(trace: Trace, rank: int) -> Index:
    """The parts of a rank, from the cache where they are there, and put there if that helps."""
    place = _place(trace, rank)
    if place is None:
        return made_in_memory(trace, rank)
    cache, name = place
    if found := cache.find(name, mapped):
        return found
    is_new = cache.keep(name, lambda folder: write(folder, Made(trace, rank)))
    return cache.find(name, mapped, is_new=is_new) or made_in_memory(trace, rank)


def write(folder: Path, made: Made) -> None:
    """Write the parts as they are made: one file for each array."""

    def written(name: str, part: Part) -> dict[str, int] | None:
        for table, rows in (part or {}).items():
            for column, array in rows.arrays().items():
                np.save(folder / _file(name, table, column), array)
        return None if part is None else {table: len(rows) for table, rows in part.items()}

    (folder / _PARTS).write_text(json.dumps(made.parts(written)))


def mapped(folder: Path) -> MappedIndex:
    """Map what `write` wrote; raises `OSError`, `ValueError` or `KeyError` where it is none."""
    sizes: dict[str, dict[str, int] | None] = json.loads((folder / _PARTS).read_bytes())
    arrays: dict[str, dict[str, Path]] = {}
    for file in folder.glob("*.npy"):
        table, _, column = file.stem.partition("~")
        arrays.setdefault(table, {})[column.replace("~", "/")] = file
    index = MappedIndex()
    for name, tables in sizes.items():
        index[name] = None if tables is None else {
            table: FlatRows.from_arrays(
                {
                    column: np.load(file, mmap_mode="r").view(np.ndarray)
                    for column, file in arrays.get(f"{name}.{table}", {}).items()
                },
                num_rows,
            )
            for table, num_rows in tables.items()
        }  # fmt: skip
    return index


def _file(part: str, table: str, column: str) -> str:
    return f"{part}.{table}~{column.replace('/', '~')}.npy"


def _place(trace: Trace, rank: int) -> tuple[Cache, str] | None:
    """The cache and the name of the entry; None where none is made."""
    if not (trace.path and trace.path.is_dir()):
        return None
    return place_beside(trace, code_version(_CODE), str(rank), WORTH_BYTES)
