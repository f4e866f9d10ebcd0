"""What a scenario can run on, by the names that `--executor` takes, and what each can do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutorKind:
    """An executor as a scenario names it.

    `is_priced`: its steps cost what a cost model says, and another one may be given.
    `is_real_time`: it runs on the wall's clock, so no two runs take the same time.
    `takes_graphs`: it runs task graphs that are given, without requests.
    """

    name: str
    is_priced: bool = False
    is_real_time: bool = False
    needs_torch: bool = False
    has_profiler: bool = False
    takes_graphs: bool = False


EXECUTORS = (
    ExecutorKind("simulated", is_priced=True),
    ExecutorKind("ragged", is_priced=True),
    ExecutorKind("torch", is_real_time=True, needs_torch=True, has_profiler=True),
    ExecutorKind("clusters", takes_graphs=True),
    ExecutorKind("expert-parallel", needs_torch=True),
    ExecutorKind("gloo", is_real_time=True, needs_torch=True),
)
_BY_NAME = {kind.name: kind for kind in EXECUTORS}


def executor_kind(name: str) -> ExecutorKind:
    """Return the kind of that name, which is that of a scenario's `executors`."""
    return _BY_NAME[name]
