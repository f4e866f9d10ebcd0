"""How long an answer may be, and how that is counted without anybody's tokenizer.

Models cut text in their own ways, so a count has to be one that none exceeds in practice: words
take a token for four bytes or so, numbers and punctuation, of which our answers are full, one for
two to three. A token for every two bytes of the whole answer is more than any of them makes of it.
"""

from __future__ import annotations

MOST_TOKENS = 25_000
BYTES_PER_TOKEN = 2
MOST_BYTES = MOST_TOKENS * BYTES_PER_TOKEN


def tokens_in(text: str) -> int:
    """Tokens of a text, counted high."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
