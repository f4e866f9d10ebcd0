"""Run a replay in the engine's own environment, in a process of its own.

Only this package is made known there, not the environment that stepscope itself runs in: two
environments in one process would mix their libraries.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import IO, Any

import stepscope
from stepscope.app.replay.other_process import lines_of
from stepscope.ingest.errors import ConfigError, ReplayFailed
from stepscope.ingest.progress import Progress
from stepscope.ingest.recording.closing import close_recording
from stepscope.ingest.replay.script import Script, write_script

BOOT = """
import importlib.util, sys
home = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location(
    "stepscope", home + "/__init__.py", submodule_search_locations=[home])
sys.modules["stepscope"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
from stepscope.ingest.replay.child import main
sys.exit(main(*sys.argv[1:]))
"""
LAST_LINES = 5
SILENT_S = 600.0
"""An engine that says nothing for so long hangs: it is imported and built in less."""
Json = dict[str, Any]


def python_of(env: str | None) -> str:
    """The interpreter of an environment: a folder of a virtual environment, or a program.

    Raises `ConfigError` where there is none.
    """
    if env is None:
        return sys.executable
    path = Path(env)
    found = next((each for each in (path / "bin" / "python", path) if each.is_file()), None)
    if found is None:
        raise ConfigError("no Python was found", where=env,
                          todo="name a virtual environment, or its bin/python")  # fmt: skip
    return str(found.absolute())


def run(
    script: Script, python: str, out: Path, report: Progress | None = None,
    silent_s: float = SILENT_S,
) -> Json:  # fmt: skip
    """Replay a script with that Python, recorded into `out`; returns what its process said.

    Raises `ReplayFailed` where the engine is not there, cannot be built, raises, or says nothing
    for `silent_s` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="stepscope-replay-") as folder:
        written = Path(folder) / "script.jsonl"
        write_script(script, written)
        with (Path(folder) / "stderr").open("w+b") as stderr:
            said = _said(python, written, out, stderr, report, silent_s)
            if "result" in said:
                _compact(out)
                found: Json = said["result"]
                return found
            raise ReplayFailed(_why(said, stderr, script.engine), where=python, todo=_todo(said))


def _compact(out: Path) -> None:
    """Make Parquet of what was recorded: the engine's environment may lack what does that."""
    if any(out.glob("journal.rank=*")):
        close_recording(out)


def _said(
    python: str, script: Path, out: Path, stderr: IO[bytes], report: Progress | None,
    silent_s: float,
) -> Json:  # fmt: skip
    """The last thing that the process said."""
    home = str(Path(stepscope.__file__).parent)
    said: Json = {}
    command = [python, "-c", BOOT, home, str(script), str(out)]
    try:
        for line in lines_of(command, _environment(), stderr, silent_s):
            said = _parsed(line) or said
            if report is not None and "done" in said:
                report("replaying", said["done"], said["total"])
    except TimeoutError:
        raise ReplayFailed(
            f"it said nothing for {silent_s:g} s and was ended", where=python,
            todo="give it more time with --timeout SECONDS",
        ) from None  # fmt: skip
    except OSError as error:
        raise ConfigError(error.strerror or str(error), where=python) from None
    return said


def _parsed(line: str) -> Json:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _environment() -> dict[str, str]:
    """Ours, but that nothing of it is recorded or imported there, and that vLLM is quiet."""
    without = ("STEPSCOPE_TRACE", "STEPSCOPE_START", "PYTHONPATH", "PYTHONHOME")
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return {
        "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_USE_V2_MODEL_RUNNER": "0", "OMP_NUM_THREADS": "1",
        **kept,
    }  # fmt: skip


def _why(said: Json, stderr: IO[bytes], engine: str) -> str:
    told = str(said.get("error", ""))
    if "No module named" in told:
        missing = told.partition("No module named ")[2]
        return f"its {engine} cannot be imported: there is no module {missing}"
    if told:
        return f"the scheduler cannot be replayed: {told}"
    stderr.seek(0)
    lines = stderr.read().decode("utf-8", "replace").splitlines()
    last = deque((line for line in lines if line.strip()), maxlen=LAST_LINES)
    return f"the process ended without a result: {last[-1] if last else 'it said nothing'}"


def _todo(said: Json) -> str:
    if "No module named" in str(said.get("error", "")):
        return "name the environment of the engine with --python ENV"
    return "run again with STEPSCOPE_DEBUG=1 to see more" if said.get("error") else ""
