"""Guesses of what follows: prompt lookup, which drafts what came after the same tokens before."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_MATCH = 3


def lookup_draft(tokens: Sequence[int], num_draft: int) -> list[int]:
    """Return `num_draft` guesses of what follows `tokens`.

    The last tokens, three of them or fewer, are looked for further back, the latest place first,
    and what followed there is drafted; where nothing is found, or not enough of it, the last token
    is said again. Guesses may be wrong: the model accepts those that it would have said itself.
    Prompt lookup decoding: https://github.com/apoorvumang/prompt-lookup-decoding
    """
    found: list[int] = []
    for length in range(min(LONGEST_MATCH, len(tokens) - 1), 0, -1):
        suffix = list(tokens[-length:])
        for start in range(len(tokens) - length - 1, -1, -1):
            if list(tokens[start : start + length]) == suffix:
                found = list(tokens[start + length : start + length + num_draft])
                break
        if found:
            break
    return found + [tokens[-1]] * (num_draft - len(found))


def num_accepted(drafts: Sequence[int], sampled: Sequence[int]) -> int:
    """Return how many of `drafts` the model says too; `sampled[i]` is its own word for draft i."""
    for number, (draft, token) in enumerate(zip(drafts, sampled, strict=False)):
        if draft != token:
            return number
    return len(drafts)
