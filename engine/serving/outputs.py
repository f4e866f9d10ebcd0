"""What becomes of the tokens that a step sampled."""

from __future__ import annotations

from collections import Counter
from itertools import repeat

from stepscope.engine.batch import Batch
from stepscope.engine.clock import Clock
from stepscope.engine.executors import Digest, Execution
from stepscope.engine.requests.finishing import EOS, finish_reason
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.serving.lifecycle import Lifecycle
from stepscope.engine.serving.recording import Recording
from stepscope.engine.state import State

Sampled = tuple[tuple[int, Digest | None], ...]


class Outputs:
    """Appends what was sampled to the requests, and lets go of those that are finished.

    Where output is deferred, a token is first a placeholder, and a token one step later; so a
    request ends one step late, and the row that it had meanwhile is thrown away. `gaps_ns` counts
    the times between two tokens of a request, each to 8 binary digits.
    """

    def __init__(
        self, state: State, lifecycle: Lifecycle, record: Recording | None, clock: Clock
    ) -> None:
        self.gaps_ns: Counter[int] = Counter()
        self._state = state
        self._config = state.config
        self._lifecycle = lifecycle
        self._record = record
        self._clock = clock
        self._in_flight: list[tuple[Request, Sampled, int]] = []
        self._ends_in_error = "preempted-ends-in-error" in state.config.faults

    def take(self, batch: Batch, execution: Execution) -> None:
        """Take the tokens of the step, or those of the one before where output is deferred."""
        for row in batch.rows:
            if cause := execution.failed.get(row.request.id):
                self._lifecycle.fail(row.request, cause)
        if not self._config.deferred_output:
            for row in batch.rows:
                self._append(row.request, _sampled(execution, row.request), self._state.step)
            return
        for request, known, sampled_step in self._in_flight:
            request.num_placeholders = 0
            self._append(request, known, sampled_step)
        self._in_flight = [
            self._put_off(row.request, _sampled(execution, row.request))
            for row in batch.rows
            if row.request.id in execution.tokens and row.request.status is Status.RUNNING
        ]

    def append_token(
        self, request: Request, token: int, sampled_step: int, digest: Digest | None = None
    ) -> None:
        """Give a request a token that the host knows."""
        request.num_generated += 1
        request.sampled_step = sampled_step
        request.has_eos |= request.is_end(token, request.num_generated)
        self._time(request)
        if self._record:
            self._record.token(request, token, sampled_step, digest)
            if request.num_generated == 1:
                self._record.event(request, "first-token")

    def _append(self, request: Request, sampled: Sampled, sampled_step: int) -> None:
        for token, digest in sampled:
            if request.status is Status.ENDED:
                return
            self.append_token(request, token, sampled_step, digest)
            if reason := finish_reason(request, self._config.faults):
                self._lifecycle.finish(request, reason if reason == EOS else None)
            elif self._ends_in_error and request.num_preemptions:
                self._lifecycle.fail(request, "error: its grammar rejects the token")

    def _put_off(self, request: Request, sampled: Sampled) -> tuple[Request, Sampled, int]:
        request.num_placeholders = len(sampled)
        request.sampled_step = self._state.step
        if self._record:
            self._record.placeholder(request)
        return request, sampled, self._state.step

    def _time(self, request: Request) -> None:
        now_ns = self._clock.now_ns()
        if request.first_token_ns is None:
            request.first_token_ns = now_ns
        else:
            gap_ns = now_ns - request.last_token_ns
            self.gaps_ns[_coarse(gap_ns)] += 1
            request.worst_gap_ns = max(request.worst_gap_ns, gap_ns)
        request.last_token_ns = now_ns


def _sampled(execution: Execution, request: Request) -> Sampled:
    """Return the tokens that were sampled for a request, each with its digest if it has one."""
    digests = execution.digests.get(request.id) or repeat(None)
    return tuple(zip(execution.tokens.get(request.id, ()), digests, strict=False))


def _coarse(ns: int) -> int:
    """Round down to 8 binary digits: counts of exact times would grow for as long as a run does."""
    shift = max(0, ns.bit_length() - 8)
    return ns >> shift << shift
