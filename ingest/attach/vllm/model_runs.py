"""Which graph ran a step, and how many rows of logits it had: vLLM's model runner alone knows.

A runner may be in another process than its scheduler. So what it knows goes where its results go:
it is an attribute of ModelRunnerOutput, which is sent to the scheduler whole. A step whose results
do not have it says nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED

RAN = "stepscope_ran"
"""The attribute of what a runner gives back."""
_PATHS: dict[int, tuple[Any, str | None]] = {}
"""Modes by their ids, and what each is called; they are kept, so that no other gets the id."""
CHOSEN = "_determine_batch_execution_and_padding"
"""The function of a runner that chooses a graph."""
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
        runner = _fresh(module.GPUModelRunner)
        self.hooks.find(runner, CHOSEN, takes[CHOSEN])
        around(runner, "__init__", after=self._made)
        self.hooks.instead(runner, "sample_tokens", takes["sample_tokens"], self._sampling)

    def _sampling(self, sample: Callable[..., Any]) -> Callable[..., Any]:
        """A stage of a pipeline that is not the last one computes no logits."""
        hooks = self.hooks

        def hooked(runner: Any, *args: Any, **kwargs: Any) -> Any:
            if hooks.is_stopped:
                return sample(runner, *args, **kwargs)
            rows = None
            try:
                logits = getattr(runner.execute_model_state, "logits", None)
                if logits is not None:
                    rows = logits.shape[0]
            except Exception as error:
                hooks.stop(error)
            result = sample(runner, *args, **kwargs)
            try:
                path = runner.stepscope_path
                if getattr(result, "req_ids", None) and (path is not None or rows is not None):
                    result.stepscope_ran = path, rows  # what `_hand_over` does, of most results
                    runner.stepscope_path = runner.stepscope_only
                elif not hooks.is_stopped:
                    runner.stepscope_rows = rows
                    _hand_over(result, runner)
            except Exception as error:
                hooks.stop(error)
            return result

        return hooked

    def _made(self, _: object, runner: Any) -> None:
        """A runner that may use no graphs is not asked at each step which one it has chosen."""
        mode = getattr(getattr(runner, "compilation_config", None), "cudagraph_mode", None)
        if getattr(mode, "name", None) == "NONE":
            runner.stepscope_path = runner.stepscope_only = _path(mode)
        elif hasattr(runner, CHOSEN):
            self.hooks.around(
                runner, CHOSEN, FOLLOWED["runner"][CHOSEN],
                after=lambda result: _chosen(result, runner),
            )  # fmt: skip

    def watch_v2(self, module: ModuleType) -> None:
        """The same of vLLM's second model runner."""
        around, takes = self.hooks.around, FOLLOWED["runner_v2"]
        runner = _fresh(module.GPUModelRunner)
        around(runner, "prepare_inputs", takes["prepare_inputs"], after=_prepared)
        around(runner, "sample_tokens", takes["sample_tokens"], after=_hand_over)


def _fresh(runner: Any) -> Any:
    runner.stepscope_path = runner.stepscope_only = runner.stepscope_rows = None
    return runner


def _chosen(result: Any, runner: Any) -> None:
    runner.stepscope_path = _path(result[0])


def _prepared(inputs: Any, runner: Any, batch: Any) -> None:
    runner.stepscope_path = _path(batch.cg_mode)
    runner.stepscope_rows = inputs.logits_indices.shape[0]


def _hand_over(result: Any, runner: Any) -> None:
    output = result
    for name in HELD:
        output = getattr(result, name, output)
    told = runner.stepscope_path, runner.stepscope_rows
    runner.stepscope_path, runner.stepscope_rows = runner.stepscope_only, None
    # What has no requests is one object for all, which vLLM gives where nothing ran.
    if told != (None, None) and getattr(output, "req_ids", None):
        output.stepscope_ran = told


def _path(mode: Any) -> str | None:
    at = id(mode)  # a mode is one of few, and hashing one is a call of a function of Python's
    if at not in _PATHS:
        name = getattr(mode, "name", None)
        _PATHS[at] = mode, f"graph {name.lower()}" if name else None
    return _PATHS[at][1]
