"""What an installed vLLM offers to be recorded, and whether a run of it would be.

vLLM is not imported, which takes many seconds and may fail: `probe.py` runs in the environment's
own Python and looks into the text of its modules, for functions and for what they take.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.ingest.attach.vllm.engine_config import FOLLOWED
from stepscope.ingest.errors import ConfigError

VARIABLE = "STEPSCOPE_TRACE"
TESTED = ("0.32.0",)
PROBE_S = 60
LEAST_FREE_BYTES = 64 * 2**20
_OWNERS = {
    "scheduler": "vllm.v1.core.sched.scheduler:Scheduler.",
    "kv_cache_manager": "vllm.v1.core.kv_cache_manager:KVCacheManager.",
    "coordinator": "vllm.v1.core.kv_cache_coordinator:KVCacheCoordinator.",
    "block_pool": "vllm.v1.core.block_pool:BlockPool.",
    "prefix_cache": "vllm.v1.core.block_pool:BlockPool.",
    "queue": "vllm.v1.core.sched.request_queue:RequestQueue.",
    "outputs": "vllm.v1.engine.output_processor:OutputProcessor.",
    "server": "uvicorn.config:Config.",
    "runner": "vllm.v1.worker.gpu_model_runner:GPUModelRunner.",
}
_CLIENT = "vllm.v1.engine.core_client:"


def _needs(owner: str, *names: str, of: str = "") -> tuple[str, ...]:
    """Functions of an owner, all where none is named, as `module:Class.name(parameters)`."""
    followed = FOLLOWED[owner]
    return tuple(
        f"{of or _OWNERS[owner]}{name}({', '.join(_held(followed[name]))})"
        for name in names or followed
    )


def _held(takes: tuple[str, ...]) -> list[str]:
    return [each for each in takes if not each.endswith("?")]


@dataclass(frozen=True)
class Part:
    """Something that can be recorded, and the functions of vLLM without which it is not."""

    name: str
    needs: tuple[str, ...]


PARTS = (
    Part("steps, batches and both queues", _needs("scheduler", "schedule", "update_from_output")),
    Part("requests that arrive, finish and are aborted",
         _needs("scheduler", "add_request", "finish_requests", "_free_request")),
    Part("preemptions", _needs("scheduler", "_preempt_request")),
    Part("why requests wait",
         (*_needs("kv_cache_manager"), *_needs("coordinator"), *_needs("queue"))),
    Part("KV blocks and who holds them", _needs("block_pool")),
    Part("the prefix cache", _needs("prefix_cache")),
    Part("the graph that ran, and rows of logits", _needs("runner")),
    Part("the front end: when requests came, and when clients were given outputs",
         (*_needs("outputs"),
          *_needs("client", "add_request", of=f"{_CLIENT}InprocClient."),
          *_needs("client", "add_request", of=f"{_CLIENT}SyncMPClient."),
          *_needs("client", "add_request_async", of=f"{_CLIENT}AsyncMPClient."))),
    Part("what clients of a server see: requests read, and answers written", _needs("server")),
    Part("data-parallel ranks apart",
         _needs("client", "get_core_engine_for_request", of=f"{_CLIENT}DPLBAsyncMPClient.")),
)  # fmt: skip


@dataclass(frozen=True)
class Diagnosis:
    """What was found: `probed` in the environment, `missing` names of each part, `troubles`.

    A trouble is what keeps a run from being recorded, or a part of it, with what to do about it;
    without one, everything that is known would be recorded.
    """

    probed: Mapping[str, Any]
    missing: Mapping[str, tuple[str, ...]]
    troubles: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            **{name: told for name, told in self.probed.items() if name != "found"},
            "records": [name for name, gone in self.missing.items() if not gone],
            "missing": {name: list(gone) for name, gone in self.missing.items() if gone},
            "troubles": list(self.troubles),
            "notes": list(self.notes),
        }


def diagnose(python: str | None = None, trace: str | None = None) -> Diagnosis:
    """Look at the vLLM of a Python, by default of this one; `trace` is what the variable holds.

    `python` is an interpreter, or the folder of a virtual environment. Raises ConfigError where
    it is none.
    """
    names = [name for part in PARTS for name in part.needs]
    probed = _probe(_interpreter(python), names)
    found = probed["found"]
    missing = {part.name: tuple(name for name in part.needs if not found[name]) for part in PARTS}
    troubles = [*_not_installed(probed), *_not_writable(trace)]
    if probed["folder"]:
        troubles += [f"not recorded: {name}" for name, gone in missing.items() if gone]
    return Diagnosis(probed, missing, tuple(troubles), tuple(_notes(probed)))


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


def _probe(python: str, names: Sequence[str]) -> dict[str, Any]:
    source = Path(__file__).with_name("probe.py").read_text(encoding="utf-8")
    try:
        done = subprocess.run(  # noqa: S603 - the Python that the user has named
            [python, "-c", source], input="\n".join(names), capture_output=True, text=True,
            timeout=PROBE_S, check=True,
        )  # fmt: skip
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        why = said[-1] if said else type(error).__name__
        raise ConfigError(f"this Python cannot be asked: {why}", where=python) from None


def _not_installed(probed: Mapping[str, Any]) -> list[str]:
    told = []
    if not probed["folder"]:
        told.append("vLLM is not installed there: pip install vllm")
    if not probed["stepscope"]:
        told.append("stepscope is not installed there: pip install stepscope beside vLLM")
    elif not probed["has_plugin"]:
        told.append("stepscope is there without its plug-in for vLLM: install it again")
    allowed = probed["allowed"]
    if allowed is not None and "stepscope" not in allowed.split(","):
        told.append(f"VLLM_PLUGINS is {allowed!r}, so vLLM does not load stepscope: add it there")
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


def _notes(probed: Mapping[str, Any]) -> list[str]:
    version = probed["vllm"]
    if version is None or version.partition("+")[0] in TESTED:
        return []
    tested = ", ".join(TESTED)
    return [
        f"stepscope was tried with vLLM {tested}; of {version} it records what it knows by name"
    ]
