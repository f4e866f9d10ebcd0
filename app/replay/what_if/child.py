"""The process that runs a trace with changes: it says how far it is, and at last what came of it.

It is told on its command line where the trace is, what is to be different and where to record to,
and writes lines of JSON to its standard output. It ends when the front that started it has gone,
whatever ended that.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec

from stepscope.app.failures import told
from stepscope.app.replay.what_if.came import Said
from stepscope.app.replay.what_if.choices import choices_of
from stepscope.app.replay.what_if.running import run_otherwise
from stepscope.ingest.trace import Trace

LOOKS_EVERY_S = 1.0
PROGRESS_S = 0.1
"""No front draws more often."""


def say(line: Said) -> None:
    """Write a line, at once."""
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


def main(path: str, words: str, out: str) -> int:
    """Run the trace at `path` with the changes that `words` ask for; 1 where that failed."""
    last_s = 0.0

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= PROGRESS_S or not done:
            last_s = time.monotonic()
            say(Said(what, done, total))

    try:
        trace = Trace.open(path, progress=report)
        choices = choices_of(trace)
        wanted = choices.asked(words)
        came = run_otherwise(trace, choices.kind, wanted, Path(out), report)
    except Exception as error:  # whatever it is, the front says it in a line
        say(Said(failed=told(error)[0]))
        return 1
    say(Said(came=came))
    return 0


def end_with(parent: int, *_given: Any) -> None:
    """End this process when its parent is another one, which takes it over from one that died."""
    while os.getppid() == parent:
        time.sleep(LOOKS_EVERY_S)
    os._exit(1)


if __name__ == "__main__":
    Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    sys.exit(main(*sys.argv[1:]))
