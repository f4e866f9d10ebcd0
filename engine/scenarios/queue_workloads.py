"""The requests of `waiting-queue`: the least that shows each of its reports, and their engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.requests.spec import RequestSpec
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.times import MS, SECOND

# A prompt batch of 8,192 tokens took 314 ms where report 32549 was measured: 2,863 in 15 minutes.
STREAM_COST = CostModel(base_ns=12_000_000, prefill_token_ns=37_200, kv_token_ns=10)
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Requests that one of the reports is about, and the engine that they meet.

    `requests`, `prompt_len` and `max_tokens` are of those that are many, `kv_blocks` of
    `block_size` tokens; `idle_ns` is how long a step takes in which nobody can run, `timeout_s`
    when the clients give up, 0 for never. `fault` is the report's.
    """

    fault: str
    make: Callable[[Values, int], Workload]
    requests: int
    prompt_len: int
    max_tokens: int
    max_num_seqs: int
    budget: int
    kv_blocks: int
    block_size: int = 16
    prefill_first: bool = False
    decode_rounds: int = 0
    idle_ns: int = MS
    timeout_s: int = 0
    cost: CostModel = field(default_factory=CostModel)


def _stream(values: Values, seed: int) -> Workload:
    """Prompts of two thirds to four thirds of the length, `per_minute` of them, by lot."""
    random = Random(f"stream {seed}")  # noqa: S311 - it simulates, it guards nothing
    mean, ts_ns, specs = values["prompt_len"], 0.0, []
    for number in range(values["requests"]):
        ts_ns += random.expovariate(values["per_minute"] / 60) * SECOND
        length = max(1, random.randint(mean * 2 // 3, mean * 4 // 3))
        specs.append(RequestSpec(f"req-{number:02d}", round(ts_ns), length, values["max_tokens"]))
    return Workload(specs)


def _at_once(values: Values, seed: int) -> Workload:
    """All at the same time, and all alike."""
    del seed
    return Workload(
        RequestSpec(f"req-{number:02d}", 0, values["prompt_len"], values["max_tokens"])
        for number in range(values["requests"])
    )


def _compiling(values: Values, seed: int) -> Workload:
    """A long prompt, those with grammars, the last of which does not compile, and a plain one."""
    del seed
    length, most = values["prompt_len"], values["max_tokens"]
    last = values["requests"] - 1
    specs = [RequestSpec("long", 0, length * 256, most)]
    specs += [
        RequestSpec(
            f"json-{number:02d}", 10 * MS, length, most,
            prepare_ns=(50 + 10 * number % 100) * MS, prepare_fails=number == last,
        )
        for number in range(values["requests"])
    ]  # fmt: skip
    return Workload([*specs, RequestSpec("plain", 20 * MS, length, most)])


def _heavy_head(values: Values, seed: int) -> Workload:
    """One that holds nearly the whole pool, one that needs it, and small ones that keep coming."""
    del seed
    size, pool = values["block_size"], values["kv_blocks"]
    length, most = values["prompt_len"], values["max_tokens"]
    clients = min(CLIENTS, values["requests"])
    small = [
        RequestSpec(
            f"small-{number:03d}", 200 * MS if number < clients else 0, length,
            most + 3 * (number % clients),  # so that they do not all end at once
            after=f"small-{number - clients:03d}" if number >= clients else None,
        )
        for number in range(values["requests"])
    ]  # fmt: skip
    long = most * 5 // 2
    first = RequestSpec("first", 0, max(1, (pool - FREE) * size - long), long)
    heavy = RequestSpec("heavy", 100 * MS, max(1, (pool - HEAD_LEAVES) * size - long), long)
    return Workload([first, heavy, *small])


CLIENTS, FREE, HEAD_LEAVES = 5, 50, 10


def _half_each(values: Values, seed: int) -> Workload:
    """Prompts of which another engine has computed what half of the pool holds."""
    del seed
    half = values["kv_blocks"] // values["requests"] * values["block_size"]
    return Workload(
        RequestSpec(
            f"req-{number:02d}", 0, half + values["prompt_len"], values["max_tokens"],
            prepare_ns=200 * MS, remote_tokens=half,
        )
        for number in range(values["requests"])
    )  # fmt: skip


def _too_long(values: Values, seed: int) -> Workload:
    """One with a long context, which needs 2,500 blocks of 16 tokens, and short ones behind it."""
    del seed
    length, most = values["prompt_len"], values["max_tokens"]
    short = [
        RequestSpec(f"req-{number:02d}", 10 * MS, length, most)
        for number in range(values["requests"])
    ]
    return Workload([RequestSpec("long", 0, LONG_CONTEXT - most, most), *short])


LONG_CONTEXT = 40_000
CASES: Mapping[str, Case] = {
    "stream": Case(
        "prompts-always-first", _stream, 360, 4500, 2, 384, 8192, 8192, block_size=256,
        prefill_first=True, decode_rounds=4, cost=STREAM_COST,
    ),
    "four-prompts": Case(
        "full-since-the-last-chunk", _at_once, 4, 3000, 256, 4, 2048, 4096, prefill_first=True
    ),
    "parked": Case("ready-not-looked-at", _compiling, 8, 256, 32, 256, 2048, 20_000),
    "heavy-head": Case(
        "blocked-head-holds-all", _heavy_head, 24, 130, 16, 64, 8192, 1010,
        timeout_s=120, cost=CostModel(base_ns=200_000_000, prefill_token_ns=100_000),
    ),
    "half-the-pool": Case(
        "half-the-pool-each", _half_each, 2, 512, 32, 64, 8192, 512,
        idle_ns=SECOND, timeout_s=1500,
    ),
    "too-long": Case(
        "never-fits-and-waits", _too_long, 6, 512, 64, 64, 8192, 2800,
        idle_ns=10 * MS, timeout_s=60,
    ),
}  # fmt: skip
