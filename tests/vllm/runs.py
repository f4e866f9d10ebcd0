"""Starts engines of vLLM with the recorder and the witness in them, and finds what they left.

Where there is a GPU, they run on it: `python -m tests.vllm.runs FOLDER` records the situations of
one process there, with CUDA graphs if `--graphs` says so, and `STEPSCOPE_VLLM_RUNS=FOLDER` lets the
tests judge them, on another machine too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from stepscope.ingest.trace import Trace
from tests.vllm.running.driver import ADAPTERS
from tests.vllm.tiny_llama import make, make_adapter

ROOT = Path(__file__).resolve().parents[2]
ENGINE: dict[str, Any] = {
    "dtype": "float32",
    "enforce_eager": True,
    "max_model_len": 512,
    "block_size": 32,
    "num_gpu_blocks_override": 24,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 128,
    "enable_prefix_caching": False,
    "disable_log_stats": False,
    "gpu_memory_utilization": 0.02,
}
ON_GPU: dict[str, Any] = {"dtype": "bfloat16", "gpu_memory_utilization": 0.1}
"""What is otherwise on a GPU, whose attention kernels know no float32."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What a run left: its traces, the witness's lines, and what vLLM says of its requests."""

    folder: Path

    @cached_property
    def traces(self) -> list[Trace]:
        """Every trace that was recorded, one for each start of an engine."""
        return [Trace.open(path) for path in trace_folders(self.folder / "traces")]

    @cached_property
    def trace(self) -> Trace:
        """The only trace."""
        (only,) = self.traces
        return only

    @cached_property
    def truth(self) -> dict[int, list[Row]]:
        """The witness's lines of each data-parallel rank, in order."""
        lines = defaultdict(list)
        for path in sorted((self.folder / "truth").glob("*.truth.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                told = json.loads(line)
                lines[told["dp"]].append(told)
        return dict(lines)

    @cached_property
    def metrics(self) -> Row:
        """What vLLM counted of each request."""
        return dict(json.loads((self.folder / "metrics.json").read_text(encoding="utf-8")))

    @property
    def is_eager(self) -> bool:
        """Whether nothing of it ran as a CUDA graph."""
        spec = json.loads((self.folder / "spec.json").read_text(encoding="utf-8"))
        return bool(spec["engine"]["enforce_eager"])

    @property
    def profiles(self) -> list[Path]:
        """The torch profiles that the engine wrote itself."""
        return sorted((self.folder / "profile").glob("*.json*"))


@dataclass
class Situation:
    """How an engine is started, and who comes when; `env` goes into its environment."""

    name: str
    requests: list[Row]
    engine: Row = field(default_factory=dict)
    at_once: bool = False
    is_async: bool = False
    profile: bool = True


def engine_settings() -> Row:
    """Arguments of `LLM` for the machine at hand."""
    return {**ENGINE, **(ON_GPU if _has_gpu() else {})}


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def trace_folders(parent: Path) -> list[Path]:
    """Every trace below the folder that `STEPSCOPE_TRACE` named."""
    found = {path.parent for path in parent.rglob("manifest*.json")}
    return sorted(found)


def environment(
    folder: Path, *, is_async: bool = False, in_process: bool = False
) -> dict[str, str]:
    """An environment in which vLLM loads the recorder and the witness, and asks no network."""
    plugin = folder / "plugin"
    info = plugin / "stepscope_truth-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Name: stepscope-truth\nVersion: 1\n", encoding="utf-8")
    entry = "[vllm.general_plugins]\nzz_truth = stepscope_truth:install\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")
    witness = Path(__file__).with_name("running") / "truth_hook.py"
    shutil.copy(witness, plugin / "stepscope_truth.py")
    for name in ("truth", "traces"):
        (folder / name).mkdir(exist_ok=True)
    return {
        **os.environ,
        "PYTHONPATH": str(plugin),
        "STEPSCOPE_TRACE": str(folder / "traces"),
        "STEPSCOPE_TRUTH": str(folder / "truth"),
        "STEPSCOPE_TRUTH_ASYNC": "1" if is_async else "",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0" if in_process else "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }


def run_all(situations: Sequence[Situation], model: Path, folder: Path) -> dict[str, Run]:
    """Run situations in one process, one engine after the other, as starting vLLM takes long.

    Raises AssertionError with the end of what the process printed if it fails.
    """
    folders = [_written(situation, model, folder / situation.name) for situation in situations]
    env = environment(folder, is_async=True, in_process=True)
    env[ADAPTERS] = str(folder / "lora-")
    for number in (1, 2):
        make_adapter(folder / f"lora-{number}", number)
    done = subprocess.run(
        [sys.executable, "-m", "tests.vllm.running.driver", *map(str, folders)],
        env=env, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    output = done.stdout + done.stderr
    (folder / "output.txt").write_text(output, encoding="utf-8")
    assert done.returncode == 0, output[-6000:]
    return {one.name: Run(folder / one.name) for one in situations}


def _written(situation: Situation, model: Path, folder: Path) -> Path:
    for name in ("truth", "traces"):
        (folder / name).mkdir(parents=True)
    engine = {**engine_settings(), "model": str(model), "async_scheduling": situation.is_async}
    if situation.profile:
        engine["profiler_config"] = profiler(folder)
    spec = {
        "engine": {**engine, **situation.engine},
        "requests": situation.requests,
        "at_once": situation.at_once,
        "profile": situation.profile,
    }
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    return folder


def profiler(folder: Path) -> Row:
    """Settings by which the engine writes a torch profile, without stacks."""
    return {
        "profiler": "torch",
        "torch_profiler_dir": str(folder / "profile"),
        "torch_profiler_with_stack": False,
    }


def main() -> None:
    """Record the situations of one process in a folder."""
    from tests.vllm.situations import IN_PROCESS

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", action="store_true", help="run what they cover as CUDA graphs")
    asked = parser.parse_args()
    situations = [each() for each in IN_PROCESS]
    for each in situations if asked.graphs else ():
        graphs = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}
        each.engine |= {"enforce_eager": False, "compilation_config": graphs}
    model = make(asked.folder / "model")
    for each in situations:  # a process each: a second engine in one cannot capture graphs
        run_all([each], model, asked.folder)


if __name__ == "__main__":
    main()
