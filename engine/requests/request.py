"""One request: what the client asked for, and how far the engine got with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

EOS_TOKEN = 2  # the token with which a model ends its output, as Llama 2 numbers it


class Status(Enum):
    """Where a request is."""

    PENDING = "pending"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Request:
    """A request on its way through the engine; two requests are equal when they are the same.

    The first fields come from the workload, the rest is the engine's own state. Lengths are in
    tokens: the KV pool holds `num_computed` of the request's `num_tokens`. The output ends with
    token number `eos_after`, where that is given, and with `ends_at_eos` where a decoder says so by
    itself. `prefix` names what the prompt says, 512 tokens at a time: prompts whose prefixes begin
    with the same numbers begin alike. A request with `after` is sent when that one has ended,
    `arrival_ns` later. It waits `prepare_ns` for something beside room, in vain where
    `prepare_fails`: a grammar to be compiled, or the KV of its first `remote_tokens` tokens, which
    comes from elsewhere once it has blocks for it.

    Where output is deferred, `num_placeholders` tokens behind the `num_generated` ones have been
    sampled and are not known to the host yet.
    """

    id: str
    arrival_ns: int
    prompt_len: int
    max_tokens: int
    priority: int = 0
    modality: str = "text"
    deadline_ns: int | None = None
    eos_after: int | None = None
    prefix: tuple[int, ...] = ()
    after: str | None = None
    prepare_ns: int = 0
    prepare_fails: bool = False
    remote_tokens: int = 0
    ends_at_eos: bool = False

    status: Status = Status.PENDING
    arrival_order: int = 0
    num_computed: int = 0
    num_generated: int = 0
    num_placeholders: int = 0
    sampled_step: int = 0  # the step in which its last token was sampled
    has_eos: bool = False
    num_ever_computed: int = 0
    num_recomputed: int = 0
    num_preemptions: int = 0
    num_deferrals: int = 0  # times that it was first in the queue and lacked blocks
    num_passed: int = 0  # times that somebody behind it in the queue was let in
    is_skipped: bool = False  # it waits for something beside room, as in vLLM's skipped_waiting
    ready_ns: int | None = None  # when that comes
    is_ready: bool = False  # it has come, whether or not the scheduler has looked
    num_cached: int = 0  # tokens found in the prefix cache when it was last admitted
    block_hashes: list[int] | None = None
    block_table: list[int] = field(default_factory=list)
    slot: int | None = None
    first_token_ns: int | None = None
    last_token_ns: int = 0
    worst_gap_ns: int = 0  # longest time between two of its tokens

    def is_end(self, token: int, number: int) -> bool:
        """Tell whether output token `number`, from 1, being `token`, ends the output."""
        return token == EOS_TOKEN and (self.ends_at_eos or number == self.eos_after)

    @property
    def num_tokens(self) -> int:
        """Tokens so far: the prompt and what was generated, known to the host or not."""
        return self.prompt_len + self.num_generated + self.num_placeholders

    @property
    def max_kv_tokens(self) -> int:
        """Most tokens whose KV it can ever hold: the last one sampled is never fed back."""
        return self.prompt_len + self.max_tokens - 1

    @property
    def is_prefill(self) -> bool:
        """More than the last sampled token still has to be computed."""
        num_computed = self.num_computed
        return num_computed < self.prompt_len or num_computed < self.num_tokens - 1

    @property
    def age(self) -> tuple[int, int]:
        """Sorts the oldest first; the order of arrival breaks ties."""
        return self.arrival_ns, self.arrival_order
