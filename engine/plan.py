"""What a scheduling policy may ask of the engine, one action at a time.

A policy is a generator: it looks at the state, yields an action, and the engine performs it
before the policy goes on. So a policy never keeps books of its own, and the engine alone
allocates, preempts and records.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.engine.requests.request import Request
from stepscope.ingest.errors import StepscopeError


class PlanRefused(StepscopeError):
    """A policy asked for something that breaks an invariant of the engine."""


@dataclass(slots=True)
class Admit:
    """Move a request from waiting to running, with the blocks for all its known tokens."""

    request: Request


@dataclass(slots=True)
class Load:
    """Give a waiting request the blocks for its KV that is elsewhere, and let that come."""

    request: Request


@dataclass(slots=True)
class Promote:
    """Take note that what a waiting request waited for, beside room, has come."""

    request: Request


@dataclass(slots=True)
class Run:
    """Put `num_tokens` tokens of a running request into this step's batch.

    The last `num_fed_back` of them are not known yet: each is sampled within the step and fed back
    in the same step, as where a prompt is written and decoded in one go. Or the last `num_draft` of
    them are guesses, of which those before the first wrong one count.
    """

    request: Request
    num_tokens: int
    num_fed_back: int = 0
    num_draft: int = 0


@dataclass(slots=True)
class Reserve:
    """Keep `num_tokens` of this step's budget for decodes; prefills get no more than the rest."""

    num_tokens: int


@dataclass(slots=True)
class Preempt:
    """Throw a running request's KV away and put it at the front of waiting.

    Or that of one that waits and holds blocks, which stays where it is in the queue. `by` is the
    request it yields to, `needed` the blocks which that one lacked.
    """

    request: Request
    cause: str
    by: Request
    needed: int
    resource: str = "kv-block"
    instead: str | None = None


@dataclass(slots=True)
class Reject:
    """Drop a waiting request for good."""

    request: Request
    cause: str
    resource: str | None = None
    needed: int | None = None
    available: int | None = None


@dataclass(slots=True)
class Defer:
    """Leave a request out of this step, where it stands, and say what it lacked.

    Without a `resource` it was the request itself that was not ready. The verdict is `deferred`, or
    `put-back` when it is to be looked at again in this very step.
    """

    request: Request
    reason: str
    resource: str | None = None
    needed: int | None = None
    available: int | None = None
    holder: str | None = None
    instead: str | None = None
    verdict: str = "deferred"


@dataclass(slots=True)
class ConsiderBucket:
    """Note a bucket that could be run, of `size` requests, and which one is `chosen` of all."""

    name: str
    oldest: Request
    size: int
    chosen: str
    reason: str


Action = Admit | Load | Promote | Run | Reserve | Preempt | Reject | Defer | ConsiderBucket
