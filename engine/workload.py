"""What clients ask for: lists of requests, made up, read from a file, or drawn at random.

Randomness comes from a `random.Random(seed)` of its own, so a seed names a workload for good.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import log
from pathlib import Path
from random import Random
from typing import Any

from stepscope.engine.request import Request
from stepscope.ingest.errors import ConfigError

SECOND = 1_000_000_000
Lengths = Callable[[Random], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """One request as its client sends it; lengths in tokens, times in ns of the run.

    A simulated model ends the output with token number `eos_after`, where that is given. `prefix`
    names what the prompt says, 512 tokens at a time: prompts whose prefixes begin with the same
    numbers begin alike; tokens behind the last of them are this request's own.
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

    def __post_init__(self) -> None:
        if self.arrival_ns < 0 or self.prompt_len < 1 or self.max_tokens < 1:
            raise ConfigError(
                f"request {self.id}: arrival {self.arrival_ns}, prompt {self.prompt_len}, "
                f"completion {self.max_tokens}",
                todo="arrivals start at 0, lengths at 1",
            )


class Workload:
    """Requests in order of arrival; iterating makes fresh ones, so that it can run again."""

    def __init__(self, specs: Iterable[RequestSpec]) -> None:
        self.specs = tuple(sorted(specs, key=lambda spec: spec.arrival_ns))
        if len({spec.id for spec in self.specs}) < len(self.specs):
            raise ConfigError("two requests of the workload have the same id")

    def __iter__(self) -> Iterator[Request]:
        for spec in self.specs:
            yield Request(
                spec.id, spec.arrival_ns, spec.prompt_len, spec.max_tokens,
                spec.priority, spec.modality, spec.deadline_ns, spec.eos_after, spec.prefix,
            )  # fmt: skip

    def __len__(self) -> int:
        return len(self.specs)

    def due(self, deadline_ns: int) -> Workload:
        """Return the same requests, each to be finished `deadline_ns` into the run."""
        return Workload(replace(spec, deadline_ns=deadline_ns) for spec in self.specs)

    @property
    def last_deadline_ns(self) -> int | None:
        """The latest deadline, None when no request has one."""
        due = (spec.deadline_ns for spec in self.specs if spec.deadline_ns is not None)
        return max(due, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the requests as JSON can hold them; defaults are left out."""
        return {"requests": [_without_defaults(spec) for spec in self.specs]}

    @classmethod
    def from_dict(cls, fields_of: Mapping[str, Any], where: str = "workload") -> Workload:
        """Return the workload that `as_dict` gave; ConfigError says what does not fit."""
        requests = fields_of.get("requests") if isinstance(fields_of, Mapping) else None
        if not isinstance(requests, list):
            raise ConfigError("there is no list of requests", where=where, todo=_FORMAT)
        return cls(_spec(each, f"{where}, request {i}") for i, each in enumerate(requests))

    def save(self, path: Path) -> None:
        """Write the requests to a JSON file."""
        path.write_text(json.dumps(self.as_dict(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def of(cls, given: Workload | Path) -> Workload:
        """Return a workload as it is, and the one that a file holds."""
        return cls.load(given) if isinstance(given, Path) else given

    @classmethod
    def load(cls, path: Path) -> Workload:
        """Read a file that `save` wrote, or that somebody wrote by hand in its format."""
        try:
            fields_of = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"is not JSON: {error}", where=str(path), todo=_FORMAT) from None
        return cls.from_dict(fields_of, str(path))


_FORMAT = 'write {"requests": [{"id": .., "arrival_ns": .., "prompt_len": .., "max_tokens": ..}]}'
_DEFAULTS = {
    "priority": 0,
    "modality": "text",
    "deadline_ns": None,
    "eos_after": None,
    "prefix": (),
}
_TYPES: dict[str, type] = {field.name: int for field in fields(RequestSpec)}
_TYPES |= {"id": str, "modality": str, "prefix": list}


def _without_defaults(spec: RequestSpec) -> dict[str, Any]:
    return {
        name: value
        for name, value in asdict(spec).items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }


def _spec(given: Any, where: str) -> RequestSpec:
    if not isinstance(given, dict) or not {*_TYPES} - {*_DEFAULTS} <= {*given} <= {*_TYPES}:
        raise ConfigError("the fields of a request are wrong", where=where, todo=_FORMAT)
    for name, value in given.items():
        is_left_open = value is None and name in _DEFAULTS and _DEFAULTS[name] is None
        if type(value) is not _TYPES[name] and not is_left_open:
            raise ConfigError(f"{name} is {value!r}", where=where, todo=_FORMAT)
    prefix = given.get("prefix", [])
    if any(type(number) is not int for number in prefix):
        raise ConfigError(f"prefix is {prefix!r}", where=where, todo=_FORMAT)
    return RequestSpec(**{**given, "prefix": tuple(prefix)})


def identical(num_requests: int, prompt_len: int, max_tokens: int, gap_ns: int = 0) -> Workload:
    """Return requests that differ in nothing but their arrival, `gap_ns` after one another."""
    arrivals = (i * gap_ns for i in range(num_requests))
    return _numbered(arrivals, fixed(prompt_len, max_tokens), 0)


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
