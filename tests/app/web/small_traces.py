"""A small trace with everything the page shows, and a hostile one; both written out row by row."""

from __future__ import annotations

from functools import cache
from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.app.web.loaded import LoadedTrace
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

US = 1_000
NUM_STEPS = 6
STEP_NS = 100 * US
HOSTILE = "<img src=x onerror=window.hacked=1>"
SCRIPT = "<b>bold</b><script>window.hacked=1</script>"
LINK = 'javascript:window.hacked=1//"><svg onload=window.hacked=1>'


@cache
def conflict_trace(**names: str) -> Trace:
    """Six steps of three requests; in step 2 a MIX takes an AIC while its group's AIV1 is busy.

    `names` may rename the request `req-1`, the tasks `push` and `qk_pv`, the counter `heat`, the
    trace and its scenario, and the `reason` of the decision.
    """
    called = {"request": "req-1", "push": "push", "mix": "qk_pv", "counter": "heat"} | names
    return trace_of(
        name=names.get("trace", "small.trace"),
        scenario=names.get("scenario", "mix-admission"),
        variant="aic-free",
        tables={"core_spans": "partial"},  # of each task one block
        steps=_steps(),
        batch_rows=[_row(step, request) for step in range(NUM_STEPS) for request in _ids(called)],
        lifecycle=_lifecycle(called),
        decisions=_decisions(names.get("reason", "the group's AIC is free")),
        tasks=_tasks(called),
        core_spans=_core_spans(),
        counters=[
            {"ts_ns": at * STEP_NS, "name": called["counter"], "value": float(at % 3)}
            for at in range(NUM_STEPS)
        ],
    )


def loaded_of(trace: Trace) -> LoadedTrace:
    """The trace, checked once, as a page looks at it."""
    return LoadedTrace(trace, _checked(trace))


_checked = cache(check)


def _ids(called: dict[str, str]) -> tuple[str, ...]:
    return ("req-0", called["request"], "req-2")


def _steps() -> list[dict[str, Any]]:
    return [
        {
            "step": step, "ts_ns": step * STEP_NS, "dur_ns": STEP_NS,
            "kind": "prefill" if step == 0 else "decode", "num_prefill_reqs": 3 * (step == 0),
            "num_decode_reqs": 3 * (step > 0), "num_prefill_tokens": 192 * (step == 0),
            "num_decode_tokens": 3 * (step > 0), "token_budget": 256, "num_waiting": 0,
            "num_running": 3, "kv_blocks_free": 20 - step, "kv_blocks_total": 32,
        }
        for step in range(NUM_STEPS)
    ]  # fmt: skip


def _row(step: int, request: str) -> dict[str, Any]:
    return {
        "step": step, "ts_ns": step * STEP_NS, "request": request,
        "phase": "decode" if step else "prefill", "num_tokens": 1 if step else 64,
    }  # fmt: skip


def _lifecycle(called: dict[str, str]) -> list[dict[str, Any]]:
    events = []
    for place, request in enumerate(_ids(called)):
        arrive = {"event": "arrive", "queue_index": place, "prompt_len": 64}
        events.append({"step": 0, "ts_ns": 0, "request": request, **arrive})
        events.append({"step": 0, "ts_ns": 0, "request": request, "event": "admit"})
    return events


def _decisions(reason: str) -> list[dict[str, Any]]:
    admitted = {
        "step": 2, "ts_ns": 210 * US, "subject_kind": "task", "subject": "2", "verdict": "admitted",
        "reason": reason, "resource": "core-group", "needed": 3, "available": 2, "holder": "push",
    }  # fmt: skip
    return [admitted]


def _tasks(called: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"step": 2, "ts_ns": 200 * US, "task": 1, "name": called["push"], "shape": "AIV",
         "num_blocks": 32},
        {"step": 2, "ts_ns": 200 * US, "task": 2, "name": called["mix"], "shape": "MIX",
         "num_blocks": 8},
    ]  # fmt: skip


def _core_spans() -> list[dict[str, Any]]:
    def span(core: int, kind: str, at: tuple[int, int, int], **task: Any) -> dict[str, Any]:
        dispatch, start, end = (moment * US for moment in at)
        place = {"group": 0, "core": core, "core_kind": kind, "step": 2}
        return {**place, **task, "dispatch_ns": dispatch, "ts_ns": start, "end_ns": end}

    push = {"task": 1, "block": 31, "shape": "AIV", "slot": "running"}
    mix = {"task": 2, "block": 7, "shape": "MIX"}
    return [
        span(2, "AIV1", (205, 205, 220), **push),
        span(0, "AIC", (210, 210, 260), **mix, slot="running"),
        span(1, "AIV0", (210, 210, 260), **mix, slot="running"),
        span(2, "AIV1", (210, 220, 260), **mix, slot="pending"),
    ]
