"""What a run came to, in the numbers of a scenario's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from stepscope.engine.batch import StepKinds
from stepscope.engine.requests.finishing import Ended
from stepscope.engine.runs.scenario import Metric
from stepscope.ingest.quantiles import quantile_of_counts
from stepscope.ingest.times import SECOND

if TYPE_CHECKING:
    from stepscope.engine.requests.request import Request
    from stepscope.engine.serving.engine import Engine


@dataclass(slots=True)
class Totals:
    """What the requests of a run came to, summed up as they end; none of them is kept."""

    num_in_time: int = 0
    num_finished: int = 0
    num_preemptions: int = 0
    num_recomputed: int = 0
    num_generated: int = 0
    latency_ns: int = 0
    last_end_ns: int | None = None

    def add(self, ended: Ended) -> None:
        """Count a request that ended."""
        request, event, end_ns, _ = ended
        self.add_open(request)
        self.num_in_time += is_in_time(ended)
        self.last_end_ns = max(self.last_end_ns or 0, end_ns)
        if event == "finish":
            self.num_finished += 1
            self.latency_ns += end_ns - request.arrival_ns

    def add_open(self, request: Request) -> None:
        """Count what was done for a request, which need not have ended."""
        self.num_preemptions += request.num_preemptions
        self.num_recomputed += request.num_recomputed
        self.num_generated += request.num_generated

    def metrics(self, num_requests: int) -> dict[str, Metric]:
        """Return counts and times of a run that was asked for `num_requests`.

        Late is every request that did not finish by its deadline, also one that the run did not
        live to see arrive; latencies are of those that finished at all; where none did there is
        no such metric. `makespan_s` runs until the last request ended, however it did; where none
        ended nobody knows it.
        """
        mean_s = _seconds(self.latency_ns / self.num_finished) if self.num_finished else None
        return known(
            {
                "requests": num_requests,
                "late": num_requests - self.num_in_time,
                "finished": self.num_finished,
                "preempted": self.num_preemptions,
                "recomputed_tokens": self.num_recomputed,
                "makespan_s": None if self.last_end_ns is None else _seconds(self.last_end_ns),
                "mean_latency_s": mean_s,
            }
        )


def serving_metrics(
    ended: Iterable[Ended], num_requests: int, left_open: Iterable[Request] = ()
) -> dict[str, Metric]:
    """Return the metrics of requests that ended, and of those that were left open, if any."""
    totals = Totals()
    for each in ended:
        totals.add(each)
    for request in left_open:
        totals.add_open(request)
    return totals.metrics(num_requests)


def token_metrics(engines: Sequence[Engine]) -> dict[str, Metric]:
    """Return what clients saw of their tokens come, over all `engines` of a run.

    The gaps are times between two tokens of a request: the longest of all, the 99th percentile of
    all, and of each request its longest, of which the median and how many are over a second. Of
    what never was, a gap or a first token, there is no metric.
    """
    requests = [each.request for engine in engines for each in engine.ended]
    gaps_ns = sum((engine.outputs.gaps_ns for engine in engines), Counter[int]())
    worst_ns = [request.worst_gap_ns for request in requests if request.num_generated > 1]
    ttft_ns = [
        request.first_token_ns - request.arrival_ns
        for request in requests
        if request.first_token_ns is not None
    ]
    end_s = max(engine.clock.now_ns() for engine in engines) / SECOND
    num_tokens = sum(request.num_generated for request in requests)
    return known(
        {
            "worst_gap_s": _seconds(max(worst_ns)) if worst_ns else None,
            "p99_gap_s": _seconds(quantile_of_counts(gaps_ns, 0.99)) if gaps_ns else None,
            "median_request_worst_gap_s": _seconds(median(worst_ns)) if worst_ns else None,
            "requests_stalled": sum(each > SECOND for each in worst_ns) if worst_ns else None,
            "median_ttft_s": _seconds(median(ttft_ns)) if ttft_ns else None,
            "tokens_per_s": round(num_tokens / end_s) if end_s else None,
        }
    )


def kind_metrics(kinds: StepKinds) -> dict[str, Metric]:
    """Return how many steps there were of each kind, and which was the first mixed one, if any."""
    nums = {
        f"{kind}_steps": kinds.num_steps[kind] for kind in ("prefill", "mixed", "decode", "dummy")
    }
    return known({**nums, "first_mixed": kinds.first.get("mixed")})


def is_in_time(ended: Ended) -> bool:
    """Whether the request finished, and by its deadline if it has one."""
    deadline_ns = ended.request.deadline_ns
    return ended.event == "finish" and (deadline_ns is None or ended.end_ns <= deadline_ns)


def finish_cohorts(ended: Sequence[Ended]) -> list[tuple[int, int]]:
    """Return `(end_ns, requests)` for each moment at which requests finished, in order."""
    return sorted(Counter(each.end_ns for each in ended if each.event == "finish").items())


def cohorts_text(ended: Sequence[Ended]) -> str:
    """Return the cohorts as a table shows them, such as `16 at 6.0 s, 8 at 12.5 s`."""
    cohorts = finish_cohorts(ended)
    return ", ".join(f"{size} at {end_ns / SECOND:.1f} s" for end_ns, size in cohorts) or "none"


def known(metrics: Mapping[str, Metric | None]) -> dict[str, Metric]:
    """Return those that are known: of what never was there is no metric."""
    return {name: number for name, number in metrics.items() if number is not None}


def _seconds(ns: float) -> float:
    return round(ns / SECOND, 3)
