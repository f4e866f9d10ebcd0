"""`bucketed`: only prompts of one length run together, as padding-bound kernels want it.

The scheduler of report 004. Sequences are put in buckets by (length, modality, offset) and one
bucket runs per step; prompts go before decodes. A decode has one token whatever its length, so
completions need no bucket of one length: only images and text never share a step, and take turns.
The knobs are the decisions that went wrong there; the defaults are the repaired ones, which serve
first come, first served.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

from stepscope.engine.plan import Action, Admit, ConsiderBucket, Defer, Preempt, Reject, Run
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.state import State
from stepscope.ingest.errors import ConfigError


class Bucket(NamedTuple):
    """What sequences must have in common to run together; `length` None is any."""

    length: int | None
    modality: str
    offset: int

    def __str__(self) -> str:
        offset = f" offset={self.offset}" if self.offset else ""
        return f"len={self.length or 'any'} {self.modality}{offset}"


T = TypeVar("T")
Plan = Generator[Action, None, T]


KNOBS = {
    "completions": ("jagged", "bucketed"),
    "bucket": ("oldest", "shortest"),
    "order": ("fcfs", "newest-first"),
    "victims": ("until-it-fits", "one"),
    "incompatible": ("defer", "preempt", "requeue"),
    "nothing_fits": ("hold", "ignore"),
}


@dataclass(frozen=True, slots=True)
class Bucketed:
    """One bucket a step.

    - `completions`: which decodes run together, `jagged` those of any length, or `bucketed` those
      of one.
    - `bucket`: which one runs, the `shortest` sequences or those with the `oldest` request. Where
      completions are jagged, text and images take turns at them.
    - `order`: who gets blocks first and is preempted last, `newest-first` or `fcfs`.
    - `victims`: how many are preempted for a request that was deferred `patience` times, `one`, or
      `until-it-fits`, and then only of lower priority. Then a victim comes back to stay: when the
      room that is left lets everybody who runs grow by a block, or when it was deferred so often.
    - `incompatible`: what happens to those of other buckets, `preempt`, `defer`, or `requeue`,
      which puts them back on the very queue that is being drained.
    - `nothing_fits`: what happens to a request for which that was too little, `ignore` drops it,
      `hold` leaves it in the queue.
    - `rejects`: whether a request that can never fit is turned away; otherwise it is deferred.
    - `gives_way`: whether blocks are taken from those that run for one that lacks some.
    - `latches`: whether a batch that was once too full for the head of the queue stays so for it.
    """

    completions: str = "jagged"
    bucket: str = "oldest"
    order: str = "fcfs"
    victims: str = "until-it-fits"
    incompatible: str = "defer"
    nothing_fits: str = "hold"
    patience: int = 64
    latches: bool = False
    rejects: bool = True
    gives_way: bool = True
    name: str = "bucketed"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {**KNOBS, "patience": (64, 0, 4)}
    slotted: ClassVar[bool] = False
    supports: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for knob, choices in KNOBS.items():
            if getattr(self, knob) not in choices:
                raise ConfigError(f"{knob}={getattr(self, knob)}: choose {' or '.join(choices)}")

    def with_faults(self, faults: Iterable[str]) -> Bucketed:
        """Return the scheduler with its knobs turned to the faults that are switched on."""
        knobs: dict[str, Any] = {}
        for fault in faults:
            knobs |= FAULTY_KNOBS.get(fault, {})
        return replace(self, **knobs)

    def schedule(self, state: State) -> Iterator[Action]:
        """Prefill what can be admitted; when nothing can, decode."""
        prompts: list[Request] = []
        yield from self._admit(state, prompts)
        if prompts:
            yield from self._prefill(state, prompts)
        elif state.running:
            yield from self._decode(state)

    def _admit(self, state: State, prompts: list[Request]) -> Iterator[Action]:
        place = 0
        while state.waiting:
            request = state.waiting[place % len(state.waiting)]
            if self.latches and request.num_deferrals:
                return
            if (rejection := _never_fits(state, request)) and self.rejects:
                yield rejection
            elif deferral := self._cannot_join(state, request, prompts):
                yield deferral
                if deferral.verdict != "put-back":
                    return
                place += 1
            elif (yield from self._fits(state, request, prompts)):
                was_running = request.status is Status.RUNNING
                yield Admit(request)
                if not was_running:
                    prompts.append(request)
            elif request.status is Status.WAITING:
                return

    def _fits(self, state: State, request: Request, prompts: list[Request]) -> Plan[bool]:
        needed = state.num_missing_blocks(request, request.num_tokens)
        is_overdue = request.num_deferrals >= self.patience
        if is_overdue and self.gives_way and needed > state.kv_blocks.num_free:
            yield from self._make_room(state, request, needed, prompts)
        num_free = state.kv_blocks.num_free
        if request.num_preemptions and self.victims == "until-it-fits" and not is_overdue:
            # Where not even the whole pool would do, it comes back when nobody runs.
            needed = max(needed, min(needed + len(state.running), state.kv_blocks.num_blocks))
        if needed <= num_free:
            return True
        if self.nothing_fits == "hold" or not is_overdue:
            yield _too_few_blocks(request, needed, num_free)
        else:
            yield Reject(request, "ignored: too few KV blocks", "kv-block", needed, num_free)
        return False

    def _make_room(
        self, state: State, request: Request, needed: int, prompts: list[Request]
    ) -> Iterator[Action]:
        victims = [each for each in state.running if each not in prompts]
        if self.victims == "until-it-fits":
            victims = [each for each in victims if self._rank(each) > self._rank(request)]
            if needed > state.kv_blocks.num_free + sum(len(each.block_table) for each in victims):
                return
        for victim in sorted(victims, key=self._rank, reverse=True):
            yield Preempt(victim, f"{request.id} waited long enough", request, needed)
            if self.victims == "one" or needed <= state.kv_blocks.num_free:
                return

    def _prefill(self, state: State, prompts: list[Request]) -> Iterator[Action]:
        chosen = yield from self._choose(prompts)
        yield from self._set_aside(prompts, chosen)
        for request in chosen:
            yield Run(request, request.num_tokens)
        joined = set(prompts)
        for request in state.running:
            if request not in joined:
                yield Defer(request, "prompts go first", "phase", instead="prefill")

    def _decode(self, state: State) -> Iterator[Action]:
        running = sorted(state.running, key=self._rank)
        chosen = yield from self._choose(running)
        yield from self._set_aside(running, chosen)
        for request in chosen:
            while request.status is Status.RUNNING:
                needed = state.num_missing_blocks(request, request.num_tokens)
                if needed <= state.kv_blocks.num_free:
                    yield Run(request, 1)
                    break
                if not self.gives_way:
                    yield _too_few_blocks(request, needed, state.kv_blocks.num_free)
                    break
                lowest = next(each for each in reversed(running) if each.status is Status.RUNNING)
                yield Preempt(lowest, f"{request.id} needs its blocks", request, needed)

    def _choose(self, requests: Sequence[Request]) -> Plan[list[Request]]:
        buckets: dict[Bucket, list[Request]] = {}
        for request in requests:
            buckets.setdefault(self._bucket_of(request), []).append(request)
        oldest = {bucket: min(members, key=_age) for bucket, members in buckets.items()}
        by_age = sorted(buckets, key=lambda bucket: _age(oldest[bucket]))
        chosen, reason = by_age[0], f"{self.bucket} goes first"
        if chosen.length is None:
            chosen = min(by_age, key=lambda bucket: min(map(_last_step, buckets[bucket])))
            reason = "modalities take turns"
        elif self.bucket == "shortest":
            chosen = min(by_age, key=lambda bucket: min(map(_length, buckets[bucket])))
        if len(buckets) > 1:
            for bucket in dict.fromkeys((chosen, *by_age[:MAX_CONSIDERED])):
                yield ConsiderBucket(
                    str(bucket), oldest[bucket], len(buckets[bucket]), str(chosen), reason
                )
        return buckets[chosen]

    def _set_aside(self, requests: Sequence[Request], chosen: list[Request]) -> Iterator[Action]:
        bucket, oldest = self._bucket_of(chosen[0]), min(chosen, key=_age)
        members = set(chosen)
        others = [request for request in reversed(requests) if request not in members]
        for request in others:
            if self.incompatible == "preempt":
                yield Preempt(request, OTHER_BUCKET, oldest, 0, "bucket", str(bucket))
            elif self.incompatible == "defer":
                yield _behind_bucket(request, bucket, oldest)
            else:
                yield _behind_bucket(request, bucket, oldest, "put-back")
                others.append(request)

    def _cannot_join(self, state: State, request: Request, prompts: list[Request]) -> Defer | None:
        config = state.config
        if not state.num_free_running_slots:
            return Defer(request, "every running slot is taken", "seat", 1, 0)
        budget = config.max_num_batched_tokens - sum(each.num_tokens for each in prompts)
        if request.num_tokens > budget:
            return Defer(
                request, "the token budget is spent", "token-budget", request.num_tokens, budget
            )
        if prompts and self.incompatible != "preempt":
            bucket = self._bucket_of(prompts[0])
            if self._bucket_of(request) != bucket:
                verdict = "put-back" if self.incompatible == "requeue" else "deferred"
                return _behind_bucket(request, bucket, prompts[0], verdict)
        return None

    def _bucket_of(self, request: Request) -> Bucket:
        is_jagged = self.completions == "jagged" and not request.is_prefill
        return Bucket(None if is_jagged else request.num_tokens, request.modality, 0)

    def _rank(self, request: Request) -> tuple[int, int, int]:
        arrival_ns, order = request.age
        if self.order == "fcfs":
            return request.priority, arrival_ns, order
        return request.priority, -arrival_ns, -order


MAX_CONSIDERED = 8  # buckets told of in a step, the oldest of them
OTHER_BUCKET = "another bucket runs"
FAULTY_KNOBS: dict[str, dict[str, Any]] = {
    "completions-in-buckets": {"completions": "bucketed"},
    "shortest-bucket": {"bucket": "shortest"},
    "newest-first-oldest-preempted": {"order": "newest-first"},
    "bucket-preemption-with-free-blocks": {"incompatible": "preempt"},
    "incompatible-requeued-on-drained-queue": {"incompatible": "requeue"},
    "one-victim-then-ignored": {"victims": "one", "nothing_fits": "ignore"},
    "batch-full-latched": {"latches": True},
    "nobody-gives-way": {"gives_way": False},
    "too-long-is-held": {"rejects": False},
    "ignored-told-as-finished": {"nothing_fits": "ignore"},
}


def _too_few_blocks(request: Request, needed: int, num_free: int) -> Defer:
    return Defer(request, "too few KV blocks are free", "kv-block", needed, num_free)


def _behind_bucket(
    request: Request, bucket: Bucket, oldest: Request, verdict: str = "deferred"
) -> Defer:
    return Defer(
        request, OTHER_BUCKET, "bucket", holder=oldest.id, instead=str(bucket), verdict=verdict
    )


def _length(request: Request) -> int:
    return request.num_tokens


def _last_step(request: Request) -> int:
    """The step of its last token: whoever has waited longest has the lowest."""
    return request.sampled_step


def _age(request: Request) -> tuple[int, int, int]:
    """The more urgent is as good as older."""
    return request.priority, *request.age


def _never_fits(state: State, request: Request) -> Reject | None:
    """Recomputing takes one step, so the whole request has to fit the pool and the budget."""
    blocks = state.kv_blocks
    needed, total = blocks.num_blocks_for(request.max_kv_tokens), blocks.num_blocks
    if needed > total:
        return Reject(request, "longer than the KV pool", "kv-block", needed, total)
    budget = state.config.max_num_batched_tokens
    if request.max_kv_tokens > budget:
        return Reject(
            request, "longer than a step's tokens", "token-budget", request.max_kv_tokens, budget
        )
    return None
