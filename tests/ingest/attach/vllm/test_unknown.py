"""A vLLM that is not as the adapter knows it: it runs as ever, and what is not recorded is said."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.vllm.attaching import ATTACHED, _watch_schedulers, attach
from stepscope.ingest.attach.vllm.model_runs import ModelRuns
from stepscope.ingest.display import notes
from stepscope.ingest.trace import Trace
from tests.ingest.attach.vllm import kv_stand_in, stand_in
from tests.ingest.attach.vllm.recorded import Recorded
from tests.ingest.attach.vllm.stand_in import Request
from tests.ingest.kineto_files import rows
from tests.vllm.judging.state import differences

TOLD = ("steps", "batch_rows", "lifecycle", "decisions", "allocations", "outputs")
MODULES = (kv_stand_in, stand_in)
HOOKED = (
    "_free_request", "finish_requests", "shutdown", "allocate_slots",
    "get_computed_blocks", "get_new_blocks", "free_blocks", "touch", "peek_request", "pop_request",
    "get_num_blocks_to_allocate",
)  # fmt: skip
"""Functions whose absence costs what they tell, and nothing else."""
LOOKED_AT = (
    "coordinator", "single_type_managers", "free_block_queue", "block_pool", "kv_cache_manager",
    "num_gpu_blocks", "requests", "running", "status", "request_id",
    "num_prompt_tokens", "max_tokens", "num_computed_tokens", "num_output_tokens", "priority",
    "num_scheduled_tokens", "total_num_scheduled_tokens", "scheduled_spec_decode_tokens",
    "max_num_scheduled_tokens", "scheduler_config", "vllm_config", "parallel_config", "outputs",
    "new_token_ids", "block_id", "is_null", "scheduled_cached_reqs", "new_block_ids",
    "schedule", "update_from_output", "add_request",
)  # fmt: skip
"""Everything else that the adapter looks at."""
NEW = "renamed"


@pytest.fixture(autouse=True)
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPSCOPE_TRACE", str(tmp_path / "traces"))
    monkeypatch.setenv("STEPSCOPE_START", "start")
    return tmp_path / "traces"


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the modules of a vLLM in which something has another name, everywhere."""

    def make(name: str) -> ModuleType:
        for module in MODULES:
            made = ModuleType(module.__name__)
            monkeypatch.setitem(sys.modules, module.__name__, made)
            source = Path(str(module.__file__)).read_text(encoding="utf-8")
            text = re.sub(rf"\b{name}\b", NEW, source)
            exec(compile(text, str(module.__file__), "exec"), vars(made))  # noqa: S102 - our own text, with a name replaced
        return sys.modules[stand_in.__name__]

    return make


class Loop:
    """An engine's loop, which calls what it calls by whatever name it has."""

    def __init__(self, module: Any, name: str = "") -> None:
        self.name = name
        self.scheduler = module.Scheduler(num_blocks=6)
        self.requests = [
            module.Request(f"r{n}", 3 + n * 5 % 11, 2 + n * 3 % 7) for n in range(9)
        ]  # fmt: skip

    def run(self) -> list[dict[str, int]]:
        batches = []
        for request in self.requests:
            self.of(self.scheduler, "add_request")(request)
        while self.of(self.scheduler, "requests"):
            output = self.of(self.scheduler, "schedule")()
            batches.append(dict(self.of(output, "num_scheduled_tokens")))
            self.of(self.scheduler, "update_from_output")(output, None)
            assert len(batches) < 200
        return batches

    def of(self, owner: Any, name: str) -> Any:
        return getattr(owner, NEW if name == self.name else name)


def ran(module: Any, name: str = "") -> tuple[list[dict[str, int]], Any]:
    """Attach to a scheduler and run it; gives its batches and what was attached."""
    loop = Loop(module, name)
    attached = attach(loop.scheduler)
    batches = loop.run()
    if attached is not None:
        attached.close()
    return batches, attached


class Odd(Request):
    """A request that raises where the adapter looks at it, and the engine does not."""

    @property
    def stepscope_external_id(self) -> str:
        raise KeyError("not as it was")


def content(trace: Trace) -> dict[str, list[tuple[Any, ...]]]:
    """What was recorded, but for when."""
    return {
        name: trace.table(name).drop("ts_ns", "dur_ns", "formed_ns", strict=False).collect().rows()
        for name in (*TOLD, "spans")
    }


