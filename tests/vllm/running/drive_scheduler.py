"""Drives the scheduler of a vLLM alone, without a model, beside the recorder and the witness.

It runs by itself in the environment of that vLLM: `python drive_scheduler.py STEPSCOPE FOLDER...`,
where STEPSCOPE is the folder of the package, which is imported from there. Each folder has a
`script.jsonl` of requests that come and are given up, and the costs by which time goes on; it gets
the trace, and the witness's lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def main(package: str, folders: Sequence[str]) -> None:
    """Run what each folder says."""
    _load("stepscope", Path(package) / "__init__.py", package)
    _load("stepscope_truth", Path(__file__).with_name("truth_hook.py")).watch()
    for folder in folders:
        os.environ["STEPSCOPE_TRUTH"] = f"{folder}/truth"
        _run(Path(folder))


def _load(name: str, file: Path, *folder: str) -> Any:
    spec = spec_from_file_location(name, file, submodule_search_locations=list(folder) or None)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(folder: Path) -> None:
    from stepscope.ingest.replay.carrying_on import CarryingOn
    from stepscope.ingest.replay.following import Followed
    from stepscope.ingest.replay.script import read_script
    from stepscope.ingest.replay.virtual_clock import Clock
    from stepscope.ingest.replay.vllm.replayed import Replayed

    script, clock = read_script(folder / "script.jsonl"), Clock()
    out = folder / "traces" / "run.trace"
    with Replayed(script, out, clock) as replayed, clock.for_everybody():
        CarryingOn(script, replayed.scheduler, clock, Followed()).run(lambda *_: None)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
