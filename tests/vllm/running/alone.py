"""Situations for a scheduler alone, in whatever version of vLLM: no model, steps of a made-up time.

Nobody comes at the same moment as another: older versions cannot order two such requests that have
the same priority.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stepscope
from stepscope.ingest.recording.closing import close_recording
from stepscope.ingest.replay.script import (
    ABORT,
    ADD,
    READY,
    Asked,
    Call,
    Script,
    StepCosts,
    write_script,
)
from tests.vllm.runs import Run

CONFIG = {
    "max_num_seqs": 8, "max_num_batched_tokens": 128, "max_model_len": 512, "block_size": 16,
    "num_blocks": 48, "enable_prefix_caching": False, "enable_chunked_prefill": True,
}  # fmt: skip
COSTS = StepCosts(1_000_000, 10_000, 50_000, 100)
MS = 10**6


@dataclass(frozen=True)
class Alone:
    """Who comes when, is ready when and is given up when, to a scheduler configured so."""

    name: str
    config: dict[str, Any]
    asked: tuple[Asked, ...]
    others: tuple[Call, ...] = ()
    calls: tuple[Call, ...] = field(init=False)

    def __post_init__(self) -> None:
        added = (Call(ADD, each.arrival_ns, request=each.request) for each in self.asked)
        calls = sorted((*added, *self.others), key=lambda call: call.ts_ns)
        object.__setattr__(self, "calls", tuple(calls))

    @property
    def script(self) -> Script:
        """What the driver is told."""
        return Script("vllm", {**CONFIG, **self.config}, self.asked, self.calls, costs=COSTS)


def _asked(number: int, *, every_us: int = 1500, **more: Any) -> Asked:
    num_tokens = 12 + number * 13 % 60
    return Asked(
        f"r{number}", 20 + number * 37 % 150, num_tokens, number * every_us * 1000 + number,
        num_outputs=num_tokens, **more,
    )  # fmt: skip


def _gone(number: int, after_ms: int, asked: Asked) -> Call:
    return Call(ABORT, asked.arrival_ns + after_ms * MS + number, request=asked.request)


def _crowd() -> Alone:
    return Alone("crowd", {}, tuple(_asked(number, every_us=1) for number in range(20)))


def _chunks() -> Alone:
    config = {"max_num_batched_tokens": 48, "long_prefill_token_threshold": 32}
    return Alone("chunks", config, tuple(_asked(number) for number in range(20)))


def _whole_prompts() -> Alone:
    config = {"max_num_batched_tokens": 512, "enable_chunked_prefill": False}
    return Alone("whole prompts", config, tuple(_asked(number) for number in range(20)))


def _prefixes() -> Alone:
    asked = tuple(
        _asked(number, contents=(0, 1, 2) if number % 3 else (0, 9)) for number in range(20)
    )
    return Alone("prefixes", {"enable_prefix_caching": True, "num_blocks": 32}, asked)


def _priorities() -> Alone:
    asked = tuple(_asked(number, priority=number * 7 % 4) for number in range(24))
    given_up = tuple(_gone(number, 25, asked[number]) for number in range(5, 24, 8))
    return Alone("priorities", {"policy": "priority", "num_blocks": 30}, asked, given_up)


def _given_up() -> Alone:
    asked = tuple(_asked(number) for number in range(24))
    given_up = tuple(_gone(number, 1 + number % 5 * 8, asked[number]) for number in range(2, 24, 3))
    return Alone("given up", {}, asked, given_up)


def _grammars(name: str = "grammars", **config: Any) -> Alone:
    asked = tuple(
        _asked(number, has_grammar=number % 2 == 1, priority=number * 7 % 3) for number in range(16)
    )
    ready = tuple(
        Call(READY, each.arrival_ns + number % 4 * 6 * MS, request=each.request)
        for number, each in enumerate(asked)
        if each.has_grammar
    )
    return Alone(name, {"max_num_seqs": 4, **config}, asked, ready)


def _adapters() -> Alone:
    asked = tuple(
        _asked(number, lora=f"lora-{number % 3}" if number % 3 else None) for number in range(16)
    )
    return Alone("adapters", {"max_loras": 1}, asked)


def _drafts() -> Alone:
    taken = ((3, 2), (3, 0), (3, 3), (3, 1))
    asked = tuple(_asked(number, drafts=taken) for number in range(16))
    return Alone("drafts", {"num_spec_tokens": 3}, asked)


def _overlapped() -> Alone:
    asked = tuple(_asked(number) for number in range(20))
    given_up = tuple(_gone(number, 12, asked[number]) for number in range(3, 20, 7))
    return Alone("overlapped", {"async_scheduling": True}, asked, given_up)


SITUATIONS = (
    _crowd(), _chunks(), _whole_prompts(), _prefixes(), _priorities(), _given_up(), _grammars(),
    _grammars("grammars and priorities", policy="priority"), _adapters(), _drafts(), _overlapped(),
)  # fmt: skip


def run_alone(python: str, situations: Sequence[Alone], folder: Path) -> dict[str, Run]:
    """Run situations on the scheduler of an environment, one after the other in one process.

    Raises AssertionError with the end of what the process printed if it fails.
    """
    folders = [_written(each, folder / each.name.replace(" ", "-")) for each in situations]
    done = subprocess.run(
        [python, str(Path(__file__).with_name("drive_scheduler.py")),
         str(Path(stepscope.__file__).parent), *map(str, folders)],
        env=_environment(), capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    output = done.stdout + done.stderr
    (folder / "output.txt").write_text(output, encoding="utf-8")
    assert done.returncode == 0, output[-6000:]
    for each in folders:
        if any((each / "traces" / "run.trace").glob("journal.rank=*")):
            close_recording(each / "traces" / "run.trace")
    return {one.name: Run(at) for one, at in zip(situations, folders, strict=True)}


def _written(situation: Alone, folder: Path) -> Path:
    for name in ("truth", "traces"):
        (folder / name).mkdir(parents=True)
    write_script(situation.script, folder / "script.jsonl")
    return folder


def _environment() -> dict[str, str]:
    without = ("STEPSCOPE_TRACE", "STEPSCOPE_START", "PYTHONPATH", "PYTHONHOME")
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return {**kept, "OMP_NUM_THREADS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
