"""vLLM's model runners: which graph ran a step, and how many rows of logits it computed."""

from __future__ import annotations

import pickle
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.vllm.model_runs import CHOSEN, RAN, UNKNOWN, ModelRuns, Ran

Mode = Enum("Mode", {"NONE": 0, "PIECEWISE": 1, "FULL": 2})


class Output:
    """As vLLM's ModelRunnerOutput."""

    def __init__(self, *req_ids: str) -> None:
        self.req_ids = list(req_ids)


EMPTY = Output()


def ran(model_output: Any) -> Any:
    """What the scheduler of these results is told."""
    return getattr(model_output, RAN, UNKNOWN)


def rows(count: int) -> Any:
    return SimpleNamespace(shape=(count,))


class GPUModelRunner:
    """As vLLM's: a graph is chosen, logits are computed, and tokens are sampled later."""

    def __init__(self) -> None:
        self.execute_model_state: Any = None
        self.mode, self.logits, self.sampled = Mode.FULL, rows(2), Output("a", "b")

    def execute_model(self, scheduler_output: Any, intermediate_tensors: Any = None) -> None:
        if not scheduler_output:
            return
        self._determine_batch_execution_and_padding(2, num_reqs=2)
        self.execute_model_state = SimpleNamespace(logits=self.logits)

    def sample_tokens(self, grammar_output: Any) -> Any:
        self.execute_model_state = None
        return self.sampled

    def _determine_batch_execution_and_padding(self, num_tokens: int, num_reqs: int) -> Any:
        return self.mode, SimpleNamespace(num_tokens=num_tokens)


class SecondRunner:
    """As vLLM's second one, which prepares inputs for a graph that was chosen before."""

    def prepare_inputs(self, scheduler_output: Any, batch_state: Any, batch_desc: Any) -> Any:
        return SimpleNamespace(logits_indices=rows(len(scheduler_output)))

    def sample_tokens(self, grammar_output: Any) -> Any:
        return SimpleNamespace(model_runner_output=Output("a"))


@pytest.fixture
def runner() -> Any:
    return followed(GPUModelRunner, "watch")()


def followed(kind: type, watch: str) -> Any:
    module: Any = ModuleType("vllm")
    module.GPUModelRunner = type("GPUModelRunner", (kind,), dict(vars(kind)))
    runs = ModelRuns()
    getattr(runs, watch)(module)
    assert runs.hooks.missing == []
    return module.GPUModelRunner


def step(runner: Any) -> Any:
    runner.execute_model(["a", "b"])
    return runner.sample_tokens(None)


def test_results_say_which_graph_ran_and_how_many_logits_there_were(runner: Any) -> None:
    assert ran(step(runner)) == Ran("graph full", 2)


def test_what_is_said_goes_with_the_results_to_another_process(runner: Any) -> None:
    sent = pickle.loads(pickle.dumps(step(runner)))  # noqa: S301 - as vLLM sends it

    assert ran(sent) == Ran("graph full", 2)


def test_results_on_their_way_from_the_device_say_so_when_they_are_there(runner: Any) -> None:
    runner.sampled = SimpleNamespace(_model_runner_output=Output("a", "b"))

    assert ran(step(runner)._model_runner_output) == Ran("graph full", 2)


def test_a_stage_that_computes_no_logits_does_not_say_how_many(runner: Any) -> None:
    runner.logits = None

    assert ran(step(runner)) == Ran("graph full", None)


def test_what_vllm_gives_where_nothing_ran_is_left_alone(runner: Any) -> None:
    runner.sampled = EMPTY

    step(runner)

    assert ran(EMPTY) == UNKNOWN


def test_a_step_does_not_have_what_the_one_before_it_had(runner: Any) -> None:
    step(runner)
    runner.execute_model([])
    runner.sampled = Output("c")

    assert ran(runner.sample_tokens(None)) == UNKNOWN


def test_a_dummy_run_before_a_step_is_not_that_steps(runner: Any) -> None:
    runner.mode = Mode.PIECEWISE
    runner._determine_batch_execution_and_padding(64, num_reqs=64)
    runner.mode = Mode.NONE

    assert ran(step(runner)) == Ran("graph none", 2)


def test_a_runner_that_may_use_no_graphs_is_not_asked_for_one_at_each_step() -> None:
    made = followed(type("Eager", (GPUModelRunner,), {
        "compilation_config": SimpleNamespace(cudagraph_mode=Mode.NONE),
    }), "watch")()  # fmt: skip

    assert [ran(step(made)), ran(step(made))] == [Ran("graph none", 2)] * 2
    assert CHOSEN not in vars(made)


def test_the_second_runner_says_the_same() -> None:
    runner = followed(SecondRunner, "watch_v2")()
    runner.prepare_inputs([4, 9, 11], None, batch_desc=SimpleNamespace(cg_mode=Mode.PIECEWISE))

    assert ran(runner.sample_tokens(None).model_runner_output) == Ran("graph piecewise", 3)


def test_a_runner_of_another_make_is_named_and_left_alone() -> None:
    module: Any = ModuleType("vllm")
    module.GPUModelRunner = type("GPUModelRunner", (), {"sample_tokens": lambda *_: 7})
    runs = ModelRuns()

    runs.watch(module)

    assert runs.hooks.missing == ["GPUModelRunner._determine_batch_execution_and_padding"]
    assert module.GPUModelRunner().sample_tokens(None) == 7
