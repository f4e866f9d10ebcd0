"""Which SGLang schedulers are followed, and what the manifest says of their settings."""

from __future__ import annotations

import atexit
import os
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

from stepscope.ingest.attach.hooks import log, warn
from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.sglang.followed import SGLangScheduler
from stepscope.ingest.attach.sglang.settings import config_of
from stepscope.ingest.recorder import Recorder

ATTACHED = "_stepscope"


def attached_to(scheduler: Any) -> SGLangScheduler | None:
    """Give what follows a scheduler, from its first call on; None where it cannot be followed."""
    attached: SGLangScheduler | None = scheduler.__dict__.get(ATTACHED)
    if ATTACHED in scheduler.__dict__:
        return attached
    try:
        attached = _attach(scheduler)
    except Exception as error:
        warn("stepscope cannot record this scheduler", error)
    setattr(scheduler, ATTACHED, attached)
    return attached


def _attach(scheduler: Any) -> SGLangScheduler | None:
    from sglang.srt.runtime_context import get_parallel

    if get_parallel().attn_tp_rank or get_parallel().pp_rank:
        return None  # the first of those that decide alike is recorded
    if (why := _unknown(scheduler)) is not None:
        log.warning("stepscope does not record SGLang's %s", why)
        return None
    recorder = Recorder.under(
        os.environ["STEPSCOPE_TRACE"], producer="sglang", producer_version=version(),
        rank=get_parallel().dp_rank or 0,
        config=config_of(scheduler),
    )  # fmt: skip
    attached = SGLangScheduler(scheduler, RecordedScheduler(recorder))
    atexit.register(attached.recording.close)
    return attached


def _unknown(scheduler: Any) -> str | None:
    """What of SGLang's this scheduler does that is not known here."""
    if scheduler.disaggregation_mode.value != "null":
        return "disaggregated prefill and decode"
    return "diffusion models" if scheduler.dllm_config is not None else None


def version() -> str:
    """Give SGLang's version, or an empty text."""
    try:
        return version_of("sglang")
    except PackageNotFoundError:
        return ""
