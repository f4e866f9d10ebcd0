"""A run on a decoder: real time, a profile on request, and each output beside its solo run."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import WallClock
from stepscope.engine.executors.decoding.model_runner import ModelRunner
from stepscope.engine.executors.decoding.profiling import profiled, warm_up
from stepscope.engine.executors.decoding.torch_decoder import TorchDecoder
from stepscope.engine.executors.decoding.torch_slots import DecodedSlots
from stepscope.ingest.manifest import ClockInfo

if TYPE_CHECKING:
    from stepscope.engine.config import EngineConfig
    from stepscope.engine.executors import Executor
    from stepscope.engine.executors.simulated import Simulated
    from stepscope.engine.executors.slot_model import SlotModel
    from stepscope.engine.memory.slot_memory import Layout
    from stepscope.engine.model.decoder_config import ModelConfig
    from stepscope.engine.requests.request import Request
    from stepscope.engine.runs.scenario import Metric
    from stepscope.engine.serving.engine import Engine
    from stepscope.ingest.recorder import Recorder


class TorchRun:
    """A decoder of the sizes of `config`; the clock starts when `requests` have been run alone."""

    def __init__(
        self,
        config: ModelConfig,
        faults: frozenset[str],
        requests: Iterable[Request],
        *,
        is_profiled: bool = False,
    ) -> None:
        self.runner = ModelRunner(config, faults)
        for request in requests:
            self.runner.solo(request)
        if is_profiled:
            warm_up()
        self.clock = WallClock()
        self.clock_info = ClockInfo("wall", self.clock.epoch_ns)
        self.described: dict[str, Any] = {
            "executor": "torch", "model": asdict(config), "device": self.runner.device,
        }  # fmt: skip
        self._faults = faults
        self._is_profiled = is_profiled

    def slot_model(self, layout: Layout, *, is_mirrored: bool) -> SlotModel:
        """Return what computes the slots of `layout`."""
        clears = "recycle-without-clearing" not in self._faults
        return DecodedSlots(self.runner, layout, is_mirrored=is_mirrored, clears=clears)

    def paged(self, config: EngineConfig, priced: Simulated) -> Executor:
        """Return what computes batches over paged KV, split as `priced` would have it."""
        return TorchDecoder(self.runner, config.num_kv_blocks, config.block_size, priced.split)

    def serve(self, engine: Engine, recorder: Recorder | None) -> None:
        """Run the engine to its end, where the clock stops, and profile it where that was asked."""
        profiling = profiled(recorder, self.runner, self.clock)
        with profiling if self._is_profiled else nullcontext():
            engine.run()
            self.clock.stop()

    def metrics(self, engine: Engine) -> dict[str, Metric]:
        """Return how many outputs equal their solo runs, of all; nothing where nobody got any."""
        requests = [each.request for each in engine.ended]
        if not any(request.num_generated for request in requests):
            return {}
        num_equal = self.runner.num_equal_to_solo(requests)
        return {"equal_to_solo": f"{num_equal}/{len(requests)}"}
