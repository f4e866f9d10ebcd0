"""What prompts say: token ids and block hashes, made up from the names that a workload gives them.

A workload names the first tokens of a prompt by numbers, `prefix`, one for 512 tokens, as the
Mooncake traces do. Prompts that begin with the same numbers begin with the same tokens; tokens
behind the last number, and all tokens of a prompt without any, belong to one request alone.
"""

from __future__ import annotations

from random import Random
from zlib import crc32

from stepscope.engine.requests.request import EOS_TOKEN, Request

SEGMENT_TOKENS = 512  # prompt tokens that one number of a prefix names


def prompt_tokens(request: Request, vocab_size: int) -> list[int]:
    """Return the prompt's token ids; none of them ends an output, and the same seed says the same.

    `vocab_size` is the number of different tokens, more than `EOS_TOKEN` + 1 of them.
    """
    tokens: list[int] = []
    for first in range(0, request.prompt_len, SEGMENT_TOKENS):
        rng = Random(_segment_key(request, first))  # noqa: S311 - it simulates, it guards nothing
        num_tokens = min(SEGMENT_TOKENS, request.prompt_len - first)
        tokens += (rng.randrange(EOS_TOKEN + 1, vocab_size) for _ in range(num_tokens))
    return tokens


def block_hashes(request: Request, block_size: int) -> list[int]:
    """Return a hash for each block that the prompt fills, of that block and all before it."""
    hashes: list[int] = []
    before = 0
    for end in range(block_size, request.prompt_len + 1, block_size):
        segments = range((end - block_size) // SEGMENT_TOKENS, (end - 1) // SEGMENT_TOKENS + 1)
        keys = (_segment_key(request, segment * SEGMENT_TOKENS) for segment in segments)
        before = hash((before, block_size, *keys))
        hashes.append(before)
    return hashes


def _segment_key(request: Request, first: int) -> int:
    number = first // SEGMENT_TOKENS
    if number < len(request.prefix):
        return request.prefix[number]
    return -1 - crc32(f"{request.id} {number}".encode())
