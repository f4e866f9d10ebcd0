"""One request as its client sends it, before an engine has seen it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from stepscope.ingest.errors import ConfigError

MAX_TOKENS = 1 << 24  # of a prompt or an output; the longest context windows are some 1e7 tokens
MAX_NS = 1 << 62
Int32 = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class RequestSpec(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One request as its client sends it; lengths in tokens, times in ns of the run.

    The output ends with token number `eos_after`, where that is given, and with `ends_at_eos` where
    a decoder says so by itself; without it, it goes on, as benchmarks have it (`ignore_eos`).
    `prefix` names what the prompt says, 512 tokens at a time: prompts whose prefixes begin with the
    same numbers begin alike; tokens behind the last of them are this request's own. A request with
    `after` is sent when that one has ended, `arrival_ns` later. It waits `prepare_ns` for something
    beside room, in vain where `prepare_fails`: for a grammar to be compiled, or for the KV of its
    first `remote_tokens` tokens, which another engine has.
    """

    id: str
    arrival_ns: int
    prompt_len: int
    max_tokens: int
    priority: Int32 = 0
    modality: str = "text"
    deadline_ns: Int64 | None = None
    eos_after: Int64 | None = None
    prefix: tuple[Int64, ...] = ()
    after: str | None = None
    prepare_ns: Int64 = 0
    prepare_fails: bool = False
    remote_tokens: Int64 = 0
    ends_at_eos: bool = False

    def __post_init__(self) -> None:
        if not (
            0 <= self.arrival_ns <= MAX_NS
            and 1 <= self.prompt_len <= MAX_TOKENS
            and 1 <= self.max_tokens <= MAX_TOKENS
        ):
            raise ConfigError(
                f"request {self.id[:64]}: arrival {_short(self.arrival_ns)}, prompt "
                f"{_short(self.prompt_len)}, completion {_short(self.max_tokens)}",
                todo=f"arrivals start at 0, lengths at 1 and end at {MAX_TOKENS}",
            )
        if not (0 <= self.prepare_ns <= MAX_NS and 0 <= self.remote_tokens < self.prompt_len):
            raise ConfigError(
                f"request {self.id[:64]}: prepared in {_short(self.prepare_ns)} ns, "
                f"{_short(self.remote_tokens)} tokens of its prompt from elsewhere",
                todo="both start at 0, and the last token of a prompt is computed here",
            )


def _short(number: int) -> str:
    """Spell a number of any size in a few characters."""
    return str(number) if abs(number) < 1 << 64 else f"of {number.bit_length()} bits"
