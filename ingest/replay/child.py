"""Runs in the engine's own environment: `child.py SCRIPT OUT`; progress and result on stdout.

Every line of stdout is JSON: `{"done": n, "total": n}` now and then, and at last either
`{"result": ...}` or `{"error": text}`. What the engine prints goes to stderr. It imports the
standard library and the engine, nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from stepscope.ingest.replay.carrying_on import CarryingOn
from stepscope.ingest.replay.following import Followed, Progress, follow
from stepscope.ingest.replay.scheduler_calls import Replayed, Replays
from stepscope.ingest.replay.script import Script, read_script
from stepscope.ingest.replay.virtual_clock import Clock

Json = dict[str, Any]


def main(script: str, out: str) -> int:
    """Replay a script, record it into `out`, and say what came of it."""
    tell = _our_own_stdout()

    def progress(done: int, total: int) -> None:
        _say(tell, {"done": done, "total": total})

    try:
        _say(tell, {"result": _replay(read_script(Path(script)), Path(out), progress)})
    except (
        Exception
    ) as error:  # whatever an engine raises is told in a line, whichever engine it is
        if os.environ.get("STEPSCOPE_DEBUG"):
            raise
        _say(tell, {"error": f"{type(error).__name__}: {error}".partition("\n")[0]})
        return 1
    return 0


def _replay(script: Script, out: Path, progress: Progress) -> Json:
    clock = Clock()
    engine = import_module(f"stepscope.ingest.replay.{script.engine}.replayed")
    replays: Replays = engine.Replayed
    with replays(script, out, clock) as replayed, clock.for_everybody():
        followed, went_on = Followed(), {}
        if script.has_steps:
            followed = follow(script, replayed.scheduler, clock, progress)
        if script.costs is not None and (followed.diverged or not script.has_steps):
            went_on = _carry_on(script, replayed, clock, followed, progress)
    return {**replayed.said, **_as_json(followed), **went_on}


def _carry_on(
    script: Script, replayed: Replayed, clock: Clock, followed: Followed, progress: Progress
) -> Json:
    carrying = CarryingOn(script, replayed.scheduler, clock, followed)
    carrying.run(progress)
    return {"carried_on": carrying.num_steps, "is_stuck": carrying.is_stuck}


def _as_json(followed: Followed) -> Json:
    diverged = followed.diverged
    if diverged is None:
        return {"num_steps": followed.num_steps}
    rows = followed.formed[diverged.step].rows
    return {
        "num_steps": followed.num_steps,
        "diverged": {
            "step": diverged.step,
            "recorded": [list(row) for row in diverged.batch],
            "replayed": [[row.request, row.num_tokens] for row in rows],
        },
    }


def _our_own_stdout() -> TextIO:
    """Keep stdout for us; whatever the engine prints goes to stderr."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "w", encoding="utf-8", buffering=1)


def _say(tell: TextIO, what: Json) -> None:
    tell.write(json.dumps(what) + "\n")
    tell.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
