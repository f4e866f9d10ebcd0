"""The process beside an engine that turns full segments into Parquet, and outlives it if it dies.

`python -m stepscope.ingest.recording.compactor` reads what to do from its standard input, one JSON
object a line, until an empty one. Where the end comes before that, the engine died: then what it
left is finished as `stepscope close` does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.manifest import Writer
from stepscope.ingest.recording.closing import close_writer
from stepscope.ingest.recording.compaction import compact_segment, compact_writer
from stepscope.ingest.recording.holding import is_held
from stepscope.ingest.recording.segments import writer_of

LOWEST_PRIORITY = 19
MOST_LEFT = 8
PATIENCE_S = 10.0
"""For so long after the pipe has ended a process that was forked off may still hold the journal."""


def main() -> None:
    """Do what the standard input names, at the lowest priority."""
    os.nice(LOWEST_PRIORITY)
    journals: set[Path] = set()
    left: list[Path] = []
    for line in sys.stdin:
        match json.loads(line):
            case {"segment": file}:
                journals.add(Path(file).parent)
                # What was left because of a row that was not finished may be by now.
                tried = [*left, Path(file)]
                left = [each for each in tried if not compact_segment(each)][-MOST_LEFT:]
            case {"trace": trace, "writer": name}:
                compact_writer(Path(trace), Writer.named(name) or Writer())
            case _:
                return
    for journal in journals:
        _finish(journal)


def _finish(journal: Path) -> None:
    """Finish the journal of an engine that died; where that fails, it opens as it is."""
    deadline = time.monotonic() + PATIENCE_S
    while is_held(journal) and time.monotonic() < deadline:
        time.sleep(0.05)
    with suppress(StepscopeError):
        close_writer(journal.parent, writer_of(journal))


if __name__ == "__main__":
    main()
