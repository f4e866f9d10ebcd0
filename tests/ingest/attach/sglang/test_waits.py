from __future__ import annotations

from types import SimpleNamespace

from stepscope.ingest.attach.sglang.waits import ALL_RUN, PAUSED, Reasons, Short

SCHEDULER = SimpleNamespace(chunked_req=None, min_free_slots_delayer=None)
QUEUE = [SimpleNamespace(rid="a")]


def put_back() -> Reasons:
    reasons = Reasons(SCHEDULER)
    reasons.begin()
    reasons.put_back("a", Short("pause", PAUSED))
    return reasons


def test_whoever_is_put_back_while_a_batch_is_formed_waits_for_that() -> None:
    (left,) = put_back().of_waiting(QUEUE)

    assert left.reason == PAUSED


def test_whoever_was_put_back_by_a_pause_waits_afterwards_for_what_keeps_it_then() -> None:
    reasons = put_back()

    reasons.begin()
    reasons.looked(True)
    (left,) = reasons.of_waiting(QUEUE)

    assert (left.resource, left.reason) == ("seat", ALL_RUN)
