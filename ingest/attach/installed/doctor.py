"""What an installed engine offers to be recorded, and whether a run of it would be.

The engine is not imported, which takes many seconds and may fail: `probe.py` runs in the
environment's own Python and looks into the text of its modules, for functions and for what they
take.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.ingest.attach.installed.offered import InstalledEngine
from stepscope.ingest.errors import ConfigError

VARIABLE = "STEPSCOPE_TRACE"
PROBE_S = 60
LEAST_FREE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Diagnosis:
    """What was found of an engine: `probed` in the environment, `missing` names of each part,
    `troubles`.

    A trouble is what keeps a run from being recorded, or a part of it, with what to do about it;
    without one, everything that is known would be recorded.
    """

    engine: InstalledEngine
    probed: Mapping[str, Any]
    missing: Mapping[str, tuple[str, ...]]
    troubles: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "engine": self.engine.name,
            **{name: told for name, told in self.probed.items() if name != "found"},
            "records": [name for name, gone in self.missing.items() if not gone],
            "missing": {name: list(gone) for name, gone in self.missing.items() if gone},
            "never": list(self.engine.never),
            "troubles": list(self.troubles),
            "notes": list(self.notes),
        }


def diagnose(
    engine: InstalledEngine, python: str | None = None, trace: str | None = None
) -> Diagnosis:
    """Look at the engine of a Python, by default of this one; `trace` is what the variable holds.

    `python` is an interpreter, or the folder of a virtual environment. Raises ConfigError where
    it is none.
    """
    probed = _probe(_interpreter(python), engine)
    missing = {part.name: part.missing(probed["found"]) for part in engine.parts}
    troubles = [*_not_installed(engine, probed), *_not_writable(trace)]
    if probed["folder"]:
        troubles += [f"not recorded: {name}" for name, gone in missing.items() if gone]
    return Diagnosis(engine, probed, missing, tuple(troubles), tuple(_notes(engine, probed)))


def _interpreter(python: str | None) -> str:
    if python is None:
        return sys.executable
    path = Path(python)
    if path.is_dir():
        inside = [path / "bin" / "python", path / "Scripts" / "python.exe"]
        path = next((each for each in inside if each.exists()), path)
    if path.is_file() and os.access(path, os.X_OK):
        return str(path)
    if not path.exists() and (known := shutil.which(python)):
        return known
    raise ConfigError(
        "no Python was found", where=python, todo="name a virtual environment, or its bin/python"
    )


def _probe(python: str, engine: InstalledEngine) -> dict[str, Any]:
    source = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    asked = {
        "package": engine.name,
        "distributions": engine.distributions,
        "plugins": engine.plugins,
        "allowed": engine.allowed,
        "names": [name for part in engine.parts for name in (*part.needs, *part.instead)],
    }
    try:
        done = subprocess.run(  # noqa: S603 - the Python that the user has named
            [python, "-c", source], input=json.dumps(asked), capture_output=True, text=True,
            timeout=PROBE_S, check=True,
        )  # fmt: skip
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        why = said[-1] if said else type(error).__name__
        raise ConfigError(f"this Python cannot be asked: {why}", where=python) from None


def _not_installed(engine: InstalledEngine, probed: Mapping[str, Any]) -> list[str]:
    told, title = [], engine.title
    if not probed["folder"]:
        told.append(f"{title} is not installed there: pip install {engine.name}")
    if not probed["stepscope"]:
        told.append(f"stepscope is not installed there: pip install stepscope beside {title}")
    elif not probed["has_plugin"]:
        told.append(f"stepscope is there without its plug-in for {title}: install it again")
    allowed = probed["allowed"]
    if not engine.loads_us(allowed):
        told.append(
            f"{engine.allowed} is {allowed!r}, so {title} does not load stepscope: add it there"
        )
    return told


def _not_writable(trace: str | None) -> list[str]:
    if not trace:
        return [f"{VARIABLE} is not set, so nothing is recorded: set it to a folder"]
    path = Path(trace).absolute()
    if path.exists() and not path.is_dir():
        return [f"{VARIABLE} is {trace}, which is a file: name a folder"]
    nearest = next((each for each in (path, *path.parents) if each.exists()), path)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return [f"{VARIABLE} is {trace}, and nothing can be written into {nearest}"]
    free = shutil.disk_usage(nearest).free
    if free < LEAST_FREE_BYTES:
        return [f"{VARIABLE} is {trace}, where only {free:,} bytes are free"]
    return []


def _notes(engine: InstalledEngine, probed: Mapping[str, Any]) -> list[str]:
    version = probed["version"]
    if version is None or version.partition("+")[0] in engine.tested:
        return []
    return [
        f"stepscope was tried with {engine.title} {', '.join(engine.tested)}; of {version} it"
        " records what it knows by name"
    ]
