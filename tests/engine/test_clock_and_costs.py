from __future__ import annotations

import pytest

from stepscope.engine.batch import DECODE, PREFILL, Batch, Row
from stepscope.engine.clock import VirtualClock, WallClock
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.requests.request import Request


def batch_of(*rows: Row) -> Batch:
    batch = Batch()
    for row in rows:
        batch.append(row)
    return batch


def test_a_virtual_clock_moves_only_when_advanced_and_never_back() -> None:
    clock = VirtualClock(5)
    assert clock.advance(3) == clock.now_ns() == 8
    assert clock.advance_to(6) == 8
    assert clock.advance_to(9) == 9
    with pytest.raises(ValueError, match="-1 ns"):
        clock.advance(-1)


def test_a_wall_clock_begins_at_zero_and_waits_until_the_time_has_come() -> None:
    now = [7_000_000_000]
    clock = WallClock(lambda: now[0], lambda s: now.__setitem__(0, now[0] + round(s * 1e9)))
    assert (clock.now_ns(), clock.epoch_ns) == (0, 7_000_000_000)
    assert clock.advance(500) == 500
    assert clock.advance_to(2_000) == 2_000
    assert clock.advance_to(100) == 2_000
    with pytest.raises(ValueError, match="-1 ns"):
        clock.advance(-1)


def test_a_step_costs_its_base_its_prompt_tokens_its_decode_rows_and_its_kv() -> None:
    cost = CostModel(base_ns=1000, prefill_token_ns=100, decode_row_ns=10, kv_token_ns=1)
    fresh, running = Request("a", 0, 4, 4), Request("b", 0, 4, 4)
    batch = batch_of(
        Row(fresh, PREFILL, 4, 0, True, False), Row(running, DECODE, 1, 6, True, False)
    )
    assert cost.dur_ns(batch) == 1000 + 4 * 100 + 10 + (4 + 7)


def test_the_simulated_executor_samples_for_rows_that_reach_their_end() -> None:
    clock = VirtualClock()
    first_chunk = Row(Request("a", 0, 4, 4), PREFILL, 2, 0, False, False)
    decode = Row(Request("b", 0, 4, 4), DECODE, 1, 6, True, False)
    execution = Simulated(CostModel()).run(batch_of(first_chunk, decode), 1, clock, None)
    assert list(execution.tokens) == ["b"]
    assert clock.now_ns() == execution.dur_ns
    assert execution.path == "simulated-mixed"


def test_the_default_costs_are_the_roofline_that_they_claim() -> None:
    cost, parameters, bytes_per_s, flop_per_s = CostModel(), 8.03e9, 300e9, 121e12
    assert cost.base_ns == pytest.approx(parameters * 2 / bytes_per_s * 1e9, rel=0.01)
    assert cost.prefill_token_ns == pytest.approx(2 * parameters / (flop_per_s / 2) * 1e9, rel=0.01)
    assert cost.kv_token_ns == pytest.approx(2 * 32 * 8 * 128 * 2 / bytes_per_s * 1e9, rel=0.01)


def test_a_batch_is_called_for_what_is_in_it() -> None:
    prefill = Row(Request("a", 0, 4, 4), PREFILL, 4, 0, True, False)
    decode = Row(Request("b", 0, 4, 4), DECODE, 1, 4, True, False)
    kinds = [batch_of(*rows).kind for rows in ((), (prefill,), (decode,), (prefill, decode))]
    assert kinds == ["idle", "prefill", "decode", "mixed"]


def test_a_stopped_wall_clock_stands_still() -> None:
    times = iter([100, 130, 130, 170])
    clock = WallClock(lambda: next(times))

    assert clock.now_ns() == 30
    clock.stop()
    assert [clock.now_ns(), clock.now_ns()] == [30, 30]
