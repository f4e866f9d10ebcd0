"""What a run came to, in the numbers of a scenario's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stepscope.engine.lifecycle import Ended
from stepscope.engine.scenario import Metric
from stepscope.engine.workload import SECOND


def serving_metrics(ended: Sequence[Ended], num_requests: int) -> dict[str, Metric]:
    """Return counts and times of a run that was asked for `num_requests`.

    Late is every request that did not finish by its deadline, also one that the run did not live
    to see arrive; latencies are of those that finished at all, `makespan_s` runs until the last
    request ended, however it did.
    """
    finished = [each for each in ended if each.event == "finish"]
    latencies_ns = [each.end_ns - each.request.arrival_ns for each in finished]
    return {
        "requests": num_requests,
        "late": num_requests - sum(is_in_time(each) for each in ended),
        "finished": len(finished),
        "preempted": sum(each.request.num_preemptions for each in ended),
        "recomputed_tokens": sum(each.request.num_recomputed for each in ended),
        "makespan_s": _seconds(max((each.end_ns for each in ended), default=0)),
        "mean_latency_s": _seconds(sum(latencies_ns) / len(finished)) if finished else 0.0,
    }


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


def _seconds(ns: float) -> float:
    return round(ns / SECOND, 3)
