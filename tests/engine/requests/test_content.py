"""What prompts say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.requests.content import SEGMENT_TOKENS, block_hashes, prompt_tokens
from stepscope.engine.requests.request import EOS_TOKEN, Request
from tests.looped import looped

prefixes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def asked(name: str, prompt_len: int, prefix: tuple[int, ...] = ()) -> Request:
    return Request(name, 0, prompt_len, 1, prefix=prefix)


@looped("prompt_len", [1, SEGMENT_TOKENS, SEGMENT_TOKENS + 1, 1300])
def test_a_prompt_has_its_length_and_never_the_end_of_an_output(prompt_len: int) -> None:
    tokens = prompt_tokens(asked("a", prompt_len), 64)
    assert len(tokens) == prompt_len
    assert EOS_TOKEN < min(tokens) <= max(tokens) < 64


@given(prefixes, prefixes, st.integers(1, 1600), st.sampled_from([16, 24, 512]))
def test_blocks_have_equal_hashes_exactly_where_all_tokens_up_to_them_are_equal(
    one: tuple[int, ...], other: tuple[int, ...], prompt_len: int, block_size: int
) -> None:
    first, second = asked("a", prompt_len, one), asked("b", prompt_len, other)
    tokens = [prompt_tokens(each, 30_000) for each in (first, second)]
    hashes = [block_hashes(each, block_size) for each in (first, second)]

    assert len(hashes[0]) == prompt_len // block_size
    for block, (mine, theirs) in enumerate(zip(*hashes, strict=True)):
        end = (block + 1) * block_size
        assert (mine == theirs) == (tokens[0][:end] == tokens[1][:end])
