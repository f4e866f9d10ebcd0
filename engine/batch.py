"""What runs in one step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from stepscope.engine.requests.request import Request

PREFILL = "prefill"
DECODE = "decode"


@dataclass(slots=True)
class Row:
    """A request's share of a batch: `num_tokens` tokens, the first at position `num_computed`.

    A row `samples` when it reaches the end of what is known of the request, and once more for each
    of the `num_fed_back` tokens behind that. The last `num_draft` of its tokens are guesses, which
    the model checks: it gives the accepted ones of them and a token more. A row that `is_deferred`
    begins with a token of the step before, which the host does not know yet: the executor takes
    what it sampled last for the request, or, where it `reads_placeholder`, what stands there.
    """

    request: Request
    phase: str
    num_tokens: int
    num_computed: int
    samples: bool
    is_recompute: bool
    num_fed_back: int = 0
    num_draft: int = 0
    is_deferred: bool = False
    reads_placeholder: bool = False

    @property
    def num_kv_tokens(self) -> int:
        """Tokens whose KV the row reads or writes."""
        return self.num_computed + self.num_tokens


@dataclass(slots=True)
class Batch:
    """The rows of a step in the order in which they are laid out, and their sums.

    `scheduled` are the ids of the requests in it, `num_reserved` the tokens that prefill must leave
    to decodes. A batch without rows that is a `dummy` runs for the sake of other ranks, as the kind
    that it names; `by_rank` is one that runs that kind.
    """

    rows: list[Row] = field(default_factory=list)
    scheduled: set[str] = field(default_factory=set)
    num_reserved: int = 0
    dummy: str | None = None
    by_rank: int | None = None
    num_prefill_reqs: int = 0
    num_decode_reqs: int = 0
    num_prefill_tokens: int = 0
    num_decode_tokens: int = 0

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        self.rows.append(row)
        self.scheduled.add(row.request.id)
        if row.phase is PREFILL:
            self.num_prefill_reqs += 1
            self.num_prefill_tokens += row.num_tokens
        else:
            self.num_decode_reqs += 1
            self.num_decode_tokens += row.num_tokens

    @property
    def num_batched_tokens(self) -> int:
        """Tokens of all rows."""
        return self.num_prefill_tokens + self.num_decode_tokens

    @property
    def kind(self) -> str:
        """What the step is called: prefill, decode, mixed, dummy or idle."""
        if self.num_prefill_reqs and self.num_decode_reqs:
            return "mixed"
        if self.num_prefill_reqs:
            return PREFILL
        if self.num_decode_reqs:
            return DECODE
        return "dummy" if self.dummy else "idle"


@dataclass(slots=True)
class StepKinds:
    """How many steps there were of each kind, and the number of the first of them."""

    num_steps: Counter[str] = field(default_factory=Counter)
    first: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str, step: int) -> None:
        """Count step number `step`."""
        self.num_steps[kind] += 1
        self.first.setdefault(kind, step)
