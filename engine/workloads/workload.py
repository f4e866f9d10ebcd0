"""What clients ask for: lists of requests, made up, read from a file, or drawn at random.

Randomness comes from a `random.Random(seed)` of its own, so a seed names a workload for good.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import log
from pathlib import Path
from random import Random
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from stepscope.engine.requests.request import Request
from stepscope.engine.requests.spec import RequestSpec
from stepscope.engine.workloads.files import read_requests, requests_of
from stepscope.engine.workloads.graphs import Graphs
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import SECOND

__all__ = [
    "Lengths", "RequestSpec", "Workload", "bursty", "closed_loop", "distinct", "fixed",
    "identical", "log_normal", "poisson", "sharing",
]  # fmt: skip

Lengths = Callable[[Random], tuple[int, int]]


class Workload:
    """Requests in order of arrival, and behind them those that come after others have ended.

    Iterating makes fresh ones, so that it can run again, and gives those who follow others first.
    """

    def __init__(self, specs: Iterable[RequestSpec]) -> None:
        in_order = sorted(specs, key=lambda spec: (spec.after is not None, spec.arrival_ns))
        self.specs = tuple(in_order)
        if len({spec.id for spec in self.specs}) < len(self.specs):
            raise ConfigError("two requests of the workload have the same id")
        _check_chains(self.specs)

    def __iter__(self) -> Iterator[Request]:
        for spec in sorted(self.specs, key=lambda spec: spec.after is None):
            yield Request(
                spec.id, spec.arrival_ns, spec.prompt_len, spec.max_tokens, spec.priority,
                spec.modality, spec.deadline_ns, spec.eos_after, spec.prefix, spec.after,
                spec.prepare_ns, spec.prepare_fails, spec.remote_tokens, spec.ends_at_eos,
            )  # fmt: skip

    def __len__(self) -> int:
        return len(self.specs)

    def due(self, deadline_ns: int) -> Workload:
        """Return the same requests, each to be finished `deadline_ns` into the run."""
        return Workload(replace(spec, deadline_ns=deadline_ns) for spec in self.specs)

    def with_urgent(self, every: int) -> Workload:
        """Return the same requests, each `every`-th one served before the rest."""
        return Workload(
            replace(spec, priority=-1) if number % every == 0 else spec
            for number, spec in enumerate(self.specs, 1)
        )

    def with_images(self, every: int) -> Workload:
        """Return the same requests, each `every`-th one with an image."""
        return Workload(
            replace(spec, modality="image") if number % every == 0 else spec
            for number, spec in enumerate(self.specs, 1)
        )

    def first(self, num_requests: int) -> Workload:
        """Return the first `num_requests` to arrive."""
        return Workload(self.specs[:num_requests])

    def faster(self, times: float) -> Workload:
        """Return the same requests, arriving and due `times` as soon."""
        if not 1e-9 <= times <= 1e9:
            raise ConfigError(f"a workload cannot be {times:g} times as fast", todo="try 2.0")
        return Workload(
            replace(
                spec,
                arrival_ns=round(spec.arrival_ns / times),
                deadline_ns=None if spec.deadline_ns is None else round(spec.deadline_ns / times),
            )
            for spec in self.specs
        )

    @property
    def last_deadline_ns(self) -> int | None:
        """The latest deadline, None when no request has one."""
        due = (spec.deadline_ns for spec in self.specs if spec.deadline_ns is not None)
        return max(due, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the requests as JSON can hold them; defaults are left out."""
        return {"requests": [to_builtins(spec) for spec in self.specs]}

    @classmethod
    def from_dict(cls, fields_of: Mapping[str, Any], where: str = "workload") -> Workload:
        """Return the workload that `as_dict` gave; ConfigError says what does not fit."""
        return cls(requests_of(fields_of, where))

    def save(self, path: Path) -> None:
        """Write the requests to a JSON file."""
        path.write_text(json.dumps(self.as_dict(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def of(cls, given: Workload | Graphs | Path) -> Workload:
        """Return a workload as it is, and the one of a file; ConfigError for task graphs."""
        if isinstance(given, Graphs):
            raise ConfigError("is a task graph, not requests", where=given.source)
        return cls.load(given) if isinstance(given, Path) else given

    @classmethod
    def load(cls, path: Path) -> Workload:
        """Read a file or a trace, of any kind that `files` knows.

        ConfigError says where the file is wrong, and TraceError where the trace is.
        """
        specs = read_requests(path)
        if not specs:
            raise ConfigError("there is no request in it", where=str(path))
        try:
            return cls(specs)
        except ConfigError as error:
            raise ConfigError(error.what, where=str(path), todo=error.todo) from None


def _check_chains(specs: Iterable[RequestSpec]) -> None:
    """Raise ConfigError for a request that never comes, since whom it comes after never ends."""
    after = {spec.id: spec.after for spec in specs}
    sent: set[str] = set()
    for each in after:
        chain: dict[str, None] = {}
        link: str | None = each
        while link is not None and link not in sent:
            if link in chain or link not in after:
                raise ConfigError(f"request {each} comes after {link}, which does not come first")
            chain[link] = None
            link = after[link]
        sent.update(chain)


def identical(num_requests: int, prompt_len: int, max_tokens: int, gap_ns: int = 0) -> Workload:
    """Return requests that differ in nothing but their arrival, `gap_ns` after one another."""
    arrivals = (i * gap_ns for i in range(num_requests))
    return _numbered(arrivals, fixed(prompt_len, max_tokens), 0)


def distinct(num_requests: int, prompt_len: int, max_tokens: int, stagger: int = 0) -> Workload:
    """Return requests with prompts of their own, each `stagger` tokens longer than the one before.

    The last of them may generate `max_tokens`.
    """
    return Workload(
        RequestSpec(
            f"req-{i:02d}", 0, prompt_len + i, max(1, max_tokens - stagger * (num_requests - 1 - i))
        )
        for i in range(num_requests)
    )


def poisson(num_requests: int, rate_per_s: float, lengths: Lengths, seed: int) -> Workload:
    """Return requests that arrive independently of each other, `rate_per_s` on average."""
    rng = Random(f"arrivals {seed}")  # noqa: S311 - it simulates, it guards nothing
    return _numbered(_poisson_arrivals(num_requests, rate_per_s, rng), lengths, seed)


def bursty(
    num_requests: int, burst: int, gap_ns: int, lengths: Lengths, seed: int, jitter_ns: int = 0
) -> Workload:
    """Return requests that arrive `burst` at a time every `gap_ns`, each up to `jitter_ns` late."""
    rng = Random(f"arrivals {seed}")  # noqa: S311 - it simulates, it guards nothing
    starts = (i // burst * gap_ns for i in range(num_requests))
    return _numbered((start + rng.randint(0, jitter_ns) for start in starts), lengths, seed)


def closed_loop(num_clients: int, num_turns: int, prompt_len: int, max_tokens: int) -> Workload:
    """Return what clients send of whom each waits for its answer before it asks again."""
    return Workload(
        RequestSpec(
            f"client-{client:03d}-{turn}", 0, prompt_len, max_tokens,
            after=f"client-{client:03d}-{turn - 1}" if turn else None,
        )
        for turn in range(num_turns)
        for client in range(num_clients)
    )  # fmt: skip


def sharing(workload: Workload, prefix: Iterable[int]) -> Workload:
    """Return the same requests, of which all prompts begin with what `prefix` names."""
    numbers = tuple(prefix)
    return Workload(replace(spec, prefix=numbers) for spec in workload.specs)


def fixed(prompt_len: int, max_tokens: int) -> Lengths:
    """Return lengths that are always the same."""
    return lambda _: (prompt_len, max_tokens)


def log_normal(
    median_prompt: int, median_output: int, sigma: float = 1.0, longest: int = 8192
) -> Lengths:
    """Return lengths of which the logarithm is normal, the usual shape of real ones."""

    def draw(rng: Random) -> tuple[int, int]:
        prompt, output = (
            rng.lognormvariate(log(median), sigma) for median in (median_prompt, median_output)
        )
        return _clamp(prompt, longest), _clamp(output, longest)

    return draw


def _poisson_arrivals(num_requests: int, rate_per_s: float, rng: Random) -> Iterator[int]:
    ts = 0.0
    for _ in range(num_requests):
        ts += rng.expovariate(rate_per_s)
        yield round(ts * SECOND)


def _numbered(arrivals: Iterable[int], lengths: Lengths, seed: int) -> Workload:
    rng = Random(f"lengths {seed}")  # noqa: S311 - it simulates, it guards nothing
    in_order = enumerate(sorted(arrivals))
    return Workload(RequestSpec(f"req-{i:02d}", ts_ns, *lengths(rng)) for i, ts_ns in in_order)


def _clamp(length: float, longest: int) -> int:
    return max(1, min(longest, round(length)))
