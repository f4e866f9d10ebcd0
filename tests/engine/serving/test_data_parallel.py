"""Two ranks in lock-step: what each foretells is what it runs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.serving.data_parallel import LockStep
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import RequestSpec, Workload
from tests.engine.rows import Rows
from tests.engine.schedulers.test_paged_properties import mixing, plain, sizes, sound, specs
from tests.engine.small_engines import request
from tests.tiers import examples

COST = CostModel(base_ns=1, prefill_token_ns=1, decode_row_ns=0, kv_token_ns=0)
CONFIG = EngineConfig(num_kv_blocks=64, block_size=2, max_num_batched_tokens=8, max_num_seqs=4)


def lock_stepped(
    shares: list[list[RequestSpec]], scheduler: Paged, config: EngineConfig
) -> list[tuple[Engine, Rows]]:
    ranks = []
    for share in shares:
        rows, executor = Rows(), Simulated(COST, acceptance=0.5)
        clock = VirtualClock()
        engine = Engine(config, Workload(share), scheduler, executor, clock, rows.recorder)
        ranks.append((engine, rows))
    LockStep([engine for engine, _ in ranks], scheduler).run()
    return ranks


def paths(rows: Rows) -> list[str]:
    return [row["executed_path"].removeprefix("simulated-") for row in rows.of("steps")]


def test_a_rank_without_requests_runs_dummies_of_what_the_other_runs() -> None:
    (_, busy), (_, idle) = lock_stepped([[request("a", 12, 3)], []], Paged(), CONFIG)
    assert paths(busy) == ["prefill", "prefill", "decode", "decode"]
    assert paths(idle) == ["dummy-prefill", "dummy-prefill", "dummy-decode", "dummy-decode"]


def test_decodes_wait_while_another_rank_runs_prompts_and_are_told_so() -> None:
    shares = [[request("a", 20, 1)], [request("b", 4, 3)]]
    (_, one), (_, other) = lock_stepped(shares, Paged(), CONFIG)
    assert paths(one) == ["prefill", "prefill", "prefill", "dummy-decode", "dummy-decode"]
    assert paths(other) == ["prefill", "dummy-prefill", "dummy-prefill", "decode", "decode"]
    (told,) = other.of("decisions", subject="b", verdict="deferred")
    assert (told["step"], told["resource"], told["instead"]) == (2, "phase", "prefill")
    assert told["reason"] == "rank 0 runs prefill, and this one a dummy"


def test_a_step_says_which_rank_made_it_what_it_is_and_one_of_its_own_says_none() -> None:
    shares = [[request("a", 20, 1)], [request("b", 4, 3)]]
    (_, one), (_, other) = lock_stepped(shares, Paged(), CONFIG)
    assert [row["by_rank"] for row in one.of("steps")] == [None, None, None, 1, 1]
    assert [row["by_rank"] for row in other.of("steps")] == [None, 0, 0, None, None]


def test_a_step_ends_for_all_ranks_when_it_ends_for_the_slowest() -> None:
    shares = [[request("a", 8, 2)], [request("b", 2, 2)]]
    (one, fast), (other, slow) = lock_stepped(shares, Paged(), CONFIG)
    assert [row["ts_ns"] for row in fast.of("steps")] == [row["ts_ns"] for row in slow.of("steps")]
    assert one.clock.now_ns() == other.clock.now_ns()


def test_ranks_with_nothing_to_do_wait_for_whoever_comes_first() -> None:
    shares = [[request("a", 4, 1, 100)], [request("b", 4, 1, 50)]]
    (_, one), (_, other) = lock_stepped(shares, Paged(), CONFIG)
    assert [row["ts_ns"] for row in one.of("steps")] == [50, 100]
    assert paths(other) == ["prefill", "dummy-prefill"]


def test_a_rank_that_gets_nowhere_ends_the_run_of_all() -> None:
    config = replace(CONFIG, timeout_ns=10)
    ranks = lock_stepped([[request("a", 20, 9)], [request("b", 4, 9)]], Paged(), config)
    for engine, rows in ranks:
        assert [each.event for each in engine.ended] == ["abort"]
        assert "timed out" in rows.of("lifecycle", event="abort")[0]["cause"]


@given(specs, specs, mixing | plain, sizes)
@settings(max_examples=examples(60))
def test_ranks_never_run_different_kinds_and_everybody_ends(
    one: list[RequestSpec], other: list[RequestSpec], scheduler: Paged, config: EngineConfig
) -> None:
    ranks = lock_stepped([one, other], scheduler, sound(scheduler, config))
    kinds = []
    for _, rows in ranks:
        ran = [path.removeprefix("dummy-").replace("mixed", "prefill") for path in paths(rows)]
        kinds.append([path.removesuffix("+mtp") for path in ran])
    for pair in zip(*kinds, strict=True):
        assert len({*pair} - {"idle"}) <= 1
    assert [len(engine.ended) for engine, _ in ranks] == [len(one), len(other)]
    assert all(each.event != "abort" for engine, _ in ranks for each in engine.ended)
