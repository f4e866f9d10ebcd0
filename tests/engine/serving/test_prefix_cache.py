from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.config import EngineConfig
from stepscope.engine.memory.kv_blocks import KVBlocks
from stepscope.engine.schedulers.paged import Paged
from tests.engine.rows import Rows
from tests.engine.small_engines import request, serve

CONFIG = EngineConfig(
    num_kv_blocks=8, block_size=256, max_num_batched_tokens=2048, max_num_seqs=4, prefix_cache=True
)
ALIKE = (7, 8)  # the first 1024 tokens


def ops(rows: Rows, owner: str) -> list[tuple[str, int]]:
    return [(row["op"], row["id"]) for row in rows.of("allocations", owner=owner)]


def test_a_prompt_that_begins_alike_shares_the_blocks_that_are_computed() -> None:
    specs = [request("a", 1100, 3, prefix=ALIKE), request("b", 1100, 1, 1, prefix=ALIKE)]
    _, rows = serve(specs, Paged(), CONFIG)
    (row,) = rows.of("batch_rows", request="b")
    assert (row["num_cached"], row["num_computed"], row["num_tokens"]) == (1024, 1024, 76)
    assert ops(rows, "b")[:5] == [*(("share", block) for block in range(4)), ("claim", 5)]


def test_without_the_cache_every_prompt_is_computed() -> None:
    specs = [request("a", 1100, 3, prefix=ALIKE), request("b", 1100, 1, 1, prefix=ALIKE)]
    _, rows = serve(specs, Paged(), replace(CONFIG, prefix_cache=False, num_kv_blocks=10))
    assert {row["num_cached"] for row in rows.of("batch_rows")} == {0}
    assert not rows.of("allocations", op="share")


def test_a_prompt_that_is_all_cached_still_computes_its_last_block() -> None:
    specs = [request("a", 1024, 3, prefix=ALIKE), request("b", 1024, 1, 1, prefix=ALIKE)]
    _, rows = serve(specs, Paged(), CONFIG)
    (row,) = rows.of("batch_rows", request="b")
    assert (row["num_cached"], row["num_tokens"]) == (768, 256)


def test_what_is_not_computed_yet_is_not_shared() -> None:
    specs = [request("a", 512, 1, prefix=ALIKE), request("b", 512, 1, prefix=ALIKE)]
    _, rows = serve(specs, Paged(), CONFIG)
    assert [row["num_cached"] for row in rows.of("batch_rows")] == [0, 0]


def test_blocks_outlive_their_owner_and_the_end_of_what_is_least_used_goes_first() -> None:
    specs = [
        request("a", 1024, 1, prefix=(1, 2)),
        request("b", 1024, 1, 1, prefix=(3, 4)),
        request("c", 512, 1, 2, prefix=(5,)),
        request("a again", 1024, 1, 3, prefix=(1, 2)),
    ]
    _, rows = serve(specs, Paged(), CONFIG)
    assert [row["num_cached"] for row in rows.of("batch_rows")] == [0, 0, 0, 512]


def test_a_preempted_request_finds_what_is_left_of_its_own_prompt() -> None:
    specs = [request("a", 512, 300), request("b", 512, 300)]
    _, rows = serve(specs, Paged(), replace(CONFIG, num_kv_blocks=5))
    (again,) = rows.of("batch_rows", is_recompute=True)
    assert again["num_cached"] == 256


def test_whoever_was_preempted_comes_back_as_a_prompt_even_if_all_of_it_is_cached() -> None:
    specs = [request("a", 512, 300), request("b", 512, 300)]
    _, rows = serve(specs, Paged(mixed=False), replace(CONFIG, num_kv_blocks=5))
    assert rows.of("batch_rows", is_recompute=True)[0]["phase"] == "prefill"
    assert not rows.of("steps", kind="mixed")


operations = st.lists(
    st.tuples(st.sampled_from(["claim", "share", "cache", "release"]), st.integers(0, 9)),
    max_size=60,
)


@given(st.integers(1, 6), operations)
def test_every_reference_is_counted_once_and_a_block_is_free_without_any(
    num_blocks: int, wanted: list[tuple[str, int]]
) -> None:
    pool = KVBlocks(num_blocks, 16)
    held: dict[str, int] = {}
    for number, (op, choice) in enumerate(wanted):
        if op == "claim" and pool.num_free:
            held[f"r{number}"] = pool.claim(f"r{number}")[0]
        elif op == "share" and (found := pool.cached([choice])):
            pool.share(found[0], f"r{number}")
            held[f"r{number}"] = found[0]
        elif op == "cache" and held:
            pool.cache(list(held.values())[choice % len(held)], choice)
        elif op == "release" and held:
            user = list(held)[choice % len(held)]
            pool.release(held.pop(user), user)
        used = list(held.values())
        assert sorted(pool.owner) == sorted(set(used))
        assert all(pool.owner[block] in held for block in used)
        assert all(pool.num_references(block) == used.count(block) for block in range(num_blocks))
        assert pool.num_free == num_blocks - len(set(used))
