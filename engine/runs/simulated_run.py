"""What a scenario's engine runs on: costs and a clock of their own, or a decoder and the wall's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.executors.slot_model import Priced, SlotModel
from stepscope.engine.model import require_torch
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.ingest.manifest import ClockInfo

if TYPE_CHECKING:
    from stepscope.engine.config import EngineConfig
    from stepscope.engine.executors import Executor
    from stepscope.engine.executors.simulated import CostModel, Simulated
    from stepscope.engine.memory.slot_memory import Layout
    from stepscope.engine.requests.request import Request
    from stepscope.engine.runs.scenario import Metric, Options
    from stepscope.engine.runs.torch_run import TorchRun
    from stepscope.engine.serving.engine import Engine
    from stepscope.ingest.recorder import Recorder


class SimulatedRun:
    """Time that passes as a cost model says, and nothing to compare."""

    clock_info = ClockInfo("virtual")

    def __init__(self, cost: CostModel) -> None:
        self.clock = VirtualClock()
        self.described: dict[str, Any] = {"cost": asdict(cost)}
        self._cost = cost

    def slot_model(self, layout: Layout, *, is_mirrored: bool) -> SlotModel:
        """Return what computes the slots of `layout`."""
        del is_mirrored
        return Priced(self._cost, layout.num_slots)

    def paged(self, config: EngineConfig, priced: Simulated) -> Executor:
        """Return what runs batches over paged KV: `priced`, as it is."""
        del config
        return priced

    def serve(self, engine: Engine, recorder: Recorder | None) -> None:
        """Run the engine to its end."""
        del recorder
        engine.run()

    def metrics(self, engine: Engine) -> dict[str, Metric]:
        """Return what the table shows besides: nothing."""
        del engine
        return {}


def run_for(
    executor: str,
    options: Options,
    cost: CostModel,
    model: ModelConfig,
    requests: Iterable[Request],
) -> SimulatedRun | TorchRun:
    """Return what `executor` runs on; MissingExtra where that is torch and there is none.

    With torch each of `requests` is first run alone, on a decoder of the sizes of `model`.
    """
    if executor_kind(executor).is_priced:
        return SimulatedRun(cost)
    require_torch()
    from stepscope.engine.runs.torch_run import TorchRun  # noqa: PLC0415 - torch is an extra

    return TorchRun(model, options.faults, requests, is_profiled=options.profile)
