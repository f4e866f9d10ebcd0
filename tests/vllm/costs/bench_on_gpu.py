"""What recording costs a vLLM on a GPU: `python -m tests.vllm.costs.bench_on_gpu`, where vLLM is.

The loads are those of `bench`, each driven by two engines of one process in turn, one with our
functions and one without. A model has the shape of one that people serve, random weights and a
vocabulary of 512 words, which makes its steps a little shorter than theirs. What it decodes runs as
CUDA graphs. A step is measured by the wall's clock: while the engine waits for its GPU, nothing
else runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.vllm.costs.bench import LOADS, timed_phases
from tests.vllm.costs.bench_hooks import Timed
from tests.vllm.costs.bench_in_turn import Driven, Pair, Placed
from tests.vllm.costs.bench_pairs import More
from tests.vllm.tiny_llama import make_shape

SHAPES = {
    "1b": {
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
    },
    "8b": {
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    },
}  # fmt: skip
"""Of Llama 3.2 1B and Llama 3.1 8B, by their published `config.json`."""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip


def main() -> None:
    """Print two lines for each load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    parser.add_argument("--seconds", type=float, default=20, help="of each load, in turn")
    parser.add_argument("--sync", action="store_true", help="no asynchronous scheduling")
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.model:
        _drive(asked.model, asked.seconds, is_async=not asked.sync)
        return
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as name:
        model = make_shape(Path(name) / "model", SHAPES[asked.shape])
        for seconds in (asked.seconds, -asked.seconds / 4):
            command = [sys.executable, "-m", "tests.vllm.costs.bench_on_gpu", "--model", str(model)]
            command += ["--seconds", str(seconds), *(["--sync"] if asked.sync else [])]
            subprocess.run(
                command, check=True, env={**os.environ, "STEPSCOPE_TRACE": f"{name}/traces"}
            )


def _drive(model: Path, seconds: float, *, is_async: bool) -> None:
    """Run all loads on the same engines, which take as long to start as a load takes to measure.

    With negative `seconds` our own functions are timed, on one engine.
    """
    timed, placed = Timed(), Placed()
    (timed if seconds < 0 else placed).install()
    engines = [_engine(model, is_async=is_async) for _ in range(1 if seconds < 0 else 2)]
    for load in LOADS:
        for engine in engines:
            _let_run(engine, load.num_running + load.room)
        both = [Driven(engine, load, time.perf_counter) for engine in engines]
        if seconds < 0:
            told = _own(both[0], timed, -seconds)
        else:
            told = str(More.of(Pair(both, placed).phases(seconds)))
        for driven in both:
            driven.clear()
        sys.stdout.write(f"{load.name}: {told}; at most {load.limit:.0%} is asked for\n")
        sys.stdout.flush()
    for engine in engines:
        engine.engine_core.shutdown()


def _engine(model: Path, *, is_async: bool) -> Any:
    """An engine on less than half of a GPU."""
    from vllm import LLM

    room = max(load.num_running + load.room for load in LOADS)
    return LLM(
        model=str(model), load_format="dummy", dtype="bfloat16", max_model_len=4096,
        max_num_seqs=room, max_num_batched_tokens=2048, disable_log_stats=True,
        async_scheduling=is_async, enable_prefix_caching=False, gpu_memory_utilization=0.45,
        compilation_config={"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"},
    ).llm_engine  # fmt: skip


def _let_run(engine: Any, most: int) -> None:
    """Have its scheduler run at most so many; newer versions hold it in two places."""
    scheduler = engine.engine_core.engine_core.scheduler
    scheduler.max_num_running_reqs = scheduler.max_num_active_reqs = most


def _own(driven: Driven, timed: Timed, seconds: float) -> str:
    told = timed_phases(driven, timed, seconds)
    ours, step = median(ours for ours, _ in told), median(step for _, step in told)
    return (
        f"our own functions take {ours * 1e6:,.1f} µs of a step, {ours / step:.2%} of its "
        f"{step * 1e6:,.0f}"
    )


if __name__ == "__main__":
    main()
