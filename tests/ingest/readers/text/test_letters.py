"""Letters that JSON writes in two halves: a half alone is none, and all else stays as it is."""

from __future__ import annotations

import json

from stepscope.ingest.readers.text.letters import with_whole_letters
from tests.looped import looped


@looped(
    ("written", "shown"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"\udc00\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800\n"', "\\\ufffd\n"),
    ],
)
def test_half_a_letter_is_replaced_and_nothing_else(written: str, shown: str) -> None:
    assert json.loads(with_whole_letters(written)) == shown
