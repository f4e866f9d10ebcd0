"""Records out of a file of forward pass metrics: JSON, one a line, or captured messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings.inflate import Inflater
from stepscope.ingest.readers.encodings.msgpack_stream import Messages
from stepscope.ingest.readers.encodings.published import Published, damage_of, published
from stepscope.ingest.readers.text.split import Lines

NOT_JSON, UNDECODED = "lines that are not JSON", "messages that cannot be decoded"
CUT_OFF = "cut off by the end of the file"


class Records:
    """Iterates over the records of a file; what is wrong with it is known afterwards."""

    def __init__(self, blocks: Inflater, limits: Limits, *, is_text: bool) -> None:
        self.skipped: Counter[str] = Counter()
        self.damage: list[str] = []
        self._blocks = blocks
        self._limits = limits
        self._is_text = is_text

    def __iter__(self) -> Iterator[Published]:
        yield from self._lines() if self._is_text else self._messages()

    def _messages(self) -> Iterator[Published]:
        messages = Messages(self._blocks, self._limits.message)
        yield from map(published, messages)
        self.skipped[UNDECODED] += messages.num_undecoded
        self.skipped[CUT_OFF] += messages.is_cut_off
        self.damage = damage_of(messages, self._blocks)

    def _lines(self) -> Iterator[Published]:
        lines = Lines(self._blocks, self._limits.line)
        for line, is_whole in lines:
            try:
                said: Any = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._torn(is_whole=is_whole)
                continue
            yield Published("", None, said)
        self.skipped.update(lines.left_out())
        if self._blocks.damage:
            self.damage.append(f"{self._blocks.damage}; all lines before are kept")

    def _torn(self, *, is_whole: bool) -> None:
        self.skipped[NOT_JSON if is_whole else CUT_OFF] += 1
        if not is_whole:
            self.damage.append("cut off within a line; all whole lines are kept")