@pytest.mark.parametrize(
    "names", [("_preempt_request", *HOOKED), LOOKED_AT], ids=["functions", "everything else"]
)
def test_an_engine_in_which_something_is_renamed_runs_as_ever_and_what_is_lost_is_said(
    names: tuple[str, ...], another: Any, caplog: pytest.LogCaptureFixture
) -> None:
    as_ever, recording = ran(another("nothing"))
    whole = content(Trace.open(recording.recording.recorder.path))
    for name in names:
        caplog.clear()

        batches, attached = ran(another(name), name)

        assert batches == as_ever, name
        if attached is None:
            assert "cannot record this scheduler" in caplog.text, name
            continue
        trace = Trace.open(attached.recording.recorder.path)
        said = [*trace.manifest.config["not_found"], *rows(trace, "spans", "name")]
        is_whole = content(trace) == whole
        assert is_whole or (any(name in each for each in said) and caplog.messages), name
        assert trace.manifest.closed, name
        if name in HOOKED:
            assert recorded_batches(trace) == [batch for batch in batches if batch], name
            assert rows(trace, "spans", "name") == [], name


def recorded_batches(trace: Trace) -> list[dict[str, int]]:
    steps: dict[int, dict[str, int]] = {}
    for step, request, num_tokens in rows(trace, "batch_rows", "step", "request", "num_tokens"):
        steps.setdefault(step, {})[request] = num_tokens
    return list(steps.values())


def test_what_a_model_runner_beside_the_scheduler_lacks_is_said_in_the_trace(another: Any) -> None:
    runs, module, runner = ModelRuns(), another("nothing"), ModuleType("gpu_model_runner")
    vars(runner)["GPUModelRunner"] = type("GPUModelRunner", (), {})
    runs.watch(runner)
    _watch_schedulers([runs.hooks.missing], module)

    scheduler = module.Scheduler(num_blocks=6)

    attached = getattr(scheduler, ATTACHED)
    attached.close()
    said = notes(Trace.open(attached.recording.recorder.path).manifest)
    assert any("GPUModelRunner.sample_tokens" in line for line in said), said


def test_preemptions_amid_schedule_are_told_where_no_function_does_them(
    another: Any, tmp_path: Path
) -> None:
    module = another("_preempt_request")
    source = Path(str(stand_in.__file__)).read_text(encoding="utf-8")
    call = "self._preempt_request(preempted_req, 0.0)"
    inline = (
        "self.kv_cache_manager.free(preempted_req); "
        "preempted_req.status, preempted_req.num_computed_tokens = Status.PREEMPTED, 0; "
        "self.waiting.prepend_request(preempted_req)"
    )
    text = source.replace(call, inline).replace("_preempt_request", "_unused")
    exec(compile(text, "inline", "exec"), vars(module))  # noqa: S102 - our own text
    recorded = Recorded(tmp_path, module.Scheduler(num_blocks=4))

    recorded.add(module.Request("a", 8, 6), module.Request("b", 8, 6))
    while recorded.scheduler.requests:
        recorded.step()

    trace = recorded.trace()
    assert differences(trace, recorded.lines) == []
    events = rows(trace, "lifecycle", "event", "request", "by_request")
    assert ("preempt", "b", "a") in events
    assert ("resume", "b", None) in events
    assert [row for row in rows(trace, "batch_rows", "request", "is_recompute") if row[1]]
    assert trace.manifest.config["not_found"] == []


def test_what_the_engine_raises_reaches_its_caller_and_what_follows_is_recorded(
    tmp_path: Path,
) -> None:
    recorded = Recorded(tmp_path)
    recorded.add(Request("a", 4, 3))
    recorded.step()
    computed = recorded.scheduler.kv_cache_manager.get_computed_blocks
    recorded.scheduler.kv_cache_manager.get_computed_blocks = None
    recorded.add(Request("b", 4, 3))
    with pytest.raises(TypeError, match="not callable"):
        recorded.scheduler.schedule()

    recorded.scheduler.kv_cache_manager.get_computed_blocks = computed
    recorded.step()

    trace = recorded.trace()
    assert differences(trace, recorded.lines) == []
    assert trace.num_rows("steps") == 2


def test_an_object_of_an_unknown_shape_ends_the_recording_and_not_the_engine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorded = Recorded(tmp_path)
    recorded.add(Request("a", 4, 3))
    recorded.step()

    recorded.add(Odd("b", 4, 3))
    recorded.step(5)

    trace = Trace.open(recorded.path)
    (said,) = rows(trace, "spans", "name")
    assert said == "the adapter stopped: KeyError: 'not as it was'"
    assert trace.manifest.closed
    assert [each.levelno for each in caplog.records] == [logging.WARNING]


def test_a_folder_that_cannot_be_written_is_said_in_one_line_and_the_engine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("STEPSCOPE_TRACE", str(tmp_path / "a file" / "traces"))

    assert attach(stand_in.Scheduler(num_blocks=6)) is None

    (said,) = caplog.records
    assert said.getMessage().startswith("stepscope cannot record this scheduler: ")
    assert "a file" in said.getMessage()
    assert said.exc_info is None


def test_a_scheduler_of_which_nothing_is_known_is_left_alone_and_that_is_said(
    caplog: pytest.LogCaptureFixture, traces: Path
) -> None:
    assert attach(SimpleNamespace(vllm_config=None)) is None

    assert "stepscope cannot record this scheduler" in caplog.text
    assert not [*traces.glob("*/*.journal")]
