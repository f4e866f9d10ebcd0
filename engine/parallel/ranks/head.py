"""The head's side: it says what is computed, and computes its own share of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stepscope.engine.parallel.links.command_wire import Wire
from stepscope.engine.parallel.protocol import (
    ALLOCATE,
    DECODE_BATCH,
    FREE,
    PREFILL,
    SHUTDOWN,
    VERIFY_OF,
)

if TYPE_CHECKING:
    from stepscope.engine.model.numpy_decoder import Array
    from stepscope.engine.parallel.shares.share import Share


class Head:
    """Sends each command to the workers, and then does what they do; logits are the head's own."""

    def __init__(self, wire: Wire, share: Share) -> None:
        self.wire = wire
        self.share = share

    def allocate(self, slot: int) -> None:
        """Give a slot to a new sequence, and free its occupant if it has one."""
        self._command(ALLOCATE, slot)
        self.share.free(slot)

    def free(self, slot: int, named: int | None = None) -> None:
        """Free the occupant of a slot; `named` is what the workers are told."""
        self._command(FREE, slot if named is None else named)
        self.share.free(slot)

    def prefill(self, slot: int, start: int, num_prompt: int, tokens: Sequence[int]) -> Array:
        """Compute a chunk of a prompt from position `start`; return its last token's logits."""
        self._command(PREFILL, slot)
        self.wire.send_words([len(tokens)], "length")
        self.wire.send_words([start], "start")
        self.wire.send_words([num_prompt], "full length")
        self.wire.send_words(tokens, "tokens")
        return self.share.prefill(slot, start, tokens)

    def announce(self, slot: int, token: int) -> None:
        """Say that a token of a slot is decoded, and no more."""
        self.wire.send_slot(slot)
        self.wire.send_command(token, slot)

    def decode(self, slot: int, token: int, *, is_announced: bool = False) -> Array:
        """Decode one token of one slot; return its logits."""
        if is_announced:
            self.wire.begin("decode", slot)
        else:
            self.announce(slot, token)
        logits: Array = self.share.decode([slot], [token])[0]
        return logits

    def decode_batch(self, slots: Sequence[int], tokens: Sequence[int]) -> Array:
        """Decode one token of each of several slots together; return a row of logits for each."""
        self._command(DECODE_BATCH, 0)
        self.wire.send_words([len(slots)], "rows")
        self.wire.send_words(slots, "slots")
        self.wire.send_words(tokens, "tokens")
        return self.share.decode(slots, tokens)

    def verify(self, slot: int, tokens: Sequence[int]) -> Array:
        """Compute a token and the guesses behind it; return a row of logits for each."""
        self._command(VERIFY_OF[len(tokens)], slot)
        self.wire.send_words(tokens, "tokens")
        return self.share.verify(slot, tokens)

    def keep(self, slot: int, num_tokens: int, num_verified: int) -> None:
        """Say how many of the tokens verified last stay; the rest is forgotten."""
        self.wire.send_words([num_tokens], "verdict")
        self.share.trim(slot, num_verified - num_tokens)

    def shutdown(self) -> None:
        """Let the workers go."""
        self.wire.link.rows = None
        self._command(SHUTDOWN, 0)

    def _command(self, command: str, slot: int) -> None:
        self.wire.send_slot(slot)
        self.wire.send_command(self.wire.codebook.word(command), slot)
