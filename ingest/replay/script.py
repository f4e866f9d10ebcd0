"""What a replay is told: which requests there were, and what the engine called, in order.

A script is a file of JSON lines, written where the trace is and read where the engine is: a header,
the requests, the calls. It imports the standard library only, as the engine's environment may have
nothing else of ours.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ADD, SCHEDULE, UPDATE, ABORT, READY, DUMMY = CALLS = (
    "add", "schedule", "update", "abort", "ready", "dummy",
)  # fmt: skip
LENGTH, STOP, ERROR = ENDS = ("length", "stop", "error")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the engine got it, and how far it came.

    `contents` names what each of its KV blocks holds, from the first on: two blocks of the same
    number hold the same tokens behind the same prefix. A block beyond them is like no other.
    `num_outputs` is how many tokens it generated until it ended; null if it did not, or was
    aborted. `runs` are (token, how often in a row) of its prompt and its output where a trace
    tells who begins like whom: equal tokens at the same place stand for equal tokens. `drafts` are
    (proposed, accepted) of its steps, as far as they are known. `lora` is the adapter that it asks
    for. `priority` is lower first, None where it asked for none; `ignore_eos` says that nothing
    but its length ends it.
    """

    request: str
    prompt_len: int
    max_tokens: int
    arrival_ns: int
    priority: int | None = None
    has_grammar: bool = False
    contents: tuple[int, ...] = ()
    num_outputs: int | None = None
    runs: tuple[tuple[int, int], ...] = ()
    drafts: tuple[tuple[int, int], ...] = ()
    lora: str | None = None
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call into the scheduler at `ts_ns`.

    Of `add`, `abort` and `ready` it is about `request`. A `schedule` of step `step` formed `batch`
    (request, tokens; in order). An `update` with the results of that step has `tokens`, how many
    each request sampled; `ends`, how those that ended in it did; `proposed`, how many drafts were
    proposed behind it. A `dummy` is no call of the scheduler: a rank without work ran a step of
    nothing from `began_ns` on.
    """

    what: str
    ts_ns: int
    step: int = 0
    request: str = ""
    batch: tuple[tuple[str, int], ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, str] = field(default_factory=dict)
    proposed: Mapping[str, int] = field(default_factory=dict)
    is_throttled: bool = False
    began_ns: int = 0


@dataclass(frozen=True, slots=True)
class StepCosts:
    """What a step takes, fitted to a trace: ns, ns a prefill token, ns a decode row, ns a token of
    context; and the time between two steps of a busy engine.

    `pace` are (time, factor): steps around that time took so many times as long, as others had the
    machine too, such as another rank.
    """

    base_ns: float = 0.0
    prefill_token_ns: float = 0.0
    decode_row_ns: float = 0.0
    context_token_ns: float = 0.0
    gap_ns: float = 0.0
    pace: tuple[tuple[int, float], ...] = ()

    def step_ns(
        self, num_prefill_tokens: int, num_decode_rows: int, num_context: int, began_ns: int = 0
    ) -> int:
        """How long a step takes that begins then, 1 ns at least."""
        took = (
            self.base_ns
            + self.prefill_token_ns * num_prefill_tokens
            + self.decode_row_ns * num_decode_rows
            + self.context_token_ns * num_context
        )
        return max(1, round(took * self._pace_at(began_ns)))

    def _pace_at(self, ts_ns: int) -> float:
        """The factor of the last time that is told by then; before the first, of that one."""
        place = bisect_right(self.pace, ts_ns, key=lambda each: each[0])
        return self.pace[max(0, place - 1)][1] if self.pace else 1.0


@dataclass(frozen=True, slots=True)
class Script:
    """A run to replay: on which engine, configured how, and what it was called with.

    `config` is the scheduler's configuration, `costs` carries time on where the recorded steps no
    longer fit; without it the replay ends there.
    """

    engine: str
    config: Json
    requests: tuple[Asked, ...]
    calls: tuple[Call, ...]
    rank: int = 0
    costs: StepCosts | None = None

    @property
    def has_steps(self) -> bool:
        """Whether any step was recorded; else time is carried on from the first arrival."""
        return any(call.what == SCHEDULE for call in self.calls)


def write_script(script: Script, path: Path) -> None:
    """Write it as JSON lines."""
    head = {
        "engine": script.engine, "config": script.config, "rank": script.rank,
        "costs": script.costs and asdict(script.costs), "num_requests": len(script.requests),
    }  # fmt: skip
    with path.open("w", encoding="utf-8") as file:
        for line in (head, *map(asdict, script.requests), *map(asdict, script.calls)):
            file.write(json.dumps(line, separators=(",", ":")))
            file.write("\n")


def read_script(path: Path) -> Script:
    """Read what `write_script` wrote."""
    with path.open(encoding="utf-8") as file:
        lines = (json.loads(line) for line in file)
        head = next(lines)
        asked = tuple(_asked(next(lines)) for _ in range(head["num_requests"]))
        calls = tuple(_calls(lines))
    costs = head["costs"] and _costs(head["costs"])
    return Script(head["engine"], head["config"], asked, calls, head["rank"], costs)


def _costs(told: Json) -> StepCosts:
    return StepCosts(**told | {"pace": tuple((ts_ns, factor) for ts_ns, factor in told["pace"])})


def _asked(line: Json) -> Asked:
    pairs: Json = {
        name: tuple((one, other) for one, other in line[name]) for name in ("drafts", "runs")
    }
    return Asked(**line | pairs | {"contents": tuple(line["contents"])})


def _calls(lines: Iterator[Json]) -> Iterator[Call]:
    for line in lines:
        batch = tuple((request, num_tokens) for request, num_tokens in line.pop("batch"))
        yield Call(**line, batch=batch)
