"""A head and its workers serve a workload: in one process, or each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from stepscope.engine.clock import Clock, VirtualClock, WallClock
from stepscope.engine.executors.expert_parallel import ExpertParallel
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.head import Head
from stepscope.engine.parallel.ranks.member import Journal, Member
from stepscope.engine.parallel.ranks.threads import threads
from stepscope.engine.parallel.shares.logits import LogitsRows
from stepscope.engine.parallel.shares.models import model_kind
from stepscope.engine.parallel.shares.rank_model import model_config
from stepscope.engine.requests.content import prompt_tokens
from stepscope.engine.serving.engine import Engine
from stepscope.engine.serving.observing import Observer, observer_of
from stepscope.engine.workloads.workload import Workload

if TYPE_CHECKING:
    from stepscope.engine.model.stream import Stream
    from stepscope.engine.parallel.ranks.processes import Workers
    from stepscope.engine.requests.spec import RequestSpec
    from stepscope.ingest.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Group:
    """A head, here, and its workers: threads on virtual time, or processes on real time.

    Processes wait `timeout_s` for each other in a collective. `observer` is shown what each rank
    holds, as far as it asks for it: of a worker in another process once that has ended.
    """

    config: ParallelConfig
    workers: Workers | None
    timeout_s: float
    observer: Observer | None = None

    @classmethod
    @contextmanager
    def started(
        cls,
        config: ParallelConfig,
        timeout_s: float,
        *,
        is_real: bool,
        observer: Observer | None = None,
    ) -> Iterator[Group]:
        """Give a group whose workers are ready; they are gone when this is left."""
        with ExitStack() as stack:
            workers = stack.enter_context(_processes(config)) if is_real else None
            stack.enter_context(model_kind(config.model).computing())
            yield cls(config, workers, timeout_s, observer)

    def clock(self) -> Clock:
        """Return a clock that begins now, or a virtual one."""
        return WallClock() if self.workers else VirtualClock()

    @contextmanager
    def head(
        self, clock: Clock, recorder: Recorder | None, journal: Journal | None
    ) -> Iterator[Member]:
        """Give the head with its workers at work."""
        of_rank = partial(observer_of, self.observer)
        # Alone in the world there is nobody to connect to.
        if self.workers and isinstance(clock, WallClock) and self.config.world_size > 1:
            among = self.workers.head(
                self.config, clock, recorder, journal, self.timeout_s, of_rank
            )
        else:
            among = threads(self.config, clock, recorder, journal, of_rank)
        with among as member:
            yield member


def _processes(config: ParallelConfig) -> AbstractContextManager[Workers]:
    from stepscope.engine.parallel.ranks.processes import processes  # noqa: PLC0415 - it needs torch

    return processes(config.world_size - 1)


def answers_alone(config: ParallelConfig, workload: Workload) -> Mapping[str, Stream]:
    """Return what the model says to each request alone, by its id, without slots or other ranks."""
    return _answers(config.model, config.seed, workload.specs)


@lru_cache(maxsize=4)
def _answers(model: str, seed: int, specs: tuple[RequestSpec, ...]) -> Mapping[str, Stream]:
    """Every variant of a scenario is compared with the same answers."""
    vocab_size = model_config(seed).vocab_size
    answer = model_kind(model).alone(seed)
    return {
        request.id: answer(
            prompt_tokens(request, vocab_size),
            request.max_tokens,
            request.eos_after,
            ends_at_eos=request.ends_at_eos,
        )
        for request in Workload(specs)
    }


def serve(
    group: Group,
    clock: Clock,
    engine_on: Callable[[ExpertParallel], Engine],
    alone: Mapping[str, Stream],
    recorder: Recorder | None = None,
    journal: Journal | None = None,
) -> tuple[Engine, ExpertParallel]:
    """Run the engine that `engine_on` makes, let the workers go; return it and what it ran on.

    `alone` are the answers that the model gives to each request alone.
    """
    with group.head(clock, recorder, journal) as member:
        head = Head(member.wire, member.share)
        is_ordered = "copy-on-unordered-stream" not in group.config.faults
        logits = LogitsRows(member.log, is_ordered=is_ordered)
        executor = ExpertParallel(head, logits, group.config, member.spend, member.costs, alone)
        engine = engine_on(executor)
        engine.run()
        if executor.stopped is None:
            head.shutdown()
    return engine, executor
