"""Traces to look at, and ways to open one and to read the screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

from textual.pilot import Pilot
from textual.screen import UPDATE_PERIOD, Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.worker import WorkerCancelled

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.app import StepscopeApp
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

STEP_NS = 100_000
NUM_STEPS = 12
WIDE, USUAL, NARROW = (160, 48), (120, 34), (80, 24)
CORES = {"AIC": 0, "AIV0": 1, "AIV1": 2}
Row = dict[str, Any]
FRAME_S = 2 * UPDATE_PERIOD  # whatever is due has then been drawn
ENOUGH_ALIKE, MOST_FRAMES = 2, 10_000
PATIENCE_S = 180.0  # a machine may be busy with other things; nothing here waits this long


@cache
def conflict_trace() -> Trace:
    """Twelve steps of four requests on two core groups, and in step 6 a MIX on a busy group."""
    spans = list(_core_spans())
    return trace_of(
        name="conflict.trace",
        clock=ClockInfo("virtual"),
        scenario="mix-admission",
        variant="aic-free",
        steps=[_step(step) for step in range(1, NUM_STEPS + 1)],
        batch_rows=list(_batch_rows()),
        lifecycle=list(_lifecycle()),
        decisions=list(_decisions()),
        allocations=list(_allocations()),
        tasks=[_task(span) for span in spans if span["core_kind"] == _first_core(span["shape"])],
        core_spans=spans,
    )


def _at(step: int, offset_ns: int = 0) -> int:
    return (step - 1) * STEP_NS + offset_ns


def _step(step: int) -> Row:
    prefill, decode = _num_prefill(step), _num_decode(step)
    return {
        "step": step, "ts_ns": _at(step), "dur_ns": STEP_NS - 5_000,
        "kind": "mixed" if prefill and decode else "prefill" if prefill else "decode",
        "num_prefill_reqs": prefill, "num_decode_reqs": decode,
        "num_prefill_tokens": 256 * prefill, "num_decode_tokens": decode, "token_budget": 1024,
        "num_waiting": 1 if step < 8 else 0, "num_running": prefill + decode,
        "kv_blocks_free": 48 - 8 * (prefill + decode), "kv_blocks_total": 48,
        "executed_path": "bucket-4",
    }  # fmt: skip


def _batch_rows() -> Iterator[Row]:
    """Each request prefills in the step in which it is admitted, then decodes."""
    for step in range(1, NUM_STEPS + 1):
        batch = [request for request in range(1, 5) if _admitted(request) <= step]
        for row, request in enumerate(batch):
            is_prefill = step == _admitted(request)
            yield {
                "step": step, "ts_ns": _at(step), "row": row, "request": f"req-{request}",
                "phase": "prefill" if is_prefill else "decode",
                "num_tokens": 256 if is_prefill else 1, "prompt_len": 256, "slot": request - 1,
                "num_computed": 0 if is_prefill else 255 + step - _admitted(request),
            }  # fmt: skip


def _admitted(request: int) -> int:
    return 2 * request - 1 if request < 4 else 8


def _num_prefill(step: int) -> int:
    return sum(_admitted(request) == step for request in range(1, 5))


def _num_decode(step: int) -> int:
    return sum(_admitted(request) < step for request in range(1, 5))


def _lifecycle() -> Iterator[Row]:
    for request in range(1, 5):
        name, step = f"req-{request}", _admitted(request)
        arrived = max(step - 4, 1)
        yield {
            "step": arrived, "ts_ns": _at(arrived), "request": name, "event": "arrive",
            "queue_index": 0, "prompt_len": 256,
        }  # fmt: skip
        yield {"step": step, "ts_ns": _at(step), "request": name, "event": "admit"}


def _decisions() -> Iterator[Row]:
    for step in range(4, 8):
        yield {
            "step": step, "ts_ns": _at(step), "subject_kind": "request", "subject": "req-4",
            "verdict": "passed-over", "reason": "no free slot", "resource": "slot", "needed": 1,
            "available": 0, "holder": "req-3", "instead": "req-2",
        }  # fmt: skip
    yield {
        "step": 6, "ts_ns": _at(6, 22_000), "subject_kind": "task", "subject": "66",
        "verdict": "admitted", "reason": "group 1: AIC free, AIVs not consulted",
    }  # fmt: skip


def _allocations() -> Iterator[Row]:
    for request in range(1, 5):
        step = _admitted(request)
        common = {"step": step, "ts_ns": _at(step), "op": "claim", "owner": f"req-{request}"}
        yield {**common, "resource": "slot", "id": request - 1}
        for block in range(8):
            yield {**common, "resource": "kv-block", "id": 8 * (request - 1) + block}


def _core_spans() -> Iterator[Row]:
    """Three tasks a step and group; in step 6 task 66 takes the AIC of group 1, whose AIV1 runs."""
    for step in range(1, NUM_STEPS + 1):
        for group in (0, 1):
            task, start = 10 * step + group * 4, _at(step, group * 3_000)
            yield _span(step, task, "AIC", "AIC", group, start, start + 18_000)
            yield _span(step, task + 1, "AIV", "AIV1", group, start + 2_000, start + 32_000)
            if (step, group) != (6, 1):
                for kind in CORES:
                    yield _span(step, task + 2, "MIX", kind, group, start + 40_000, start + 80_000)
    for kind, begins in (("AIC", 22_000), ("AIV0", 22_000), ("AIV1", 35_000)):
        yield _span(6, 66, "MIX", kind, 1, _at(6, begins), _at(6, 80_000), _at(6, 22_000))


def _first_core(shape: str) -> str:
    return "AIV1" if shape == "AIV" else "AIC"


def _span(
    step: int, task: int, shape: str, kind: str, group: int, start: int, end: int,
    dispatch: int | None = None,
) -> Row:  # fmt: skip
    return {
        "step": step, "task": task, "block": 0, "shape": shape, "group": group,
        "core": 3 * group + CORES[kind], "core_kind": kind, "ts_ns": start, "end_ns": end,
        "dispatch_ns": start if dispatch is None else dispatch,
        "slot": "pending" if dispatch is not None and dispatch < start else "running",
    }  # fmt: skip


def _task(span: Row) -> Row:
    name = {"AIC": "up", "AIV": "act", "MIX": "qk_pv"}[span["shape"]]
    return {
        "step": span["step"], "ts_ns": span["ts_ns"], "task": span["task"], "name": name,
        "shape": span["shape"], "num_blocks": 1,
    }  # fmt: skip


CONFLICT = Finding(
    "COR001",
    "mix-on-occupied-group",
    Severity.ERROR,
    "qk_pv took AIC of group 1 while act held AIV1 for 13.0 µs more",
    "admit a MIX only when the AIC and every AIV of the group are free",
    rank=0,
    step=6,
    ts_ns=_at(6, 22_000),
    end_ns=_at(6, 35_000),
    task=66,
    core=5,
    group=1,
    evidence={"block": "qk_pv 0/1", "holder": "act", "held_idle_ns": 13_000},
)
STARVED = Finding(
    "STV002",
    "fcfs-inversion",
    Severity.WARNING,
    "req-4 was passed over 4 times for younger requests",
    "serve the oldest first",
    rank=0,
    step=4,
    ts_ns=_at(4),
    end_ns=_at(8),
    request="req-4",
    evidence={"passed_over": 4, "wait_ns": 400_000},
    count=4,
)
WHOLE_RUN = Finding(
    "TRC003",
    "inferred",
    Severity.INFO,
    "the kind of 2 steps was inferred",
    "record steps",
    evidence={"steps": 2},
)
RESULT = CheckResult(
    "conflict.trace",
    (CONFLICT, STARVED, WHOLE_RUN),
    {"COL001": ("collectives",)},
    {"COR001": 1, "COR002": 0, "STV002": 4, "TRC003": 1},
    ("steps", "core_spans"),
)


def view_of(trace: Trace) -> Navigator:
    """The state in which a trace is first looked at, with the findings there."""
    return Navigator(Timeline.of(trace), RESULT.findings)


# ── the screen ───────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def opened(
    trace: Trace, result: CheckResult | None = None, size: tuple[int, int] = USUAL
) -> AsyncIterator[Pilot[None]]:
    """A trace opened on a screen, everything slow done."""
    app = StepscopeApp(trace, result)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot


async def settle(pilot: Pilot[Any]) -> None:
    """Wait until threads have answered and the screen has stopped changing.

    What a key brings may take several turns: a page is shown, laid out, told its size, asks a
    thread, draws the answer. So a screen has settled when nothing is due and it looks the same for
    a few frames, however long a busy machine takes to get there.
    """
    seen, frames_alike = "", 0
    for _ in range(MOST_FRAMES):
        with suppress(WorkerCancelled):  # of a screen that closed as soon as it had its answer
            await pilot.app.workers.wait_for_complete()
        await pilot._wait_for_screen()  # until every widget has handled what it was sent
        await asyncio.sleep(FRAME_S)
        _hold_cursors(pilot.app.screen)
        if _is_due(pilot):
            frames_alike = 0
            continue
        shown = screen_text(pilot)
        frames_alike = frames_alike + 1 if shown == seen else 0
        if frames_alike == ENOUGH_ALIKE:
            return
        seen = shown
    raise AssertionError("the screen does not settle")


def _is_due(pilot: Pilot[Any]) -> bool:
    """Whether something is still to be laid out, drawn, called, moved or answered by a thread."""
    screen, animator = pilot.app.screen, pilot.app.animator
    due = (screen._layout_required, screen._dirty_widgets, screen._callbacks, [*pilot.app.workers])
    return any(map(bool, due)) or not animator._complete_event.is_set()


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline_s = asyncio.get_running_loop().time() + PATIENCE_S
    while not holds():
        assert asyncio.get_running_loop().time() < deadline_s, screen_text(pilot)
        await pilot._wait_for_screen()
        await asyncio.sleep(FRAME_S)


def _hold_cursors(screen: Screen[Any]) -> None:
    """Show the cursor of whatever is typed into: one that blinks is there for half of the time."""
    for box in screen.query("Input, TextArea"):
        assert isinstance(box, Input | TextArea)
        box.cursor_blink = False


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, each when the one before it has brought what it brings."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def app_of(pilot: Pilot[Any]) -> StepscopeApp:
    """The application, as what it is."""
    assert isinstance(pilot.app, StepscopeApp)
    return pilot.app


def state_of(pilot: Pilot[Any]) -> Navigator:
    """What is being looked at."""
    view = app_of(pilot).view
    assert view is not None
    return view


def screen_lines(pilot: Pilot[Any]) -> list[str]:
    """Every line of the screen as text."""
    compositor = pilot.app.screen._compositor  # there is no public way to read the screen
    return [strip.text for strip in compositor.render_strips()]


def screen_text(pilot: Pilot[Any]) -> str:
    """The whole screen as text."""
    return "\n".join(screen_lines(pilot))


def text_of(widget: Widget) -> str:
    """What one widget shows, as text."""
    return "\n".join(strip.text for strip in widget.render_lines(widget.size.region))
