"""A scheduler that a replay can drive where there is no engine: first come, first served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope import Recorder
from stepscope.ingest.replay.carrying_on import CarryingOn
from stepscope.ingest.replay.following import Followed, follow
from stepscope.ingest.replay.scheduler_calls import Formed, Row
from stepscope.ingest.replay.script import ADD, Asked, Call, Script, StepCosts
from stepscope.ingest.replay.virtual_clock import Clock

CONFIG = {
    "max_num_seqs": 4, "max_num_batched_tokens": 16, "max_model_len": 512, "block_size": 16,
    "num_blocks": 64, "enable_prefix_caching": False,
}  # fmt: skip
COSTS = StepCosts(1_000_000, 10_000, 50_000, 100)


def quiet(_done: int, _total: int) -> None:
    """Tell nobody."""


@dataclass
class _Open:
    asked: Asked
    computed: int = 0
    sampled: int = 0


@dataclass
class SmallScheduler:
    """Chunks of prefill up to the budget, decodes first; records what it decides."""

    config: Mapping[str, Any]
    recorder: Recorder
    clock: Clock
    is_async: bool = False
    num_drafts: int = 0
    step: int = 0
    opened: dict[str, _Open] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)

    def add(self, asked: Asked) -> None:
        self.opened[asked.request] = _Open(asked)
        self.recorder.lifecycle(
            step=self.step, ts_ns=self.clock.now_ns(), request=asked.request, event="arrive",
            prompt_len=asked.prompt_len, max_tokens=asked.max_tokens,
        )  # fmt: skip

    def ready(self, request: str) -> None:
        raise AssertionError(request)

    def dummy(self, began_ns: int) -> None:
        raise AssertionError(began_ns)

    def schedule(self, *, is_throttled: bool) -> Formed:
        assert not is_throttled
        self.step += 1
        left, rows = self.config["max_num_batched_tokens"], []
        for name in self._in_line():
            one = self.opened[name]
            todo = one.asked.prompt_len + one.sampled - one.computed
            number = min(todo, left)
            if number:
                rows.append(Row(name, number, one.computed, number == todo))
                one.computed += number
                left -= number
        self._record(rows)
        return Formed(tuple(rows), (self.step, self.clock.now_ns()))

    def update(self, formed: Formed, tokens: Mapping[str, int], ends: Mapping[str, str]) -> None:
        step, began = formed.handle
        now = self.clock.now_ns()
        self.recorder.steps(
            step=step, ts_ns=began, dur_ns=now - began, kind="mixed", num_running=len(self.running)
        )
        for name in tokens:
            one = self.opened[name]
            self.recorder.outputs(
                step=step, ts_ns=now, request=name, position=one.sampled, source_step=step
            )
            one.sampled += 1
            if one.sampled == 1:
                self._tell(name, "first-token")
            if one.sampled == one.asked.max_tokens or name in ends:
                self._tell(name, "finish", cause="length_capped", num_generated=one.sampled)
                self._gone(name)

    def propose(self, drafts: Mapping[str, int]) -> None:
        raise AssertionError(drafts)

    def abort(self, request: str) -> None:
        self._tell(request, "abort", cause="aborted")
        self._gone(request)

    def has_work(self) -> bool:
        return bool(self.opened)

    def open_requests(self) -> Sequence[str]:
        return list(self.opened)

    def _in_line(self) -> list[str]:
        waiting = [name for name in self.opened if name not in self.running]
        for name in waiting[: self.config["max_num_seqs"] - len(self.running)]:
            self.running.append(name)
            self._tell(name, "admit")
        return list(self.running)

    def _gone(self, name: str) -> None:
        del self.opened[name]
        if name in self.running:
            self.running.remove(name)

    def _tell(self, name: str, event: str, **more: Any) -> None:
        self.recorder.lifecycle(
            step=self.step, ts_ns=self.clock.now_ns(), request=name, event=event, **more
        )

    def _record(self, rows: Sequence[Row]) -> None:
        for at, row in enumerate(rows):
            asked = self.opened[row.request].asked
            self.recorder.batch_rows(
                step=self.step, ts_ns=self.clock.now_ns(), row=at, request=row.request,
                phase="prefill" if row.num_computed < asked.prompt_len else "decode",
                num_tokens=row.num_tokens, num_computed=row.num_computed,
                prompt_len=asked.prompt_len,
            )  # fmt: skip


def run_small(script: Script, out: Path) -> dict[str, Any]:
    """What `child.py` does in an engine's environment, in this process and with this scheduler."""
    clock = Clock()
    recorder = Recorder(
        out, producer="vllm", producer_version="small", config={"engine": CONFIG},
        now_ns=clock.now_ns, rank=script.rank,
    )  # fmt: skip
    with recorder:
        scheduler = SmallScheduler(script.config, recorder, clock)
        followed, more = Followed(), {}
        if script.has_steps:
            followed = follow(script, scheduler, clock, quiet)
        if followed.diverged or not script.has_steps:
            carrying = CarryingOn(script, scheduler, clock, followed)
            carrying.run(quiet)
            more = {"carried_on": carrying.num_steps, "is_stuck": carrying.is_stuck}
    said = {"version": "small", "scheduler": "small", "unknown": []}
    return {**said, "num_steps": followed.num_steps, **more}


def recorded(
    out: Path, num_requests: int = 12, *, aborted: str | None = None, rank: int = 0
) -> Path:
    """Record a run of the small scheduler: requests of many lengths that come one after another."""
    asked = [
        Asked(f"r{at}", 5 + at * 7 % 40, 3 + at * 5 % 9, at * 2_000_000)
        for at in range(num_requests)
    ]
    calls = [Call(ADD, each.arrival_ns, request=each.request) for each in asked]
    if aborted is not None:
        calls.append(Call("abort", 9_000_000, request=aborted))
    calls.sort(key=lambda call: call.ts_ns)
    run_small(Script("vllm", dict(CONFIG), tuple(asked), tuple(calls), rank, COSTS), out)
    return out
