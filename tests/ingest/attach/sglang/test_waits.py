from __future__ import annotations

from types import SimpleNamespace

from stepscope.ingest.attach.sglang.waits import ALL_RUN, PAUSED, Reasons, Short

SCHEDULER = SimpleNamespace(chunked_req=None, min_free_slots_delayer=None)
QUEUE = [SimpleNamespace(rid="a", time_stats=None)]


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


def named(name: str, **more: object) -> SimpleNamespace:
    return SimpleNamespace(
        rid=name, time_stats=SimpleNamespace(), token_indices_to_pool=None, **more
    )


def looked_at(*tried: SimpleNamespace) -> Reasons:
    """What a scheduler would say that has looked at its whole queue, and admitted these."""
    reasons = Reasons(SCHEDULER)
    reasons.sorted()
    adder = SimpleNamespace(can_run_list=list(tried))
    for req in tried:
        reasons.tried(adder, req, SimpleNamespace(name="CONTINUE"))
    return reasons


def test_only_those_whose_prefix_is_not_loaded_wait_for_that() -> None:
    loading, other = named("loading"), named("other")
    reasons = looked_at(named("admitted"))
    reasons.loads(loading.time_stats)

    found = {left.request: left.resource for left in reasons.of_waiting([loading, other])}

    assert found == {"loading": "prefetch", "other": None}


def test_whoever_is_read_out_otherwise_than_the_batch_waits_for_a_batch_of_its_kind() -> None:
    pooled, plain = named("pooled"), named("plain")
    pooled.token_indices_to_pool = [0, 3]
    reasons = looked_at(named("admitted"))

    found = {left.request: left.resource for left in reasons.of_waiting([pooled, plain])}

    assert found == {"pooled": "selection", "plain": None}


def test_whoever_stands_behind_one_that_was_refused_waits_for_that_one() -> None:
    reasons = looked_at(named("admitted"))
    full = SimpleNamespace(can_run_list=[], rem_total_tokens=3)
    first, second = named("first"), named("second")
    reasons.tried(full, first, SimpleNamespace(name="NO_TOKEN"))

    found = {left.request: left.holder for left in reasons.of_waiting([first, second])}

    assert found == {"first": None, "second": "first"}
