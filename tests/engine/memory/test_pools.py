from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.memory.kv_blocks import KVBlocks
from stepscope.engine.memory.slots import Slots


@given(st.integers(1, 8), st.lists(st.booleans(), max_size=40))
def test_every_block_is_free_or_owned_once(num_blocks: int, claims: list[bool]) -> None:
    pool = KVBlocks(num_blocks, 16)
    owned: list[int] = []
    for is_claim in claims:
        if is_claim and pool.num_free:
            block, generation = pool.claim("r")
            assert block not in owned
            assert generation == pool.generation[block] - 1
            owned.append(block)
        elif owned and not is_claim:
            pool.release(owned.pop(0), "r")
        assert sorted(pool.owner) == sorted(owned)
        assert pool.num_free + len(owned) == num_blocks


def test_blocks_are_counted_by_the_tokens_that_they_hold() -> None:
    pool = KVBlocks(8, 16)
    assert [pool.num_blocks_for(tokens) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]
    assert pool.num_missing([3], 17) == 1
    assert pool.num_missing([3, 4], 5) == 0


def test_the_lowest_free_slot_is_claimed_and_counts_its_owners() -> None:
    slots = Slots(3)
    assert [slots.claim(name) for name in "abc"] == [(0, 0), (1, 0), (2, 0)]
    slots.release(2)
    slots.release(0)
    assert slots.claim("d") == (0, 1)
    assert slots.owner == {0: "d", 1: "b"}
    assert slots.num_free == 1
