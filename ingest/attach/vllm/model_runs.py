"""Which graph ran a step, and how many rows of logits it had: vLLM's model runner alone knows.

A runner may be in another process than its scheduler. So what it knows goes where its results go:
it is an attribute of ModelRunnerOutput, which is sent to the scheduler whole. A step whose results
do not have it says nothing of either.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED

RAN = "stepscope_ran"
"""The attribute of a runner, while it runs a batch, and of what it gives back."""
HELD = ("_model_runner_output", "model_runner_output")
"""Where a result that is still being copied from the device keeps what becomes of it."""


class Ran(NamedTuple):
    """How a step ran; None: not known."""

    path: str | None = None
    logits_rows: int | None = None


UNKNOWN = Ran()


class ModelRuns:
    """Follows the model runners of this process."""

    def __init__(self) -> None:
        self.hooks = Hooks(lambda _: None)

    def watch(self, module: ModuleType) -> None:
        """Follow the runners that this module's class makes."""
        around, takes = self.hooks.around, FOLLOWED["runner"]
        runner, chosen = module.GPUModelRunner, "_determine_batch_execution_and_padding"
        around(runner, "execute_model", takes["execute_model"], before=_begin)
        around(runner, chosen, takes[chosen], after=_chosen)
        around(runner, "sample_tokens", takes["sample_tokens"], before=_computed, after=_hand_over)

    def watch_v2(self, module: ModuleType) -> None:
        """The same of vLLM's second model runner."""
        around, takes = self.hooks.around, FOLLOWED["runner_v2"]
        runner = module.GPUModelRunner
        around(runner, "prepare_inputs", takes["prepare_inputs"], after=_prepared)
        around(runner, "sample_tokens", takes["sample_tokens"], after=_hand_over)


def ran(model_output: Any) -> Ran:
    """How the step ran whose results these are."""
    told = getattr(model_output, RAN, UNKNOWN)
    return told if isinstance(told, Ran) else UNKNOWN


def _begin(runner: Any) -> None:
    setattr(runner, RAN, UNKNOWN)


def _chosen(result: Any, runner: Any) -> None:
    setattr(runner, RAN, Ran(_path(result[0])))


def _computed(runner: Any) -> None:
    """A stage of a pipeline that is not the last one computes no logits."""
    logits = getattr(runner.execute_model_state, "logits", None)
    if logits is not None:
        setattr(runner, RAN, getattr(runner, RAN, UNKNOWN)._replace(logits_rows=len(logits)))


def _prepared(inputs: Any, runner: Any, batch: Any) -> None:
    setattr(runner, RAN, Ran(_path(batch.cg_mode), len(inputs.logits_indices)))


def _hand_over(result: Any, runner: Any) -> None:
    told = getattr(runner, RAN, UNKNOWN)
    setattr(runner, RAN, UNKNOWN)
    output = next((getattr(result, name) for name in HELD if hasattr(result, name)), result)
    # What has no requests is one object for all, which vLLM gives where nothing ran.
    if told is not UNKNOWN and getattr(output, "req_ids", None):
        setattr(output, RAN, told)


def _path(mode: Any) -> str | None:
    name = getattr(mode, "name", None)
    return f"graph {name.lower()}" if name else None
