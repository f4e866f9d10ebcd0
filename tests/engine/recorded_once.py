"""Runs of the reference engine, each recorded but once for all processes that test beside others.

A run is what its options say, so that whoever asks for the same gets the same trace; nobody writes
into it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from stepscope.engine.runs.scenario import Options, RunResult
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace


@dataclass(frozen=True)
class RecordedOnce:
    """Keeps runs in a folder that processes share."""

    folder: Path

    def trace(self, name: str, variant: str, options: Options | None = None) -> Trace:
        """Open the trace of a run of a variant."""
        result = self.run(name, variant, options)
        assert result.path is not None
        return Trace.open(result.path)

    def run(self, name: str, variant: str, options: Options | None = None) -> RunResult:
        """Give what a run of a variant came to, and with it the path of its trace."""
        options = options or Options()
        assert options.observer is None, "a run that was recorded is observed no more"
        assert not isinstance(options.workload, Path), "what is in a file may be changed"
        settings = sorted(options.settings.items())
        asked = (name, variant, replace(options, settings={}, faults=frozenset()), settings,
                 sorted(options.faults))  # fmt: skip
        kept = self.folder / hashlib.sha256(repr(asked).encode()).hexdigest()[:16]
        if not kept.is_dir():
            self._record(name, variant, options, kept)
        result: RunResult = pickle.loads((kept / "result").read_bytes())  # noqa: S301 - our own
        return replace(result, path=kept / "run.trace")

    def _record(self, name: str, variant: str, options: Options, kept: Path) -> None:
        ours = kept.with_name(f"{kept.name}.{os.getpid()}")
        ours.mkdir(parents=True)
        result = scenario(name).record(variant, ours / "run.trace", options)
        (ours / "result").write_bytes(pickle.dumps(result))
        try:
            ours.rename(kept)
        except OSError:  # another process was first
            shutil.rmtree(ours)
