"""Finds the schedulers of this process, and gives each a recorder."""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections.abc import Sequence
from functools import partial, wraps
from types import ModuleType
from typing import Any

from stepscope.ingest.attach.hooks import log, warn
from stepscope.ingest.attach.late_imports import when_imported
from stepscope.ingest.attach.recorded import RecordedScheduler, RequestRows
from stepscope.ingest.attach.vllm.attached import AttachedScheduler
from stepscope.ingest.attach.vllm.dump import dumper
from stepscope.ingest.attach.vllm.engine_config import config_of, rank_of, version
from stepscope.ingest.attach.vllm.front_end import FrontEnd
from stepscope.ingest.attach.vllm.model_runs import ModelRuns
from stepscope.ingest.attach.watchdog import Watchdog, stall_seconds
from stepscope.ingest.manifest import NOT_FOUND
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.starts import START, new_start

WHERE = "STEPSCOPE_TRACE"
"""The variable that names the folder in which each start of an engine gets a trace."""
ATTACHED = "_stepscope"
"""A scheduler's attribute that holds what is attached to it."""


def watch() -> None:
    """Attach to every scheduler that is made in this process from now on."""
    if not os.environ.get(START):  # a process that an engine has made belongs to its start
        new_start()
    runs, front = ModelRuns(), FrontEnd(_rows_beside)
    also = runs.hooks.missing, front.hooks.missing
    when_imported("vllm.v1.core.sched.scheduler", partial(_watch_schedulers, also))
    when_imported("vllm.v1.engine.core", _watch_engine_cores)
    when_imported("vllm.v1.request", _watch_requests)
    when_imported("vllm.v1.engine.output_processor", front.watch_outputs)
    when_imported("vllm.v1.engine.core_client", front.watch_clients)
    when_imported("uvicorn.config", front.watch_servers)
    when_imported("vllm.v1.worker.gpu_model_runner", runs.watch)
    when_imported("vllm.v1.worker.gpu.model_runner", runs.watch_v2)


def attach(scheduler: Any, missing: Sequence[str] = ()) -> AttachedScheduler | None:
    """Record a scheduler of vLLM; None where it is not to be, or cannot: then the log says why.

    `missing` is what others in this process had to follow and this version does not have.
    """
    if not os.environ.get(WHERE):  # taken back since the plug-in was loaded
        return None
    try:
        rank = rank_of(scheduler.vllm_config)
        config = config_of(scheduler)
        config[NOT_FOUND] += missing
        recorder = Recorder.under(
            os.environ[WHERE],
            producer="vllm",
            producer_version=version(),
            rank=rank,
            config=config,
        )
        attached = attach_to(scheduler, recorder)
        attached.watchdog = _watched(scheduler, attached.recording)
        return attached
    except Exception as error:
        warn("stepscope cannot record this scheduler", error)
        return None


def attach_to(scheduler: Any, recorder: Any) -> AttachedScheduler:
    """Record a scheduler into a recorder that is there already."""
    stages = getattr(scheduler.vllm_config.parallel_config, "pipeline_parallel_size", 1)
    recording = RecordedScheduler(recorder, overlaps=stages > 1)
    try:
        attached = AttachedScheduler(scheduler, recording)
    except Exception as error:
        recording.failed(error)
        raise
    setattr(scheduler, ATTACHED, attached)
    atexit.register(attached.recording.close)
    for name in attached.hooks.missing:
        log.warning("this vLLM has no %s: what it would tell is not recorded", name)
    logging.getLogger("vllm.stepscope").info("stepscope records into %s", recorder.path)
    return attached


def _rows_beside(client: Any, rank: int, missing: list[str]) -> RequestRows | None:
    """Give the front end what records its rows in the trace of the engine that it talks to: a
    recorder of its own, unless the engine is in this process and has one.
    """
    if not os.environ.get(WHERE):
        return None
    core = getattr(client, "engine_core", None)
    if core is None:
        return RequestRows(Recorder.under(os.environ[WHERE], **_said(client, rank, missing)))
    attached = getattr(getattr(core, "scheduler", None), ATTACHED, None)
    return None if attached is None else attached.recording.requests


def _said(client: Any, rank: int, missing: list[str]) -> dict[str, Any]:
    """Name the front end: there may be several, each of which answers some clients."""
    number = getattr(client, "client_index", 0)
    part = f"front-end-{number}" if number else "front-end"
    return {
        "producer": "vllm", "producer_version": version(), "rank": rank, "part": part,
        "config": {NOT_FOUND: missing},
    }  # fmt: skip


def _watched(scheduler: Any, recording: RecordedScheduler) -> Watchdog:
    """Have the scheduler's state told where it stands still; it is not kept alive for that."""
    scheduler = weakref.proxy(scheduler)
    watchdog = Watchdog(
        num_steps=lambda: recording.num_steps,
        num_open=lambda: len(scheduler.requests),
        dump=dumper(recording.recorder, scheduler, lambda: recording.num_steps),
        stall_s=stall_seconds(),
    )
    watchdog.start()
    return watchdog


def _watch_schedulers(also: Sequence[list[str]], module: ModuleType) -> None:
    """Attach to those that are made; `also` is what is missing of what is made before it, if in
    this process: its model runner and its front end.
    """
    made = module.Scheduler.__init__

    @wraps(made)
    def made_and_attached(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if not hasattr(self, ATTACHED):
            attach(self, [name for missing in also for name in missing])

    module.Scheduler.__init__ = made_and_attached


def _watch_engine_cores(module: ModuleType) -> None:
    """A rank without work runs steps of nothing, so that others need not wait for it."""
    run = getattr(module.EngineCore, "execute_dummy_batch", None)
    if run is None:
        return

    @wraps(run)
    def run_and_told(self: Any, *args: Any, **kwargs: Any) -> Any:
        attached = getattr(self.scheduler, ATTACHED, None)
        began_ns = attached.recording.now_ns() if attached else 0
        result = run(self, *args, **kwargs)
        if attached:
            attached.hooks.safely(attached.ran_dummy, began_ns)
        return result

    module.EngineCore.execute_dummy_batch = run_and_told


def _watch_requests(module: ModuleType) -> None:
    """The client's own id of a request stands in what the front end sends, and nowhere else."""
    made = module.Request.__dict__.get("from_engine_core_request")
    if not isinstance(made, classmethod):
        return

    @wraps(made.__func__)
    def made_and_named(cls: Any, sent: Any, *args: Any, **kwargs: Any) -> Any:
        request = made.__func__(cls, sent, *args, **kwargs)
        try:
            request.stepscope_external_id = getattr(sent, "external_req_id", sent.request_id)
        except AttributeError:  # a version whose requests have no room for more
            log.debug("a request does not take its client's id", exc_info=True)
        return request

    module.Request.from_engine_core_request = classmethod(made_and_named)
