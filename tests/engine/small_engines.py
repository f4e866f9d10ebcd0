"""Small engines for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.serving.observing import Observer
from stepscope.engine.workloads.workload import RequestSpec, Workload
from tests.engine.rows import Rows

# One ns a step and nothing else makes times easy to say.
UNIT_COST = CostModel(base_ns=1, prefill_token_ns=0, decode_row_ns=0, kv_token_ns=0)


def request(
    name: str, prompt_len: int = 4, max_tokens: int = 4, arrival_ns: int = 0, **more: Any
) -> RequestSpec:
    """Return a request; its name is its id."""
    return RequestSpec(name, arrival_ns, prompt_len, max_tokens, **more)


def serve(
    requests: Iterable[RequestSpec],
    scheduler: Scheduler | None = None,
    config: EngineConfig | None = None,
    *,
    observer: Observer | None = None,
    cost: CostModel = UNIT_COST,
    acceptance: float = 0.0,
) -> tuple[Engine, Rows]:
    """Run an engine to its end; return it and what it recorded."""
    rows = Rows()
    engine = Engine(
        config or EngineConfig(), Workload(requests), scheduler or Bucketed(),
        Simulated(cost, acceptance=acceptance), VirtualClock(), rows.recorder, observer,
    )  # fmt: skip
    engine.run()
    return engine, rows
